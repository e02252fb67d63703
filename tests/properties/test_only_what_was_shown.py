"""The theorem `only_what_was_shown_is_executed`: what else would run has another digest, and was not shown.

The slow reference is a list of all that decides what happens, taken from what the caller gave and from the
plan that the backend gets, and compared value by value; no digest and no spelling is part of it.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Any, cast

from hypothesis import example, given, settings
from hypothesis import strategies as st
from licet import values
from licet.approvals.asking import answers
from licet.approvals.callback import as_service
from licet.approvals.clocks import Moment
from licet.approvals.forms import Answer, ApprovalRequest
from licet.approvals.showing import of_call, of_run
from licet.backend import Descriptor, Language
from licet.calls import WaitingCall
from licet.contract import Control, Enforcement, Evidence, Level, SandboxEnforcementContract
from licet.decide import decide_call
from licet.digests import of_call as call_digest
from licet.plain import canonical
from licet.plan import ExecutionPlan
from licet.policy import PolicyStack
from licet.policy.facts import CallFacts
from licet.prepare import Prepared, plan_of, prepare
from licet.request import ExecutionRequest, Intent, Limits, Subject
from licet.select import Offer
from licet.testing.strategies import document_of

AT = datetime(2026, 3, 7, 12, tzinfo=UTC)
ASKED = Moment(AT.timestamp(), 1.0, "boot")
HELD = Enforcement(Level.enforced, "kernel", "a wall", (), Evidence.probed)
OPENS = frozenset({"read", "write", "network", "shell", "tool"})
POLICIES = (
    "ask: [run, read ./a, tool pay]\nallow: [network a.x.com:443]\nenv: {E: pass}\n",
    "ask: [run, read ./a, tool pay]\nallow: [network a.x.com:443]\nenv: {E: pass}\nclock: frozen\n",
    "ask: [run, read ./a, tool pay]\nallow: [network a.x.com:443]\nenv: {E: pass}\nrandom: seeded\n",
    "ask: [run, read ./a, tool pay]\nallow: [network b.x.com:443]\nenv: {E: pass}\n",
    'ask: [run, read ./a, tool pay]\nallow: [network a.x.com:443]\nenv: {E: pass, F: "1"}\n',
    "ask: [run, read ./a, tool pay]\nallow: [network a.x.com:443]\nenv: {E: pass}\ndeny: [shell]\n",
)


def pay(order: Any, amount: Any = 0) -> None: ...


def pay_more(order: Any, amount: Any = 0, note: Any = "") -> None: ...


@dataclass(frozen=True)
class World:
    """All that can be otherwise about a run, and a call that its code makes."""

    code: str = "pay('A', 1)\n"
    inputs: Mapping[str, Any] = field(default_factory=lambda: {"x": 1, "y": "é"})
    stdin: bytes = b"in"
    wall_time: float = 60.0
    environment: str = "C"
    directory: str = "/"
    file: str | None = None
    listed: tuple[str, ...] | None = None
    policy: int = 0
    version: str = "1"
    weak: str | None = None
    tool: int = 0
    metadata: str = "m"
    rate: float | int | str = 1
    args: tuple[Any, ...] = ("A", 1)
    line: int = 1

    def prepared(self) -> Prepared:
        claims = {control.value: HELD for control in Control if control.value != self.weak}
        descriptor = Descriptor(
            "b",
            self.version,
            SandboxEnforcementContract(**claims),
            Language("X"),
            OPENS,
            mounts=True,
            governs=frozenset({"clock", "random"}),
        )
        stack = PolicyStack(
            document_of(f"licet: 1\nscreen: {{mode: report}}\n{POLICIES[self.policy]}", "root", "/p"), (), ()
        )
        request = ExecutionRequest(
            code=self.code,
            inputs=self.inputs,
            stdin=self.stdin,
            limits=Limits(wall_time=self.wall_time),
            intents=None if self.listed is None else tuple(Intent("read", path) for path in self.listed),
            tools={"pay": (pay, pay_more)[self.tool]},
            files={} if self.file is None else {"f": self.file},
            subject=Subject(id="ann", properties={"rate": self.rate}),
            metadata={"note": self.metadata},
        )
        return prepare(
            request,
            stack,
            (Offer(descriptor),),
            at=AT,
            directory=self.directory,
            host_environment={"E": self.environment},
            digest=digest,
        )


def digest(name: str, content: bytes) -> str:
    made = hmac.new(b"key", len(name).to_bytes(4, "big") + name.encode() + content, "sha256")
    return f"hmac-sha256:{made.hexdigest()}"


def run_of(world: World) -> tuple[ApprovalRequest, ExecutionPlan, Prepared]:
    made = world.prepared()
    assert made.decision.effect == "ask", made.decision.refusals
    assert made.selection.chosen is not None
    return (
        of_run(made, "R", "A", ASKED, digest),
        plan_of(made, made.selection.chosen, "R"),
        made,
    )


def call_of(world: World) -> tuple[ApprovalRequest, ExecutionPlan, WaitingCall]:
    _, plan, made = run_of(world)
    arguments = values.exactly([list(world.args), {}])
    named = call_digest(digest, plan.plan_digest, 1, "pay", arguments)
    waiting = WaitingCall(1, "pay", named, arguments, world.line)
    facts = replace(made.facts, call=CallFacts("pay", {}))
    decision = decide_call(facts, made.stack, world.line)
    return of_call(made, plan, waiting, decision, "A", ASKED, digest), plan, waiting


def seen(request: ApprovalRequest) -> dict[str, Any]:
    """What a person can see of it, who compares no digests of plans and calls."""
    return {name: part for name, part in request.document.items() if name != "digest"}


def same(one: Any, other: Any) -> bool:
    """Whether two values are one to a program that may look at them, down to their types and order."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    return repr(one) == repr(other)


