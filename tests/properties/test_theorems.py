"""The theorems of the policy language, and the fast evaluator against the slow one."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from generated import (
    ASKS,
    BOUNDS,
    INFERRED,
    MAYBE_LEARNING,
    REFERENCES,
    WANTS,
    Ask,
    decided_with,
    intent_of,
    plain,
    points_of,
    stack_of,
    with_rule,
)
from generated_rules import settings as strict_settings
from hypothesis import given, settings
from hypothesis import strategies as st
from licet.backend import Descriptor, Language
from licet.contract import Control, Enforcement, Evidence, Level, SandboxEnforcementContract
from licet.request import CodeNeeds, Intent
from licet.rules import Rules
from licet.select import Offer, select
from reference_evaluator import Document, Entry, Reference, Want, judge, points, world
from reference_rules import Rule, Settings
from strictness import at_least_as_strict

theorem = settings(max_examples=60, deadline=None)
ACTIONS = ("read", "write", "network", "shell")


def vote(reference: Reference, want: Want, ask: Ask) -> str:
    """What licet answers to one intent, with the rules that apply to `ask`."""
    return Rules.of(decided_with(stack_of(reference), ask).stack, "/t").vote(intent_of(want)).effect


def joined(reference: Reference, effect: str, entry: Entry) -> Reference:
    """The reference with one more entry in its root."""
    return replace(
        reference, root=replace(reference.root, **{effect: (*getattr(reference.root, effect), entry)})
    )


@settings(max_examples=200, deadline=None)
@given(REFERENCES, ASKS)
def test_fast_and_slow_agree(reference: Reference, ask: Ask) -> None:
    slow = reference.given(ask.situation)
    judged = judge(slow, ask.declared, ask.inferred or [])
    fast = decided_with(stack_of(reference), ask)
    decision = fast.decision
    assert [hit.rule.id for hit in decision.hits] == [rule.id for _, rule in slow.hits]
    assert [rule.id for rule in decision.pending] == reference.pending(ask.situation)
    answered = [v for v in decision.verdicts if v.intent.source != "granted"]
    assert [(Want(v.intent.action, v.intent.target), v.effect) for v in answered] == judged.verdicts
    assert decision.effect == judged.effect
    for action in ACTIONS:
        assert points_of(decision.opened, action) == judged.opened[action], action
    assert len(set(decision.demands)) == len(decision.demands)
    assert {plain(demand) for demand in decision.demands} == judged.demands


@theorem
@given(REFERENCES, ASKS)
def test_whatever_host_asks_and_is_not_open_can_be_asked_about_later(reference: Reference, ask: Ask) -> None:
    """Unless the request lists its intents."""
    slow = reference.given(ask.situation)
    opened = decided_with(stack_of(reference), ask).decision.opened
    closed = world("network") - points_of(opened, "network")
    asking = {point for point in closed if slow.answer("network", frozenset({point})) == "ask"}
    if ask.declared is None:
        assert all(map(opened.asks, asking))
    else:
        assert opened.network_asked == ()


@settings(max_examples=80, deadline=None)
@given(REFERENCES, ASKS)
def test_fast_and_slow_agree_on_what_is_in_force(reference: Reference, ask: Ask) -> None:
    slow = reference.given(ask.situation).in_force
    fast = decided_with(stack_of(reference), ask)
    assert fast.request.limits.stated() == fast.stack.limits.stated() == slow.limits
    assert fast.decision.required == fast.stack.requirements == slow.require
    assert fast.decision.evidence == fast.stack.evidence == slow.evidence
    assert fast.stack.only == slow.only
    assert (fast.stack.audit_mode, fast.stack.content_mode) == (slow.mode, slow.content)
    assert fast.stack.may_learn == reference.may_learn


@theorem
@given(REFERENCES, WANTS, ASKS)
def test_deny_overrides_allow(reference: Reference, want: Want, ask: Ask) -> None:
    denied = joined(reference, "deny", Entry(want.action, want.target))
    assert vote(denied, want, ask) == "deny"
    ruled = with_rule(reference, Rule("added", deny=(Entry(want.action, want.target),)))
    assert vote(ruled, want, ask) == "deny"


@theorem
@given(REFERENCES, WANTS, ASKS)
def test_ask_overrides_allow(reference: Reference, want: Want, ask: Ask) -> None:
    before = vote(reference, want, ask)
    after = vote(joined(reference, "ask", Entry(want.action, want.target)), want, ask)
    # what nobody stated was denied for want of an allow, so an `ask` is the first thing said of it
    assert after == before or (before, after) in {("allow", "ask"), ("deny", "ask")}
    assert before != "allow" or after == "ask"
    ruled = vote(with_rule(reference, Rule("added", ask=(Entry(want.action, want.target),))), want, ask)
    assert ruled == ("deny" if before == "deny" else "ask")


@theorem
@given(REFERENCES, BOUNDS, MAYBE_LEARNING)
def test_adding_a_bound_never_loosens(reference: Reference, bound: Document, ask: Ask) -> None:
    wide = decided_with(stack_of(reference), ask)
    narrow = decided_with(stack_of(replace(reference, bounds=(*reference.bounds, bound))), ask)
    assert at_least_as_strict(narrow, wide) == []


@theorem
@given(REFERENCES, ASKS, st.randoms(use_true_random=False))
def test_order_never_matters(reference: Reference, ask: Ask, random: Random) -> None:
    def mixed(given: tuple[object, ...]) -> tuple[object, ...]:
        return tuple(random.sample(given, len(given)))

    def shuffled(document: Document) -> Document:
        rules = (
            replace(rule, **{part: mixed(getattr(rule, part)) for part in ("deny", "ask", "when", "unless")})
            for rule in mixed(document.rules)
        )
        lists = {effect: mixed(getattr(document, effect)) for effect in ("allow", "ask", "deny")}
        return replace(document, rules=tuple(rules), **lists)

    bounds = mixed(tuple(shuffled(bound) for bound in reference.bounds))
    other = replace(reference, root=shuffled(reference.root), bounds=bounds)
    both = [decided_with(stack_of(r), ask) for r in (reference, other)]
    one, two = (each.decision for each in both)
    assert (one.effect, one.opened) == (two.effect, two.opened)
    assert [(v.intent, v.effect) for v in one.verdicts] == [(v.intent, v.effect) for v in two.verdicts]
    assert {hit.rule.id for hit in one.hits} == {hit.rule.id for hit in two.hits}
    assert (set(one.demands), one.required, one.evidence) == (set(two.demands), two.required, two.evidence)
    assert both[0].request.limits == both[1].request.limits
    assert (both[0].stack.only, both[0].stack.audit_mode) == (both[1].stack.only, both[1].stack.audit_mode)


@theorem
@given(REFERENCES, WANTS, ASKS)
def test_what_nobody_allows_is_denied(reference: Reference, want: Want, ask: Ask) -> None:
    silent = {
        effect: tuple(
            e for e in getattr(reference.root, effect) if not e.covers(points(want.action, want.target))
        )
        for effect in ("allow", "ask")
    }
    reference = replace(reference, root=replace(reference.root, **silent))
    assert vote(reference, want, ask) == "deny"


@theorem
@given(REFERENCES, MAYBE_LEARNING)
def test_what_is_opened_was_allowed(reference: Reference, ask: Ask) -> None:
    """Every opened point is allowed, or asked about inside an intent that asks; and none is licet's own."""
    decided = decided_with(stack_of(reference), ask)
    rules, decision = Rules.of(decided.stack, "/t"), decided.decision
    asking = [v.intent for v in decision.verdicts if v.effect == "ask" and v.intent.when == "start"]
    for action in ("read", "write", "network"):
        for point in points_of(decision.opened, action):
            answer = rules.vote(Intent(action, point)).effect
            around = (points(action, i.target) for i in asking if i.action == action and i.target)
            named = any(point in wanted for wanted in around)
            assert answer == "allow" or (answer == "ask" and named), point
            assert action == "network" or not any(point in points("read", s) for s in reference.sealed)


