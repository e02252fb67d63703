"""The theorems of the policy language, and the fast evaluator against the slow one."""

from __future__ import annotations

from dataclasses import replace

from generated import (
    BOUNDS,
    DECLARED,
    INFERRED,
    REFERENCES,
    WANTS,
    decide_with,
    decided_with,
    intent_of,
    points_of,
    stack_of,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from licet.backend import Descriptor, Language
from licet.contract import Control, Enforcement, Evidence, Level, SandboxEnforcementContract
from licet.policy import PolicyStack
from licet.request import CodeNeeds, Intent
from licet.rules import SEVERITY, Rules
from licet.select import Offer, select
from reference_evaluator import Document, Entry, Reference, Want, judge, points

theorem = settings(max_examples=80, deadline=None)
ACTIONS = ("read", "write", "network", "shell")


def vote(stack: PolicyStack, want: Want) -> str:
    return Rules.of(stack, "/t").vote(intent_of(want)).effect


def joined(reference: Reference, effect: str, entry: Entry) -> Reference:
    """The reference with one more entry in its root."""
    return replace(
        reference, root=replace(reference.root, **{effect: (*getattr(reference.root, effect), entry)})
    )


@settings(max_examples=200, deadline=None)
@given(REFERENCES, DECLARED, INFERRED)
def test_fast_and_slow_agree(reference: Reference, declared: list[Want] | None, inferred: list[Want]) -> None:
    judged = judge(reference, declared, inferred)
    decision = decide_with(stack_of(reference), declared, inferred)
    answered = [v for v in decision.verdicts if v.intent.source != "granted"]
    assert [(Want(v.intent.action, v.intent.target), v.effect) for v in answered] == judged.verdicts
    assert decision.effect == judged.effect
    for action in ACTIONS:
        assert points_of(decision.opened, action) == judged.opened[action], action


@theorem
@given(REFERENCES, WANTS)
def test_deny_overrides_allow(reference: Reference, want: Want) -> None:
    denied = joined(reference, "deny", Entry(want.action, want.target))
    assert vote(stack_of(denied), want) == "deny"


@theorem
@given(REFERENCES, WANTS)
def test_ask_overrides_allow(reference: Reference, want: Want) -> None:
    before = vote(stack_of(reference), want)
    after = vote(stack_of(joined(reference, "ask", Entry(want.action, want.target))), want)
    # what nobody stated was denied for want of an allow, so an `ask` is the first thing said of it
    assert after == before or (before, after) in {("allow", "ask"), ("deny", "ask")}
    assert before != "allow" or after == "ask"


@theorem
@given(REFERENCES, BOUNDS, DECLARED, INFERRED)
def test_adding_a_bound_never_loosens(
    reference: Reference, bound: Document, declared: list[Want] | None, inferred: list[Want]
) -> None:
    wide = decide_with(stack_of(reference), declared, inferred)
    narrow = decide_with(stack_of(replace(reference, bounds=(*reference.bounds, bound))), declared, inferred)
    assert SEVERITY[narrow.effect] >= SEVERITY[wide.effect]
    for before, after in zip(wide.verdicts, narrow.verdicts, strict=False):
        if after.intent.source != "granted":
            assert SEVERITY[after.effect] >= SEVERITY[before.effect], after
    for action in ACTIONS:
        assert points_of(narrow.opened, action) <= points_of(wide.opened, action), action


@theorem
@given(REFERENCES, DECLARED, INFERRED, st.randoms(use_true_random=False))
def test_order_never_matters(
    reference: Reference, declared: list[Want] | None, inferred: list[Want], random: st.DataObject
) -> None:
    def shuffled(document: Document) -> Document:
        lists = {effect: [*getattr(document, effect)] for effect in ("allow", "ask", "deny")}
        for entries in lists.values():
            random.shuffle(entries)  # type: ignore[attr-defined]
        return Document(**{effect: tuple(entries) for effect, entries in lists.items()})

    bounds = [shuffled(bound) for bound in reference.bounds]
    random.shuffle(bounds)  # type: ignore[attr-defined]
    other = replace(reference, root=shuffled(reference.root), bounds=tuple(bounds))
    one, two = (decide_with(stack_of(r), declared, inferred) for r in (reference, other))
    assert (one.effect, one.opened, one.policy_digest) == (two.effect, two.opened, two.policy_digest)
    assert [(v.intent, v.effect) for v in one.verdicts] == [(v.intent, v.effect) for v in two.verdicts]


@theorem
@given(REFERENCES, WANTS)
def test_what_nobody_allows_is_denied(reference: Reference, want: Want) -> None:
    silent = {
        effect: tuple(
            e for e in getattr(reference.root, effect) if not e.covers(points(want.action, want.target))
        )
        for effect in ("allow", "ask")
    }
    reference = replace(reference, root=replace(reference.root, **silent))
    assert vote(stack_of(reference), want) == "deny"


@theorem
@given(REFERENCES, DECLARED, INFERRED)
def test_what_is_opened_was_allowed(
    reference: Reference, declared: list[Want] | None, inferred: list[Want]
) -> None:
    """Every opened point is allowed, or asked about inside an intent that asks; and none is licet's own."""
    stack = stack_of(reference)
    rules = Rules.of(stack, "/t")
    decision = decide_with(stack, declared, inferred)
    asking = [v.intent for v in decision.verdicts if v.effect == "ask"]
    for action in ("read", "write", "network"):
        for point in points_of(decision.opened, action):
            answer = rules.vote(Intent(action, point)).effect
            around = (points(action, i.target) for i in asking if i.action == action and i.target)
            named = any(point in wanted for wanted in around)
            assert answer == "allow" or (answer == "ask" and named), point
            assert action == "network" or not any(point in points("read", s) for s in reference.sealed)


@theorem
@given(REFERENCES, st.lists(WANTS, max_size=3, unique=True), INFERRED)
def test_a_list_of_intents_never_opens_more(
    reference: Reference, declared: list[Want], inferred: list[Want]
) -> None:
    stack = stack_of(reference)
    listed = decide_with(stack, declared, inferred)
    for action in ("read", "write", "network"):
        named = {p for w in declared if w.action == action for p in points(action, w.target)}
        assert points_of(listed.opened, action) <= named


LEVELS = st.sampled_from([Level.planned, Level.partial, Level.enforced])
CLAIMS = st.dictionaries(st.sampled_from(Control), st.builds(Enforcement, st.sampled_from(Level)))
DESCRIPTORS = st.builds(
    lambda claims, opens: Descriptor(
        "b", "1", SandboxEnforcementContract(**claims), Language("l"), frozenset(opens)
    ),
    CLAIMS.map(lambda claims: dict.fromkeys(Control, Enforcement(Level.enforced)) | claims),
    st.lists(st.sampled_from(ACTIONS), unique=True),
)


@theorem
@given(REFERENCES, DECLARED, DESCRIPTORS, st.sampled_from(Control), LEVELS)
def test_raising_a_requirement_never_loosens(
    reference: Reference, declared: list[Want] | None, descriptor: Descriptor, control: Control, level: Level
) -> None:
    """Whoever asks more, of one control or of its evidence, gets no candidate that was refused before."""
    stack = stack_of(reference)
    before, request = decided_with(stack, declared, [])
    raised = max(level, before.required.get(control, level), key=lambda item: item.rank)
    stricter = replace(before, required={**before.required, control: raised})
    proved = replace(before, evidence=Evidence.probed)
    satisfied = {
        name: select(request, decision, CodeNeeds(), stack, [Offer(descriptor)]).candidates[0].blockers
        for name, decision in (("before", before), ("stricter", stricter), ("proved", proved))
    }
    refused = {blocker.what for blocker in satisfied["before"]}
    assert refused <= {blocker.what for blocker in satisfied["stricter"]}
    assert refused <= {blocker.what for blocker in satisfied["proved"]}
