"""What bounds a tool call, what it touches, and what is known of it once nobody waits for it."""

import asyncio
import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from licet import Tool, bodies
from licet.backend import Reply, Termination, ToolCall
from licet.calls import Scrub, as_it_is
from licet.contract import SandboxEnforcementContract
from licet.errors import AuditUnavailable
from licet.host import RunHost
from licet.plan import ExecutionPlan, Opened
from licet.policy import PolicyStack
from licet.prepare import prepare
from licet.request import ExecutionRequest, Limits, Subject
from licet.scrubbing import Finding, Scrubbed
from licet.tooling import tool
from licet.trail import Trail

StackOf = Callable[..., PolicyStack]


class Written:
    """A trail that keeps what it is told, and fails where it is told to."""

    def __init__(self) -> None:
        self.steps: list[tuple[str | None, dict[str, Any]]] = []
        self.kept: list[Any] = []
        self.fails_at: int | None = None
        self.heard: Callable[[], object] = lambda: None

    def step(self, kind: str, body: Any, phase: str | None = None, kept: tuple[Any, ...] = ()) -> None:
        self.steps.append((phase, dict(body)))
        self.kept += kept

    async def commit(self) -> None:
        self.heard()
        await asyncio.sleep(0)
        if self.fails_at is not None and len(self.steps) >= self.fails_at:
            raise AuditUnavailable("the disk is full")

    def inside(self, key: str) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()


class Inside:
    """A run under way."""

    def __init__(
        self,
        stack: PolicyStack,
        tools: Any,
        at: datetime | None = None,
        scrub: Scrub = as_it_is,
        **limits: Any,
    ) -> None:
        self.trail = Written()
        prepared = prepare(
            ExecutionRequest(code="1", tools=tools, subject=Subject(id="ann")),
            stack,
            (),
            at=at or datetime.now(UTC),
            directory="/w",
            host_environment={},
            digest=lambda name, content: name,
        )
        assert prepared.decision.effect == "allow"
        plan = ExecutionPlan(
            run_id="R",
            backend="b",
            code="1",
            inputs={},
            stdin=b"",
            environment={},
            workdir="/w",
            limits=Limits(**{"tool_calls": 1000, "wall_time": 60.0, **limits}),
            opened=Opened(),
            contract=SandboxEnforcementContract(),
            plan_digest="P",
            policy_class="c",
        )
        self.host = RunHost(plan, prepared, cast("Trail", self.trail), lambda n, c: n, scrub=scrub)

    async def call(self, name: str, *args: Any, **kwargs: Any) -> Reply:
        return await self.host.call(ToolCall(name, args, kwargs, 7))

    @property
    def ends(self) -> list[dict[str, Any]]:
        return [body for phase, body in self.trail.steps if phase == "after"]

    @property
    def begins(self) -> list[dict[str, Any]]:
        return [body for phase, body in self.trail.steps if phase == "before"]

    @property
    def outcomes(self) -> list[str]:
        decided = {body["sequence"] for body in self.begins}
        ended = [body["outcome"] for body in self.ends if body["sequence"] in decided]
        assert ended == [made.outcome for made in self.host.tool_calls]
        return [made.outcome for made in self.host.tool_calls]


def said(reply: Reply) -> Any:
    return reply.value if reply.error is None else (reply.error.type, reply.error.message)