@theorem
@given(REFERENCES, ASKS, st.lists(WANTS, max_size=3, unique=True), INFERRED)
def test_a_list_of_intents_never_opens_more(
    reference: Reference, ask: Ask, declared: list[Want], inferred: list[Want]
) -> None:
    listed = decided_with(stack_of(reference), Ask(ask.now, declared, inferred)).decision
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


def blockers(reference: Reference, ask: Ask, descriptor: Descriptor) -> set[str]:
    """What one candidate falls short of."""
    decided = decided_with(stack_of(reference), ask)
    chosen = select(decided.request, decided.decision, CodeNeeds(), decided.stack, [Offer(descriptor)])
    return {blocker.what for blocker in chosen.candidates[0].blockers}


@theorem
@given(REFERENCES, ASKS, DESCRIPTORS, st.sampled_from(Control), LEVELS)
def test_raising_a_requirement_never_loosens(
    reference: Reference, ask: Ask, descriptor: Descriptor, control: Control, level: Level
) -> None:
    """Whoever asks more, of one control or of its evidence, gets no candidate that was refused before."""
    decided = decided_with(stack_of(reference), ask)
    before, request, stack = decided.decision, decided.request, decided.stack
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


@theorem
@given(REFERENCES, ASKS, DESCRIPTORS, strict_settings(strict=True))
def test_a_rule_that_raises_requirements_never_loosens(
    reference: Reference, ask: Ask, descriptor: Descriptor, raised: Settings
) -> None:
    tightened = with_rule(reference, Rule("added", settings=replace(raised, limits=(("memory", 1),))))
    assert blockers(reference, ask, descriptor) <= blockers(tightened, ask, descriptor)
