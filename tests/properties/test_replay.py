"""Recorded requests decided again, and the lines that are suggested from them, over generated policies."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from generated import DECLARED, INFERRED, REFERENCES, document_of, intent_of
from hypothesis import given, settings
from hypothesis import strategies as st
from licet import bodies
from licet.applying import canonical
from licet.backend import Descriptor, Language
from licet.contract import Control, Enforcement, Evidence, Level, SandboxEnforcementContract
from licet.decide import Decision
from licet.normalize import normalize
from licet.plain import plain_body
from licet.policy import PolicyStack
from licet.prepare import Prepared, decide_on
from licet.request import ExecutionRequest, Limits, ScreenReport, Subject
from licet.select import Offer
from licet.testing import strategies
from licet.workbench.history.impact import Impact
from licet.workbench.history.recorded import RecordedAccess, RecordedRun
from licet.workbench.history.replay import Replayer
from licet.workbench.history.suggest import Suggester, Suggestion
from reference_evaluator import Reference, Want

slow = settings(max_examples=40, deadline=None)
AT = datetime(2026, 3, 7, 12, tzinfo=UTC)
FILE = "/t/policy.yaml"
STRONG = SandboxEnforcementContract(
    **{c.value: Enforcement(Level.enforced, "kernel", "a test", (), Evidence.declared) for c in Control}
)
OFFERS = (
    Offer(
        Descriptor(
            "all", "1", STRONG, Language("X"), frozenset({"read", "write", "network", "shell", "tool"})
        )
    ),
    Offer(Descriptor("files", "1", STRONG, Language("X"), frozenset({"read", "write"}), 1.0)),
)
SUBJECTS = st.builds(
    Subject,
    id=st.sampled_from(["ada", "unknown"]),
    tenant=st.sampled_from([None, "acme"]),
    groups=st.sampled_from([(), ("finance",)]),
    properties=st.dictionaries(
        st.sampled_from(["plan", "rate"]),
        st.one_of(st.text("aé \\", max_size=3), st.booleans(), st.integers(), st.floats(allow_nan=False)),
    ),
)
LIMITS = st.builds(
    Limits,
    code=st.sampled_from([None, 1, 2]),
    wall_time=st.sampled_from([None, 0.25]),
    memory=st.sampled_from([None, 2**52]),
)


def text_of(reference: Reference) -> str:
    root, lines = reference.root, ["licet: 1", "sandbox: {evidence: declared}"]
    for effect in ("allow", "ask", "deny"):
        lines.append(f"{effect}: [{', '.join(repr(str(entry)) for entry in getattr(root, effect))}]")
    return "\n".join((*lines, ""))


def stack_of(reference: Reference, text: str) -> PolicyStack:
    bounds = tuple(document_of(bound, f"bound{n}") for n, bound in enumerate(reference.bounds))
    return PolicyStack(strategies.document_of(text, FILE, "/t"), bounds, reference.sealed)


def prepared(
    stack: PolicyStack, declared: list[Want] | None, inferred: list[Want], **fields: Any
) -> Prepared:
    request = normalize(
        ExecutionRequest(
            code="1\n", intents=None if declared is None else tuple(map(intent_of, declared)), **fields
        ),
        stack,
        directory="/t",
        host_environment={},
        digest=lambda name, content: name,
    )
    report = ScreenReport(intents=tuple(intent_of(want, "inferred") for want in inferred))
    return decide_on(
        request, canonical(report, request), stack, OFFERS, at=AT, digest=lambda name, content: name
    )


def recorded(made: Prepared, run_id: str = "R", accesses: tuple[RecordedAccess, ...] = ()) -> RecordedRun:
    """What a log would hold of a run, to the byte."""
    parts = (
        bodies.request(made),
        bodies.decision(made.decision, made.stack),
        bodies.selection(made.selection),
    )
    request, decision, selection = (json.loads(json.dumps(plain_body(part))) for part in parts)
    return RecordedRun("log", run_id, AT.isoformat(), request, decision, selection, [], list(accesses))


def essence(decision: Decision) -> Any:
    return (
        decision.effect,
        [(v.intent, v.effect, v.by, v.reason, v.demands, v.omitted) for v in decision.verdicts],
        [v.code for v in decision.violations],
        decision.opened,
        decision.wanted,
        decision.demands,
        decision.required,
    )


@slow
@given(REFERENCES, DECLARED, INFERRED, SUBJECTS, LIMITS)
def test_what_was_recorded_is_decided_again(
    reference: Reference, declared: list[Want] | None, inferred: list[Want], subject: Subject, limits: Limits
) -> None:
    stack = stack_of(reference, text_of(reference))
    made = prepared(stack, declared, inferred, subject=subject, limits=limits, tools={"find": print})
    run = recorded(made)
    again = Replayer(stack, OFFERS).request(run)
    assert essence(again.decision) == essence(made.decision)
    assert again.selection.candidates == made.selection.candidates
    assert (again.request.limits, again.request.subject) == (made.request.limits, subject)
    assert (again.facts, again.needs) == (made.facts, made.needs)
    found = Impact(stack, OFFERS, "1")
    found.add(run)
    assert not found.changed


@slow
@given(st.lists(st.tuples(REFERENCES, DECLARED, INFERRED), min_size=1, max_size=3), REFERENCES)
def test_impact_counts_what_changes(
    past: list[tuple[Reference, list[Want] | None, list[Want]]], new: Reference
) -> None:
    stack = stack_of(new, text_of(new))
    found = Impact(stack, OFFERS, "1")
    flips: dict[str, int] = {}
    for number, (old, declared, inferred) in enumerate(past):
        made = prepared(stack_of(old, text_of(old)), declared, inferred)
        found.add(recorded(made, f"R{number}"))
        answers = [outcome(one) for one in (made, prepared(stack, declared, inferred))]
        if answers[0] != answers[1]:
            kind = " → ".join(answers)
            flips[kind] = flips.get(kind, 0) + 1
    same = found.differences | found.changes
    assert {k: kind.count for k, kind in same.items() if k != "asks → asks others"} == flips


def outcome(made: Prepared) -> str:
    if made.decision.effect == "deny":
        return "denied"
    if made.selection.chosen is None:
        return "unrunnable"
    return {"allow": "allowed", "ask": "asks"}[made.decision.effect]


def suggested(stack: PolicyStack, text: str, runs: list[RecordedRun], after: int = 5) -> Suggestion:
    suggester = Suggester(stack, OFFERS, text, directory_after=after)
    for run in runs:
        suggester.add(run)
    return suggester.finish()


def gets(run: RecordedRun, stack: PolicyStack) -> int:
    """How much of what a run wanted the policy gives it: a start, its tools, and what it was refused then."""
    decision = Replayer(stack, OFFERS, learning=False).request(run).decision
    if decision.effect == "deny":
        return 0
    tools = sum(v.effect != "deny" for v in decision.verdicts if v.intent.action == "tool")
    return 1 + tools + sum(decision.opened.opens(one.action, one.target) for one in run.accesses)


ACCESSES = st.lists(
    st.builds(
        RecordedAccess,
        st.sampled_from(["read", "write"]),
        st.sampled_from(["/t/a", "/t/a/b", "/t/e"]),
        st.just(False),
    ),
    max_size=2,
).map(tuple)


@settings(max_examples=80, deadline=None)
@given(REFERENCES, st.lists(st.tuples(DECLARED, INFERRED, ACCESSES), min_size=1, max_size=3))
def test_a_suggestion_lets_runs_through_and_is_minimal(
    reference: Reference, asked: list[tuple[list[Want] | None, list[Want], tuple[RecordedAccess, ...]]]
) -> None:
    text = text_of(reference)
    stack = stack_of(reference, text)
    runs = [
        recorded(prepared(stack, declared, inferred), f"R{n}", accesses)
        for n, (declared, inferred, accesses) in enumerate(asked)
    ]
    found = suggested(stack, text, runs)
    before = [gets(run, stack) for run in runs]
    if not found.lines:
        assert found.text is None
        return
    assert found.problem is None and found.text is not None
    after = [gets(run, stack_of(reference, found.text)) for run in runs]
    assert all(old <= new for old, new in zip(before, after, strict=True)) and before != after
    decisions = [Replayer(stack, OFFERS).request(run).decision for run in runs]
    seen = {(v.intent.action, v.intent.target) for decision in decisions for v in decision.verdicts}
    seen |= {(access.action, access.target) for run in runs for access in run.accesses}
    for dropped in found.lines:
        assert (dropped.intent.action, dropped.intent.target) in seen, "never wider than seen"
        kept = [line.entry for line in found.lines if line is not dropped]
        without = text.replace("allow: [", f"allow: [{', '.join(map(repr, kept))}{', ' if kept else ''}")
        fewer = [gets(run, stack_of(reference, without)) for run in runs]
        assert sum(fewer) < sum(after), f"`{dropped.entry}` is needless"


def silent_on_learning(reference: Reference) -> Reference:
    """The same policies, none of which says anything of `learn`."""
    root, *bounds = (replace(one, learn=None) for one in (reference.root, *reference.bounds))
    return replace(reference, root=root, bounds=tuple(bounds))


@slow
@given(REFERENCES, DECLARED, INFERRED)
def test_learning_opens_nothing_more_and_stops_only_at_what_somebody_forbids(
    reference: Reference, declared: list[Want] | None, inferred: list[Want]
) -> None:
    reference = silent_on_learning(reference)
    text = text_of(reference)
    plain = prepared(stack_of(reference, text), declared, inferred).decision
    learning = stack_of(reference, text + "learn: true\n")
    learned = prepared(learning, declared, inferred, learn=True).decision
    denied = [v for v in plain.verdicts if v.effect == "deny" and v.intent.when == "start"]
    assert learned.opened == plain.opened
    assert (learned.effect == "deny") == any(not verdict.omitted for verdict in denied)
    assert learned.learn


@slow
@given(REFERENCES, DECLARED, INFERRED)
def test_without_leave_to_learn_nothing_runs(
    reference: Reference, declared: list[Want] | None, inferred: list[Want]
) -> None:
    reference = silent_on_learning(reference)
    stack = stack_of(reference, text_of(reference))
    refused = prepared(stack, declared, inferred, learn=True).decision
    assert (refused.effect, refused.learn) == ("deny", False)
    assert [v.message for v in refused.refusals] == [
        f"a run may not learn here: `{FILE}` does not say `learn: true`"
    ]