@pytest.fixture
def open_stack(stack_of: StackOf) -> PolicyStack:
    return stack_of("allow: [tool *]")


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What a tool on a thread waits for; opened at the end, so that no thread stays."""
    event = threading.Event()
    yield event
    event.set()


# -- bytes


def test_arguments_and_results_are_bounded_in_bytes(open_stack: PolicyStack) -> None:
    performed = []

    def repeat(text: str, times: int) -> str:
        performed.append(times)
        return text * times

    async def calls() -> None:
        inside = Inside(open_stack, [Tool("repeat", repeat, most_bytes=100)])
        assert said(await inside.call("repeat", "a", 50)) == "a" * 50
        kind, message = said(await inside.call("repeat", "a" * 100, 1))
        assert (kind, message) == (
            "TypeError",
            "the arguments of `repeat` have 111 bytes, it takes at most 100",
        )
        assert said(await inside.call("repeat", "a", 99)) == (
            "ValueError",
            "repeat() returned 101 bytes, at most 100 cross; ask it for less",
        )
        assert performed == [50, 99]
        assert inside.outcomes == ["returned", "withheld"]
        assert [body.get("result_bytes") for body in inside.ends] == [52, None, 101]
        assert [body["argument_bytes"] for body in inside.begins] == [13, 13]

    asyncio.run(calls())


@pytest.mark.parametrize("value", [object(), [1, {2: object()}], lambda: 1, float])
def test_a_result_that_cannot_cross_is_withheld_and_named(open_stack: PolicyStack, value: object) -> None:
    async def calls() -> None:
        inside = Inside(open_stack, {"f": lambda: value})
        kind, message = said(await inside.call("f"))
        assert (kind, message.partition(": ")[0]) == ("ValueError", "f() returned what can't cross")
        assert inside.outcomes == ["withheld"]

    asyncio.run(calls())


def test_a_bomb_of_shared_lists_ends_at_once(open_stack: PolicyStack) -> None:
    bomb: list[Any] = [1]
    for _ in range(60):
        bomb = [bomb, bomb]

    async def calls() -> None:
        inside = Inside(open_stack, {"f": lambda *_: bomb})
        assert said(await inside.call("f"))[0] == "ValueError"
        assert said(await inside.call("f", bomb))[0] == "TypeError"
        assert inside.outcomes == ["withheld"]

    asyncio.run(calls())


def test_a_call_that_can_not_be_made_is_counted_and_recorded_and_nobody_decides_it(
    open_stack: PolicyStack,
) -> None:
    performed: list[int] = []

    def f(x: int) -> None:
        performed.append(x)

    async def calls() -> None:
        inside = Inside(open_stack, {"f": f}, tool_calls=4)
        told = [
            said(await inside.host.call(call))
            for call in (
                ToolCall("f", (1, 2)),
                ToolCall("f", (object(),)),
                ToolCall("f", refused="the arguments of f() are lost"),
            )
        ]
        assert [kind for kind, _ in told] == ["TypeError"] * 3
        assert told[2][1] == "the arguments of f() are lost"
        assert inside.trail.steps == [
            ("after", {"sequence": number, "tool": "f", "outcome": "refused", "error": "TypeError"})
            for number in (1, 2, 3)
        ]
        assert (await inside.call("f", 7)).error is None
        assert (await inside.call("f", 8)).fatal is Termination.tool_limit
        assert (performed, inside.outcomes) == ([7], ["returned"])

    asyncio.run(calls())


def test_a_run_that_ends_before_a_call_is_durable_did_not_make_it(open_stack: PolicyStack) -> None:
    performed: list[int] = []

    async def calls() -> None:
        inside = Inside(open_stack, {"f": lambda: performed.append(1)})
        call = asyncio.ensure_future(inside.call("f"))
        inside.trail.heard = call.cancel
        with pytest.raises(asyncio.CancelledError):
            await call
        assert (performed, inside.outcomes) == ([], ["refused"])

    asyncio.run(calls())


# -- exceptions


def _raises(problem: BaseException) -> Callable[[], None]:
    def tool() -> None:
        raise problem

    return tool


@pytest.mark.parametrize(
    ("problem", "told"),
    [
        (FileNotFoundError(2, "missing", "/a/b.db"), ("FileNotFoundError", "[Errno 2] missing: '…/b.db'")),
        (KeyError("a\nb"), ("KeyError", r"a\nb")),
        (SystemExit(3), ("SystemExit", "3")),
        (KeyboardInterrupt("now"), ("KeyboardInterrupt", "now")),
        (asyncio.CancelledError("no"), ("CancelledError", "no")),
        (ExceptionGroup("g", [ValueError("/srv/a/b")]), ("ExceptionGroup", "g (1 sub-exception)")),
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_async", [False, True])
def test_whatever_a_tool_raises_is_an_answer(
    open_stack: PolicyStack, problem: BaseException, told: tuple[str, str], is_async: bool
) -> None:
    if is_async and isinstance(problem, KeyboardInterrupt):
        pytest.skip("on the main thread it is the user's Ctrl-C")

    async def later() -> None:
        _raises(problem)()

    async def calls() -> None:
        inside = Inside(open_stack, {"f": later if is_async else _raises(problem)})
        assert said(await inside.call("f")) == told
        assert inside.outcomes == ["raised"]

    asyncio.run(calls())


class _Exits:
    """Ends the process of whoever looks at it."""

    def __repr__(self) -> str:
        raise SystemExit(4)


class _ExitsWhenTold(Exception):
    def __str__(self) -> str:
        raise SystemExit(5)


@pytest.mark.parametrize(
    ("tool", "told", "outcome"),
    [
        (_raises(_ExitsWhenTold()), ("_ExitsWhenTold", "its message can't be shown"), "raised"),
        (
            _Exits,
            (
                "ValueError",
                f"f() returned what can't cross: `value` is a `{__name__}._Exits`, which can't cross into "
                "the sandbox; pass plain data instead",
            ),
            "withheld",
        ),
    ],
)
def test_what_a_tool_leaves_behind_is_told_without_running_it(
    open_stack: PolicyStack, tool: Callable[[], Any], told: tuple[str, str], outcome: str
) -> None:
    async def calls() -> None:
        inside = Inside(open_stack, {"f": lambda: tool()})
        assert (said(await inside.call("f")), inside.outcomes) == (told, [outcome])

    asyncio.run(calls())


def test_an_iterator_that_is_spent_is_an_answer_too(open_stack: PolicyStack) -> None:
    async def later() -> Any:
        return next(iter(()))

    async def calls() -> None:
        inside = Inside(open_stack, {"now": lambda: next(iter(())), "later": later})
        assert said(await inside.call("now")) == ("StopIteration", "")
        assert said(await inside.call("later")) == ("RuntimeError", "coroutine raised StopIteration")

    asyncio.run(calls())


def test_a_tool_that_is_no_coroutine_and_gives_one_is_awaited(open_stack: PolicyStack) -> None:
    async def inner(x: int) -> int:
        return x + 1

    async def calls() -> None:
        assert said(await Inside(open_stack, {"f": lambda x: inner(x)}).call("f", 1)) == 2

    asyncio.run(calls())


def test_secrets_are_taken_out_of_messages_and_recorded_by_kind(open_stack: PolicyStack) -> None:
    async def scrub(text: str) -> Scrubbed:
        found = (Finding("error", "password", 1),) if "hunter2" in text else ()
        return Scrubbed(text.replace("hunter2", "***"), found)

    async def calls() -> None:
        tools = {"f": _raises(ValueError("not hunter2")), "g": lambda: "is hunter2"}
        inside = Inside(open_stack, tools, scrub=scrub)
        assert said(await inside.call("f")) == ("ValueError", "not ***")
        assert said(await inside.call("g")) == "is hunter2"  # what a tool returns, it returns on purpose
        assert [body.get("scrubbed") for body in inside.ends] == [
            [bodies.finding((await scrub("hunter2")).findings[0])],
            None,
        ]

    asyncio.run(calls())


# -- time, and cancellation


def test_a_coroutine_that_takes_too_long_is_cancelled_and_gone(open_stack: PolicyStack) -> None:
    ended = []

    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    async def calls() -> None:
        inside = Inside(open_stack, [Tool("slow", slow, timeout=0.02)])
        assert said(await inside.call("slow")) == (
            "TimeoutError",
            "slow() gave no answer within 0.02 s, and may have had its effect",
        )
        assert (inside.outcomes, ended) == (["timed_out"], [True])

    asyncio.run(calls())


def test_a_thread_that_takes_too_long_is_left_and_its_outcome_unknown(
    open_stack: PolicyStack, gate: threading.Event
) -> None:
    async def calls() -> None:
        inside = Inside(open_stack, [Tool("slow", lambda: gate.wait(), timeout=0.02)])
        assert said(await inside.call("slow"))[0] == "TimeoutError"
        assert inside.outcomes == ["unknown"]
        gate.set()
        await asyncio.sleep(0)
        assert inside.outcomes == ["unknown"]  # what it returns later goes nowhere

    asyncio.run(calls())


def test_a_call_never_outlasts_the_run(open_stack: PolicyStack) -> None:
    async def slow() -> None:
        await asyncio.Event().wait()

    async def calls() -> None:
        inside = Inside(open_stack, {"slow": slow}, wall_time=0.02)
        assert said(await inside.call("slow"))[0] == "TimeoutError"

    asyncio.run(calls())


def test_a_cancelled_call_is_recorded_as_unknown_once_its_coroutine_has_ended(
    open_stack: PolicyStack,
) -> None:
    order: list[str] = []

    async def calls() -> None:
        begun = asyncio.Event()

        async def slow() -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                order.append("ended")

        inside = Inside(open_stack, {"slow": slow})
        task = asyncio.create_task(inside.call("slow"))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        order.append("cancelled")
        assert inside.outcomes == ["unknown"]
        assert [body["sequence"] for body in inside.ends] == [1]

    asyncio.run(calls())
    assert order == ["ended", "cancelled"]


def test_a_cancelled_call_on_a_thread_is_unknown_and_not_waited_for(
    open_stack: PolicyStack, gate: threading.Event
) -> None:
    async def calls() -> None:
        begun = asyncio.Event()
        loop = asyncio.get_running_loop()

        def slow() -> None:
            loop.call_soon_threadsafe(begun.set)
            gate.wait()

        inside = Inside(open_stack, {"slow": slow})
        task = asyncio.create_task(inside.call("slow"))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert inside.outcomes == ["unknown"]

    asyncio.run(calls())


def test_a_tool_that_returned_as_the_run_was_cancelled_is_known_to_have(open_stack: PolicyStack) -> None:
    async def calls() -> None:
        begun = asyncio.Event()

        async def stubborn() -> int:
            begun.set()
            return 7

        inside = Inside(open_stack, {"f": stubborn})
        task = asyncio.create_task(inside.call("f"))
        await begun.wait()  # it has returned, and nobody has looked yet
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert inside.outcomes == ["returned"]

    asyncio.run(calls())


def test_a_trail_that_fails_meanwhile_does_not_hold_a_cancellation_up(open_stack: PolicyStack) -> None:
    async def calls() -> None:
        begun = asyncio.Event()

        async def slow() -> None:
            begun.set()
            await asyncio.Event().wait()

        inside = Inside(open_stack, {"slow": slow})
        inside.trail.fails_at = 2
        task = asyncio.create_task(inside.call("slow"))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(calls())


def test_nothing_is_performed_whose_record_is_not_durable(open_stack: PolicyStack) -> None:
    async def calls() -> None:
        inside = Inside(open_stack, {"f": lambda: pytest.fail("it was performed")})
        inside.trail.fails_at = 1
        with pytest.raises(AuditUnavailable):
            await inside.call("f")

    asyncio.run(calls())


# -- what a tool touches


@pytest.mark.parametrize(
    ("policy", "touches", "effect"),
    [
        ("", "write /srv/out", "allow"),  # nobody has to allow what the host's own code does
        ("deny: [write /srv/secret]", "write /srv/out", "allow"),
        ("deny: [write /srv]", "read /srv/out", "allow"),
        ("deny: [write /srv]", "write /srv/out", "deny"),
        ("deny: [write /srv/out/a]", "write /srv/out", "deny"),  # it can't be closed to the tool alone
        ("deny: [write /srv except /srv/out]", "write /srv/out", "allow"),
        ("deny: [shell]", "shell", "deny"),
        ("ask: [shell]", "shell", "ask"),
        ("deny: [network *.example.com]", "network api.example.com:443", "deny"),
        ("deny: [network example.org]", "network api.example.com:443", "allow"),
        ("ask: [network *.example.com:443]", "network api.example.com:443", "ask"),
        ("ask: [network *.example.com:443]", "network api.example.com:80", "allow"),
        ("rules: [{id: r, deny: [network any], unless: {group: ops}}]", "network a.example.com:443", "deny"),
        ("rules: [{id: r, deny: [network any], if: {group: ops}}]", "network a.example.com:443", "allow"),
    ],
)
def test_what_denies_an_act_denies_the_tool_that_does_it(
    stack_of: StackOf, policy: str, touches: str, effect: str
) -> None:
    def act() -> str:
        return "done"

    async def calls() -> None:
        inside = Inside(stack_of(f"allow: [tool *]\n{policy}"), [tool(touches=touches)(act)])
        told = said(await inside.call("act"))
        shown = touches.replace("/srv/", "…/")
        who = "the rule `r` (root:3)" if policy.startswith("rules") else "root:3"
        assert told == {
            "allow": "done",
            "ask": ("PermissionError", "it needs an approval, and nobody can give one"),
            "deny": ("PermissionError", f"`{shown}` is denied: the tool touches it, and {who} denies it"),
        }[effect]  # fmt: skip
        [body] = inside.begins
        assert (body["touches"], body["effect"], body["verdict"]["effect"]) == ([touches], effect, "allow")
        objected = [] if effect == "allow" else [(touches, effect, 7)]
        assert [(o["intent"], o["effect"], o["line"]) for o in body["objections"]] == objected

    asyncio.run(calls())


def test_a_bound_that_asks_about_an_act_adds_its_approval(stack_of: StackOf) -> None:
    stack = stack_of(
        "allow: [tool *]\nask: [shell]\napproval: {count: 2}", "ask: [shell]\napproval: {reviewer: human}"
    )

    async def calls() -> None:
        inside = Inside(stack, [tool(touches="shell")(lambda_free)])
        await inside.call("lambda_free")
        [body] = inside.begins
        assert (body["effect"], len(body["demands"])) == ("ask", 2)

    asyncio.run(calls())


def lambda_free() -> None: ...


def test_a_tool_does_not_reach_what_belongs_to_licet(stack_of: StackOf) -> None:
    async def calls() -> None:
        for touches, effect in (("write /srv/.licet/log", "deny"), ("write /srv/out", "allow")):
            stack = stack_of("allow: [tool *]", sealed=("/srv/.licet",))
            inside = Inside(stack, [tool(touches=touches)(lambda_free)])
            await inside.call("lambda_free")
            assert inside.begins[0]["effect"] == effect

    asyncio.run(calls())


def test_a_record_says_that_a_call_may_be_repeated(open_stack: PolicyStack) -> None:
    async def calls() -> None:
        inside = Inside(open_stack, [Tool("f", lambda_free, idempotent=True), Tool("g", lambda_free)])
        await inside.call("f")
        await inside.call("g")
        assert [body["idempotent"] for body in inside.begins] == [True, False]

    asyncio.run(calls())


# -- what ends a run


def test_a_rule_that_comes_to_deny_the_run_ends_it_at_the_next_call(stack_of: StackOf) -> None:
    """The run began in 2020, before the rule applied."""
    text = "allow: [tool *]\nrules: [{id: shut, deny: run, if: {after: 2021-01-01T00:00:00Z}}]"

    async def calls() -> None:
        inside = Inside(
            stack_of(text), {"f": lambda: pytest.fail("performed")}, datetime(2020, 1, 1, tzinfo=UTC)
        )
        reply = await inside.call("f")
        assert (reply.fatal, reply.error) == (Termination.policy_denied, None)
        assert inside.host.why_ended == "`run` is denied: the rule `shut` (root:3) denies it"
        assert inside.outcomes == ["denied"]
        assert [one["intent"] for one in inside.begins[0]["objections"]] == ["run"]
        assert [one["rule"] for one in inside.begins[0]["rules"]] == ["shut"]

    asyncio.run(calls())


def test_the_limit_of_calls_ends_a_run_and_says_so(open_stack: PolicyStack) -> None:
    async def calls() -> None:
        inside = Inside(open_stack, {"f": lambda: 1}, tool_calls=1)
        assert said(await inside.call("f")) == 1
        assert (await inside.call("f")).fatal is Termination.tool_limit
        assert inside.host.why_ended == "the limit `tool_calls` is 1"

    asyncio.run(calls())


# -- many at once


@pytest.mark.parametrize("is_async", [True, False])
def test_a_hundred_calls_at_once_are_each_decided_performed_and_recorded_once(
    open_stack: PolicyStack, is_async: bool
) -> None:
    together = threading.Barrier(100, timeout=30)

    async def calls() -> None:
        waiting, all_here = 0, asyncio.Event()

        async def later(x: int) -> int:
            nonlocal waiting
            waiting += 1
            if waiting == 100:
                all_here.set()
            await all_here.wait()
            return x * 2

        def now(x: int) -> int:
            together.wait()  # no call waits for another's thread
            return x * 2

        inside = Inside(open_stack, {"f": later if is_async else now})
        replies = await asyncio.gather(*(inside.call("f", n) for n in range(100)))
        assert [reply.value for reply in replies] == [n * 2 for n in range(100)]
        assert Counter(inside.outcomes) == {"returned": 100}
        assert sorted(body["sequence"] for body in inside.begins) == list(range(1, 101))
        assert sorted(body["sequence"] for body in inside.ends) == list(range(1, 101))
        for number in range(1, 101):
            of_one = [phase for phase, body in inside.trail.steps if body["sequence"] == number]
            assert of_one == ["before", "after"]

    asyncio.run(calls())


def test_calls_at_once_never_pass_the_limit(open_stack: PolicyStack) -> None:
    async def calls() -> None:
        async def f() -> int:
            await asyncio.sleep(0)
            return 1

        inside = Inside(open_stack, {"f": f}, tool_calls=30)
        replies = await asyncio.gather(*(inside.call("f") for _ in range(100)))
        assert Counter(reply.fatal for reply in replies) == {None: 30, Termination.tool_limit: 70}

    asyncio.run(calls())


def test_cancelling_a_hundred_leaves_each_with_an_outcome_and_no_task(open_stack: PolicyStack) -> None:
    async def calls() -> None:
        waiting, all_here = 0, asyncio.Event()

        async def slow() -> None:
            nonlocal waiting
            waiting += 1
            if waiting == 100:
                all_here.set()
            await asyncio.Event().wait()

        inside = Inside(open_stack, {"slow": slow})
        tasks = [asyncio.create_task(inside.call("slow")) for _ in range(100)]
        await all_here.wait()
        for task in tasks:
            task.cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(one, asyncio.CancelledError) for one in done)
        assert Counter(inside.outcomes) == {"unknown": 100}
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(calls())
