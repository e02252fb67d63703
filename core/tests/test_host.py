"""A tool call from the inside: bound to its signature, decided as of now, recorded, performed, recorded."""

import asyncio
import contextlib
import json
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from licet.backend import GuestError, Reply, Termination, ToolCall
from licet.calling import signature_of
from licet.contract import SandboxEnforcementContract
from licet.decide import Ballot, Decision
from licet.host import RunHost
from licet.plan import ExecutionPlan, Opened
from licet.policy import PolicyStack
from licet.prepare import Deciders, prepare
from licet.request import ExecutionRequest, Limits, NormalizedRequest, Subject, Tool
from licet.trail import Trail

StackOf = Callable[..., PolicyStack]

TOOLS = "tools: {pay: {order: string, amount: int, note: string?}}\nallow: [tool *]\n"
BIG = TOOLS + "rules: [{id: big, ask: tool pay, if: args.amount > 100, approval: {count: 2}}]\n"
ANN = Subject(id="ann", groups=("staff",))


def digest(name: str, content: bytes) -> str:
    return f"{name}:{content.decode()}"


class Written:
    """A trail that keeps what it is told; `open` are steps that no commit has followed yet."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, str | None, dict[str, Any]]] = []
        self.open = 0

    def step(self, kind: str, body: Any, phase: str | None = None, kept: object = ()) -> None:
        self.steps.append((kind, phase, dict(body)))
        self.open += 1

    async def commit(self) -> None:
        self.open = 0

    def inside(self, key: str) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()


class Inside:
    """A run under way: `call` is what its code calls."""

    def __init__(
        self,
        stack: PolicyStack,
        tools: dict[str, Callable[..., Any]],
        deciders: Deciders | None = None,
        calls: int = 100,
        **more: Any,
    ) -> None:
        self.trail = Written()
        prepared = prepare(
            ExecutionRequest(code="1", tools=tools, subject=ANN),
            stack,
            (),
            at=datetime(2020, 1, 1, tzinfo=UTC),
            directory="/w",
            host_environment={},
            digest=digest,
        )
        plan = ExecutionPlan(
            run_id="R",
            backend="b",
            code="1",
            inputs={},
            stdin=b"",
            environment={},
            workdir="/w",
            limits=Limits(tool_calls=calls, stdout=10, stderr=10, output=100),
            opened=Opened(),
            contract=SandboxEnforcementContract(),
            plan_digest="P",
            policy_class="c",
        )
        self.host = RunHost(plan, prepared, cast("Trail", self.trail), digest, deciders, **more)

    def call(self, name: str, *args: Any, **kwargs: Any) -> Reply:
        return asyncio.run(self.host.call(ToolCall(name, args, kwargs, 7)))

    @property
    def outcomes(self) -> list[tuple[str, str, str]]:
        return [(made.tool, made.decision, made.outcome) for made in self.host.tool_calls]


def pay(order: str, amount: int, note: str = "") -> str:
    return f"paid {amount} for {order}"


def said(reply: Reply) -> tuple[str, str] | Any:
    return reply.value if reply.error is None else (reply.error.type, reply.error.message)


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [(("A1", 50), {}), (("A1",), {"amount": 50}), ((), {"amount": 50, "order": "A1"})],
)
def test_arguments_have_the_names_of_their_parameters(
    stack_of: StackOf, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    inside = Inside(stack_of(BIG), {"pay": pay})
    assert said(inside.call("pay", *args, **kwargs)) == "paid 50 for A1"
    big = {**kwargs, "amount": 500} if "amount" in kwargs else kwargs
    asked = inside.call("pay", *(500 if arg == 50 else arg for arg in args), **big)
    assert said(asked) == ("PermissionError", "it needs an approval, and nobody can give one")
    assert inside.outcomes == [("pay", "allow", "returned"), ("pay", "ask", "denied")]


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((), {}, "pay() misses the argument `order`"),
        (("A1",), {}, "pay() misses the argument `amount`"),
        (("A1", 1, "x", 2), {}, "pay() takes 3 positional arguments, and 4 were given"),
        (("A1", 1), {"order": "B"}, "pay() got `order` twice, by position and by name"),
        (("A1",), {"amuont": 1}, "pay() takes no argument `amuont`; did you mean `amount`?"),
    ],
)
def test_a_call_that_does_not_fit_is_a_type_error_and_has_no_effect(
    stack_of: StackOf, args: tuple[Any, ...], kwargs: dict[str, Any], message: str
) -> None:
    def untouched(order: str, amount: int, note: str = "") -> None:
        pytest.fail("it was performed")

    inside = Inside(stack_of(BIG), {"pay": untouched})
    shown = "; it is `pay(order: str, amount: int, note: str = ...)`"
    assert said(inside.call("pay", *args, **kwargs)) == ("TypeError", message + shown)
    assert inside.host.tool_calls == []


def test_a_value_that_cannot_cross_is_a_type_error(stack_of: StackOf) -> None:
    kind, message = said(Inside(stack_of(BIG), {"pay": pay}).call("pay", object(), 1))
    assert (kind, message.partition(": ")[0]) == ("TypeError", "the arguments of `pay` can't cross")


def test_python_says_what_a_tool_takes_where_the_policy_does_not(stack_of: StackOf) -> None:
    stack = stack_of("allow: [tool *]\nrules: [{id: big, deny: tool pay, if: args.amount > 100}]\n")
    inside = Inside(stack, {"pay": pay})
    assert said(inside.call("pay", "A1", 100)) == "paid 100 for A1"
    assert said(inside.call("pay", "A1", 101)) == (
        "PermissionError",
        "`tool pay` is denied: the rule `big` (root:3) denies it",
    )


def test_a_tool_of_which_nobody_knows_the_parameters_is_a_hit(stack_of: StackOf) -> None:
    class Secret:
        __signature__ = "no signature"

        def __call__(self, *args: Any, **kwargs: Any) -> str:
            return "done"

    stack = stack_of("allow: [tool *]\nrules: [{id: big, deny: tool pay, if: args.amount > 100}]\n")
    inside = Inside(stack, {"pay": Secret(), "find": Secret()})
    assert said(inside.call("pay", amount=1))[0] == "PermissionError"
    [_, _, body] = inside.trail.steps[0]
    [rule] = body["rules"]
    assert (rule["rule"], rule["truth"]) == ("big", "unknown")
    assert said(inside.call("find", 1, 2)) == "done"


def test_signatures_are_the_policys_then_pythons(stack_of: StackOf) -> None:
    def find(name: str) -> None: ...

    stack = stack_of(TOOLS)
    declared = signature_of("pay", stack, find)
    assert declared is not None
    assert list(declared.types) == ["order", "amount", "note"]
    from_python = signature_of("find", stack, find)
    assert from_python is not None
    assert list(from_python.types) == ["name"]
    assert signature_of("find", stack, None) is None
    assert signature_of("find", stack, cast("Any", dict)) is None


@pytest.mark.parametrize(
    ("policy", "effect", "message"),
    [
        ("", "deny", "`tool pay` is denied: nothing allows it"),
        ("ask: [tool pay]", "ask", "it needs an approval, and nobody can give one"),
        ("allow: [tool pay]\nrules: [{id: r, deny: 'tool p*'}]", "deny", "the rule `r` (root:3) denies it"),
    ],
)
def test_what_is_not_allowed_is_a_permission_error_with_its_reason(
    stack_of: StackOf, policy: str, effect: str, message: str
) -> None:
    inside = Inside(stack_of(policy), {"pay": lambda *_: pytest.fail("it was performed")})
    kind, told = said(inside.call("pay"))
    assert (kind, message in told) == ("PermissionError", True), told
    assert inside.outcomes == [("pay", effect, "denied")]


def test_a_call_of_what_was_not_passed_is_a_name_error(stack_of: StackOf) -> None:
    inside = Inside(stack_of("allow: [tool *]"), {})
    assert said(inside.call("pay")) == ("NameError", "name 'pay' is not defined")
    assert inside.outcomes == [("pay", "allow", "unknown tool")]


def test_records_stand_around_the_effect_and_hold_no_argument(stack_of: StackOf) -> None:
    inside = Inside(stack_of(BIG), {})

    def tool(order: str, amount: int) -> None:
        assert (len(inside.trail.steps), inside.trail.open) == (1, 0)  # what comes before it is durable

    inside.host._calls._prepared.request.tools["pay"] = Tool("pay", tool)  # type: ignore[index]
    inside.call("pay", "order-of-ann", 7)
    (kind, phase, before), (_, after_phase, after) = inside.trail.steps
    assert (kind, phase, after_phase, inside.trail.open) == ("tool_call", "before", "after", 0)
    assert (before["sequence"], before["tool"], before["effect"]) == (1, "pay", "allow")
    assert before["verdict"]["intent"] == "tool pay"
    assert (before["verdict"]["line"], before["verdict"]["when"]) == (7, "call")
    assert after == {"sequence": 1, "tool": "pay", "outcome": "returned", "result_bytes": 4}
    assert before["call_digest"].startswith(
        "call:P\x001\x00pay\x00"
    )  # under the key of the host, not in the clear
    rest = {key: value for key, value in before.items() if key != "call_digest"}
    assert "order-of-ann" not in str(rest)


def test_a_record_says_which_rules_applied_and_what_is_demanded(stack_of: StackOf) -> None:
    inside = Inside(stack_of(BIG), {"pay": pay})
    inside.call("pay", "A1", 500)
    body = inside.trail.steps[0][2]
    assert [(rule["rule"], rule["truth"]) for rule in body["rules"]] == [("big", "true")]
    assert body["demands"] == ["2 persons"]
    assert body["pending"] == []


def test_a_call_is_decided_as_of_now(stack_of: StackOf) -> None:
    """The run began in 2020."""
    stack = stack_of("allow: [tool *]\nrules: [{id: r, deny: tool pay, if: {after: 2021-01-01T00:00:00Z}}]")
    assert said(Inside(stack, {"pay": pay}).call("pay", "A1", 1))[0] == "PermissionError"


def test_calls_are_counted_whatever_becomes_of_them(stack_of: StackOf) -> None:
    inside = Inside(stack_of(BIG), {"pay": pay}, calls=2)
    inside.call("pay")
    inside.call("pay", "A1", 1)
    assert inside.call("pay", "A1", 1).fatal is Termination.tool_limit
    assert inside.outcomes == [("pay", "allow", "returned")]


ASKS = TOOLS + "ask: [tool pay]\n"


def test_a_call_waits_where_somebody_can_be_asked(stack_of: StackOf) -> None:
    inside = Inside(stack_of(ASKS), {"pay": pay, "find": lambda: 1}, obstacle=lambda demands: None)
    assert said(inside.call("find")) == 1
    reply = inside.call("pay", "A1", 5)
    assert (reply.fatal, inside.host.why_ended) == (
        Termination.approval_pending,
        "the call of `pay` waits for an approval",
    )
    waiting = inside.host.waiting
    assert waiting is not None
    assert (waiting.sequence, waiting.name, waiting.arguments) == (2, "pay", '[["A1",5],{}]')
    kind, phase, body = inside.trail.steps[-1]
    assert (kind, phase, body["sequence"], body["effect"]) == ("tool_call", "before", 2, "ask")
    assert (body["call_digest"], inside.trail.open) == (waiting.digest, 0)
    assert inside.outcomes == [("find", "allow", "returned")]


def test_what_is_denied_or_unknown_never_waits(stack_of: StackOf) -> None:
    stack = stack_of("ask: [tool *]\ndeny: [tool pay]\n")
    inside = Inside(stack, {"pay": pay}, obstacle=lambda demands: None)
    assert said(inside.call("pay", "A1", 5))[0] == "PermissionError"
    assert said(inside.call("ghost"))[0] == "PermissionError"
    assert inside.host.waiting is None


@pytest.mark.parametrize("error", [None, GuestError("PermissionError", "no")])
def test_a_host_goes_on_where_another_one_stood(stack_of: StackOf, error: GuestError | None) -> None:
    tools: dict[str, Callable[..., Any]] = {"pay": pay, "find": lambda: 1}
    first = Inside(stack_of(ASKS), tools, obstacle=lambda demands: None, calls=3)
    first.host.write("stdout", b"x" * 60)
    first.host.random_bytes(5)
    first.host.now("time.time")
    first.call("find")
    first.call("pay", "A1", 5)
    state = json.loads(json.dumps(first.host.state()))
    second = Inside(stack_of(ASKS), tools, calls=3, past=state)
    assert second.host.state() == state
    reply = asyncio.run(second.host.settle(error))
    assert (reply.value, reply.error) == (("paid 5 for A1", None) if error is None else (None, error))
    outcome = "returned" if error is None else "denied"
    assert second.outcomes == [("find", "allow", "returned"), ("pay", "ask", outcome)]
    assert [(phase, body["sequence"]) for _, phase, body in second.trail.steps] == [("after", 2)]
    assert (second.host.waiting, second.host.why_ended) == (None, None)
    assert said(second.call("find")) == 1
    assert second.call("find").fatal is Termination.tool_limit
    assert second.host.write("stdout", b"y" * 40)
    assert not second.host.write("stdout", b"y")
    out, _ = second.host.written()
    assert (out.head, out.total) == (b"xxxxx", 101)
    counts = second.host.counts()["surroundings"]
    assert (counts["clock_readings"], counts["random_bytes"]) == (1, 5)


def test_nothing_is_settled_where_nothing_waits(stack_of: StackOf) -> None:
    inside = Inside(stack_of(ASKS), {"pay": pay}, obstacle=lambda demands: None)
    with pytest.raises(ValueError, match=r"^no call waits$"):
        asyncio.run(inside.host.settle())
    inside.call("pay", "A1", 5)
    other = Inside(stack_of(ASKS), {}, past=inside.host.state())
    with pytest.raises(ValueError, match=r"^there is no tool `pay`$"):
        asyncio.run(other.host.settle())


def test_other_deciders_vote_on_calls(stack_of: StackOf) -> None:
    asked: list[Decision] = []

    def deciders(request: NormalizedRequest, decision: Decision) -> list[Ballot]:
        asked.append(decision)
        assert decision.call is not None
        return [Ballot("opa", "deny" if decision.call.args["amount"] > 10 else None, "too much", "sha256:1")]

    inside = Inside(stack_of(TOOLS), {"pay": pay}, deciders)
    assert said(inside.call("pay", "A1", 5)) == "paid 5 for A1"
    assert said(inside.call("pay", "A1", 50)) == ("PermissionError", "`opa` denies it: too much")
    assert [(d.call.tool, d.effect) for d in asked if d.call] == [("pay", "allow")] * 2
    assert [body["effect"] for _, phase, body in inside.trail.steps if phase == "before"] == ["allow", "deny"]
    ballots = inside.trail.steps[2][2]["ballots"]
    assert ballots == [asdict(Ballot("opa", "deny", "too much", "sha256:1"))]