def what_runs(world: World, plan: ExecutionPlan) -> list[Any]:
    """The slow reference: what the backend gets, and what it is."""
    apart = ("run_id", "seal", "plan_digest", "inputs", "limits", "contract")
    return [
        *(getattr(plan, one.name) for one in fields(plan) if one.name not in apart),
        dict(sorted(plan.inputs.items())),
        plan.limits.stated(),
        sorted(plan.contract.levels.items()),
        *(world.policy, world.version, world.tool),
    ]


TEXTS = st.text(st.sampled_from("a\\x8é\x85\u2028\u202e\n \t\"'"), max_size=6)
NUMBERS = st.one_of(st.integers(-2, 2), st.sampled_from([2**53, 2**53 + 1, 0.0, -0.0, 1.0, 0.1, True, None]))
VALUES = st.recursive(
    st.one_of(NUMBERS, TEXTS, st.binary(max_size=2)),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(TEXTS, inner, max_size=2)),
    max_leaves=4,
)
PARTS: dict[str, st.SearchStrategy[Any]] = {
    "code": TEXTS.map(lambda text: f"# {text!s}\n".replace("\x0c", "")),
    "inputs": st.dictionaries(st.sampled_from(["x", "y", "é"]), VALUES, max_size=3),
    "stdin": st.one_of(st.binary(max_size=3), TEXTS.map(str.encode)),
    "wall_time": st.sampled_from([60.0, 59.0, 0.5]),
    "environment": st.one_of(TEXTS, st.sampled_from(["\udcff", "\\udcff"])),
    "directory": st.sampled_from(["/", "/tmp"]),
    "file": st.sampled_from([None, "/p/a/1", "/p/a/2"]),
    "listed": st.sampled_from([None, (), ("/p/a/1",), ("/p/a/2",)]),
    "policy": st.integers(0, len(POLICIES) - 1),
    "version": st.sampled_from(["1", "2"]),
    "weak": st.sampled_from([None, "privilege_drop", "syscall_filter"]),
    "tool": st.integers(0, 1),
    "metadata": TEXTS,
    "rate": st.sampled_from([1, 1.0, "1.0", "1", 2**60, hex(2**60)]),
    "args": st.lists(VALUES, min_size=1, max_size=2).map(tuple),
    "line": st.integers(1, 2),
}
WORLDS = st.fixed_dictionaries({}, optional=PARTS).map(lambda some: World(**some))
CHANGES = st.one_of([part.map(lambda value, name=name: {name: value}) for name, part in PARTS.items()])


@settings(max_examples=120, deadline=None)
@given(WORLDS, CHANGES)
@example(World(code="# \x85\n"), {"code": "# \\x85\n"})
@example(World(environment="\udcff"), {"environment": "\\udcff"})
@example(World(environment="C"), {"environment": "D"})
@example(World(inputs={"é": 1}), {"inputs": {"x": 1}})
@example(World(args=("A",)), {"args": ("B",)})
@example(World(inputs={"x": 1.0}), {"inputs": {"x": 1}})
@example(World(stdin=b"\xff"), {"stdin": b'{"$type":"bytes","base64":"/w=="}'})
def test_only_what_was_shown_is_executed(world: World, change: Mapping[str, Any]) -> None:
    other = replace(world, **change)
    (shown, plan, _), (asked, planned, _) = run_of(world), run_of(other)
    runs_alike = same(what_runs(world, plan), what_runs(other, planned))
    assert (canonical(shown.document) == canonical(asked.document)) == (shown.shown == asked.shown)
    if not runs_alike:
        assert seen(shown) != seen(asked)
        assert shown.digest != asked.digest or shown.fields != asked.fields
    said_alike = all(same(getattr(world, name), getattr(other, name)) for name in ("metadata", "rate"))
    if runs_alike and said_alike and world.listed == other.listed and world.file == other.file:
        assert (shown.digest, shown.shown, shown.fields) == (asked.digest, asked.shown, asked.fields)
    if not said_alike:
        assert shown.shown != asked.shown


@settings(max_examples=120, deadline=None)
@given(WORLDS, CHANGES)
@example(World(args=(1,)), {"args": (1.0,)})
@example(World(args=({"$type": "int"},)), {"args": ([["$type", "int"]],)})
def test_only_the_call_that_was_shown_is_made(world: World, change: Mapping[str, Any]) -> None:
    other = replace(world, **change)
    (shown, plan, _), (asked, planned, _) = call_of(world), call_of(other)
    is_same_call = (
        same(what_runs(world, plan), what_runs(other, planned))
        and same(world.args, other.args)
        and world.line == other.line
    )
    assert (canonical(shown.document) == canonical(asked.document)) == (shown.shown == asked.shown)
    if not is_same_call:
        assert seen(shown) != seen(asked)
    if not same(world.args, other.args):
        assert shown.digest != asked.digest
        assert shown.fields != asked.fields


@settings(max_examples=30, deadline=None)
@given(WORLDS, CHANGES)
def test_an_answer_to_one_counts_for_no_other(world: World, change: Mapping[str, Any]) -> None:
    (shown, _, _), (asked, _, _) = run_of(world), run_of(replace(world, **change))

    async def heard(request: ApprovalRequest, answer: Answer) -> list[Answer]:
        async with answers([as_service(lambda one: answer)], request, deadline=30) as given:
            return [one async for one in given]

    (answer,) = asyncio.run(heard(asked, shown.approve("bob")))
    assert answer.approve == (shown.document == asked.document)
    assert asyncio.run(heard(asked, asked.approve("bob"))) == [asked.approve("bob")]
    assert cast("str", asked.document["policy"]["digest"]) == asked.policy_digest
