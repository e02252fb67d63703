"""What is added to a decision: votes of other deciders, demands, and what waits for a call."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from licet.applying import applied_to, facts_of
from licet.decide import Ballot, Decision, decide, tightened
from licet.normalize import lowered
from licet.policy import PolicyStack
from licet.prepare import Prepared, prepare
from licet.request import ExecutionRequest, Intent, Limits, NormalizedRequest, ScreenReport, Subject

StackOf = Callable[..., PolicyStack]
Normalized = Callable[..., NormalizedRequest]
Decided = Callable[..., Decision]

AT = datetime(2026, 3, 4, tzinfo=UTC)
DEFAULT = "1 person"


@pytest.fixture
def ruled(normalized: Normalized) -> Decided:
    """Decide with the rules that apply."""

    def make(stack: PolicyStack, *declared: Intent, **fields: Any) -> Decision:
        request = normalized(stack=stack, intents=tuple(declared), **fields)
        applied = applied_to(stack, facts_of(request, ScreenReport(), AT, stack))
        return decide(request, stack.applying(applied.rules), ScreenReport(), applied)

    return make


def spelled(decision: Decision) -> list[str]:
    return [str(demand) for demand in decision.demands]


@pytest.mark.parametrize(
    ("policy", "votes", "effect", "demands"),
    [
        ("", [], "allow", []),
        ("", [None], "allow", []),
        ("", ["ask"], "ask", [DEFAULT]),
        ("", ["deny"], "deny", []),
        ("", ["ask", None, "deny"], "deny", [DEFAULT]),
        ("ask: [run]", [None], "ask", [DEFAULT]),
        ("ask: [run]", ["ask"], "ask", [DEFAULT]),
        ("ask: [run]\napproval: {count: 2}", ["ask", "ask"], "ask", ["2 persons", DEFAULT]),
        ("ask: [run]", ["deny"], "deny", [DEFAULT]),
        ("deny: [run]", ["ask"], "deny", [DEFAULT]),
        ("rules: [{id: a, approval: {count: 3}}]", ["ask"], "ask", [DEFAULT, "3 persons"]),
        ("rules: [{id: a, approval: {count: 3}}]", [None], "allow", []),
        ("ask: [run]\nrules: [{id: a, approval: {count: 3}}]", ["ask"], "ask", [DEFAULT, "3 persons"]),
    ],
)
def test_votes_only_tighten(
    ruled: Decided, stack_of: StackOf, policy: str, votes: list[Any], effect: str, demands: list[str]
) -> None:
    before = ruled(stack_of(policy))
    ballots = [Ballot(f"d{n}", vote, "why") for n, vote in enumerate(votes)]
    after = tightened(before, ballots)
    assert (after.effect, spelled(after), after.ballots) == (effect, demands, tuple(ballots))
    assert (after.opened, after.verdicts, after.required) == (before.opened, before.verdicts, before.required)


# Demands


@pytest.mark.parametrize(
    ("texts", "demands"),
    [
        (["allow: [shell]"], []),
        (["ask: [shell]"], ["1 person"]),
        (["ask: [shell]\napproval: {count: 2, from: [a, b]}"], ["2 persons of a or b"]),
        (["ask: [shell, run]"], ["1 person"]),
        (["ask: [shell]", "ask: [shell]\napproval: {count: 1}"], ["1 person"]),
        (["ask: [shell]", "ask: [shell]\napproval: {reviewer: human}"], ["1 person", "1 human person"]),
        (["allow: [shell]", "ask: [shell]\napproval: {count: 2}"], ["2 persons"]),
        (["allow: [shell]\nrules: [{id: a, ask: shell, approval: {count: 2}}]"], ["2 persons"]),
        (
            ["allow: [shell]\napproval: {from: [x]}\nrules: [{id: a, ask: shell, approval: {count: 2}}]"],
            ["2 persons of x"],
        ),
        (["ask: [shell]\nrules: [{id: a, approval: {count: 2}}]"], ["1 person", "2 persons"]),
        (["allow: [shell]\nrules: [{id: a, approval: {count: 2}}]"], []),
        (["allow: [shell]\nrules: [{id: a, deny: write /x, approval: {count: 2}}]", "ask: [run]"], None),
        (["ask: [shell]\nrules: [{id: a, ask: write /x, approval: {count: 2}}]"], ["1 person"]),
        (["ask: [shell]\nrules: [{id: a, if: {tenant: z}, approval: {count: 2}}]"], ["1 person"]),
    ],
)
def test_what_asks_demands_and_demands_add_up(
    ruled: Decided, stack_of: StackOf, texts: list[str], demands: list[str] | None
) -> None:
    decision = ruled(stack_of(*texts), Intent("shell"), subject=Subject(tenant="acme"))
    assert spelled(decision) == (["1 person", "2 persons"] if demands is None else demands)


def test_what_is_denied_demands_nothing_of_its_own(ruled: Decided, stack_of: StackOf) -> None:
    stack = stack_of("ask: [shell]\nrules: [{id: a, deny: shell, approval: {count: 2}}]")
    assert (ruled(stack, Intent("shell")).effect, spelled(ruled(stack, Intent("shell")))) == ("deny", [])


def test_a_tool_that_asks_demands_nothing_before_its_call(ruled: Decided, stack_of: StackOf) -> None:
    decision = ruled(stack_of("ask: [tool pay]"), Intent("tool", "pay"))
    assert (decision.effect, spelled(decision)) == ("allow", [])
    assert [str(demand) for demand in decision.verdicts[1].demands] == ["1 person"]


# What waits


@pytest.mark.parametrize(
    ("intent", "reason"),
    [
        (
            Intent("tool", "pay"),
            "root:3 allows it; `a` and `b` will look at the arguments of each call",
        ),
        (Intent("tool", "find"), "root:3 allows it; `b` will look at the arguments of each call"),
        (Intent("tool", "no"), "root:4 denies it"),
        (Intent("shell"), "root:3 allows it"),
    ],
)
def test_a_tool_says_which_rules_wait_for_its_calls(
    ruled: Decided, stack_of: StackOf, intent: Intent, reason: str
) -> None:
    stack = stack_of(
        "tools: {pay: {n: int}, find: {n: int}, no: {n: int}}\nallow: [tool pay, tool find, shell]\n"
        "deny: [tool no]\nrules:\n  - {id: a, ask: tool pay, if: args.n > 1}\n"
        "  - {id: b, deny: 'tool *', if: args.n > 2}\n  - {id: c, ask: tool pay}\n"
    )
    decision = ruled(stack, intent)
    assert [rule.id for rule in decision.pending] == ["a", "b"]
    if intent.target == "pay":
        reason = "the rule `c` (root:8) asks about it; `a` and `b` will look at the arguments of each call"
    assert decision.verdicts[1].reason == reason


# Limits that rules lower


def test_a_rule_lowers_limits_and_says_so(normalized: Normalized) -> None:
    request = normalized("1234", stdin="abc", limits={"memory": 10, "wall_time": 5})
    after = lowered(request, Limits(memory=4, wall_time=9, cpu_time=2), lambda name, _: f"new {name}")
    assert (after.limits.memory, after.limits.wall_time, after.limits.cpu_time) == (4, 5.0, 2.0)
    assert [(c.field, c.requested, c.effective, c.reason) for c in after.changes[len(request.changes) :]] == [
        ("limits.cpu_time", None, 2.0, "a rule allows no more"),
        ("limits.memory", 10, 4, "a rule allows no more"),
    ]
    assert after.digests.limits == "new limits"
    assert after.digests.code == request.digests.code
    assert after.violations == ()


def test_limits_that_lower_nothing_change_nothing(normalized: Normalized) -> None:
    request = normalized("1", limits={"memory": 10})
    assert lowered(request, Limits(memory=10, wall_time=60), lambda name, _: "new") is request


@pytest.mark.parametrize(
    ("limits", "codes"),
    [
        (Limits(code=4, stdin=3), []),
        (Limits(code=3), ["code_too_large"]),
        (Limits(stdin=2), ["stdin_too_large"]),
        (Limits(code=3, stdin=2), ["code_too_large", "stdin_too_large"]),
    ],
)
def test_what_is_too_large_for_a_rule_is_a_violation(
    normalized: Normalized, limits: Limits, codes: list[str]
) -> None:
    after = lowered(normalized("1234", stdin="abc"), limits, lambda name, _: name)
    assert [violation.code for violation in after.violations] == codes


def test_what_was_too_large_already_is_told_once(normalized: Normalized) -> None:
    request = normalized("1234", stdin="abc", limits={"code": 3, "stdin": 2})
    after = lowered(request, Limits(code=1, stdin=1), lambda name, _: name)
    assert [violation.code for violation in after.violations] == ["code_too_large", "stdin_too_large"]


# Rehearsal


@pytest.fixture
def rehearsed(stack_of: StackOf) -> Callable[..., Prepared]:
    """Prepare `code` under a root and a bound that only rehearses."""

    def make(root: str, bound: str, code: str = "1", **fields: Any) -> Prepared:
        whole = stack_of(root, f"mode: dry_run\n{bound}")
        stack = PolicyStack(whole.root, rehearsed=whole.bounds)
        deciders = fields.pop("deciders", None)
        return prepare(
            ExecutionRequest(code=code, **fields),
            stack,
            (),
            at=AT,
            directory="/w",
            host_environment={},
            digest=lambda name, content: f"{name}:{len(content)}",
            deciders=deciders,
        )

    return make


@pytest.mark.parametrize(
    ("bound", "code", "effect", "differing"),
    [
        ("", "1", "allow", []),
        ("deny: [run]", "1", "deny", ["deny run"]),
        ("ask: [run]", "1", "ask", ["ask run"]),
        ("deny: [shell]", "1", "allow", ["deny shell"]),
        ("rules: [{id: a, deny: run, if: {tenant: acme}}]", "1", "deny", ["deny run"]),
        ("rules: [{id: a, deny: run, if: {tenant: globex}}]", "1", "allow", []),
        ("limits: {code: 3}", "12345", "deny", []),
        ("rules: [{id: a, limits: {code: 3}}]", "12345", "deny", []),
        ("screen: {modules: {deny: [math]}}", "import math", "deny", []),
    ],
)
def test_a_rehearsal_tells_what_would_differ(
    rehearsed: Callable[..., Prepared], bound: str, code: str, effect: str, differing: list[str]
) -> None:
    prepared = rehearsed("allow: [shell]", bound, code, subject=Subject(tenant="acme"))
    decision = prepared.decision
    [told] = decision.rehearsals
    assert (decision.effect, decision.hits, prepared.request.limits.code) == ("allow", (), 1 << 20)
    assert (told.document, told.effect) == ("bound1", effect)
    assert [f"{verdict.effect} {verdict.intent}" for verdict in told.verdicts] == differing
    assert [hit.rule.id for hit in told.hits] == (["a"] if "id: a" in bound and "globex" not in bound else [])


def test_rehearsals_are_no_business_of_other_deciders(rehearsed: Callable[..., Prepared]) -> None:
    seen: list[Decision] = []

    def deciders(request: NormalizedRequest, decision: Decision) -> list[Ballot]:
        seen.append(decision)
        return [Ballot("d", "ask", "who?")]

    decision = rehearsed("", "deny: [run]", deciders=deciders).decision
    assert [(one.effect, one.rehearsals[0].effect) for one in seen] == [("allow", "deny")]
    assert (decision.effect, decision.rehearsals[0].effect) == ("ask", "deny")
