"""The theorems of rules: what applies, that it only tightens, and that rehearsed bounds decide nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from random import Random

from generated import (
    ASKS,
    MAYBE_LEARNING,
    REFERENCES,
    REHEARSING,
    Ask,
    decided_with,
    digest,
    normalized,
    of_a_rule,
    plain,
    points_of,
    stack_of,
    with_rule,
)
from generated_rules import CALLS, instant_of, subject_of
from hypothesis import given, settings
from hypothesis import strategies as st
from licet.applying import Applied, Hit, applied_to, traced
from licet.decide import Decision, decide_call
from licet.policy import PolicyStack
from licet.policy.facts import CallFacts, Facts
from licet.policy.signatures import Parameter, Signature, Type
from licet.policy.truth import Truth
from licet.prepare import Prepared, prepare
from licet.rules import SEVERITY
from reference_evaluator import ONLY, Document, Reference, Want, judge, points
from reference_rules import ASKS_WHAT_IS_THERE, Person, Rule, Situation, Text, demanded
from strictness import at_least_as_strict

theorem = settings(max_examples=50, deadline=None)
FACTS = {True: Truth.true, False: Truth.false, None: Truth.unknown}
SIGNATURE = Signature((Parameter("amount", Type("int"), False), Parameter("note", Type("string"), False)))


def in_some_document(reference: Reference, rule: Rule, random: Random) -> Reference:
    """The reference with one more rule, in any of its documents."""
    place = random.randrange(len(reference.documents))
    documents = [
        replace(document, rules=(*document.rules, rule)) if number == place else document
        for number, document in enumerate(reference.documents)
    ]
    return replace(reference, root=documents[0], bounds=tuple(documents[1:]))


@settings(max_examples=100, deadline=None)
@given(REFERENCES, MAYBE_LEARNING, of_a_rule("added"), st.randoms(use_true_random=False))
def test_adding_a_rule_never_loosens(reference: Reference, ask: Ask, rule: Rule, random: Random) -> None:
    wide = decided_with(stack_of(reference), ask)
    narrow = decided_with(stack_of(in_some_document(reference, rule, random)), ask)
    assert at_least_as_strict(narrow, wide) == []


@theorem
@given(REFERENCES, ASKS, of_a_rule("added", calls=False), st.randoms(use_true_random=False))
def test_a_rule_that_applies_to_nothing_changes_nothing(
    reference: Reference, ask: Ask, rule: Rule, random: Random
) -> None:
    """The twin: only by applying does a rule tighten."""
    never = replace(rule, when=(*rule.when, Text("now < timestamp('2026-03-05T00:00:00Z')")))
    later = replace(ask, now=replace(ask.now, hour=100))
    before = decided_with(stack_of(reference), later)
    after = decided_with(stack_of(in_some_document(reference, never, random)), later)
    assert (before.decision.effect, before.decision.opened) == (after.decision.effect, after.decision.opened)
    assert at_least_as_strict(after, before) == at_least_as_strict(before, after) == []


def saying_less(person: Person, omitted: Iterable[str]) -> Person:
    """The same person, who keeps some of it back."""
    kept = {
        "id": {"id": "unknown"},
        "tenant": {"tenant": None},
        "properties": {"properties": ()},
    }
    return replace(person, **{name: value for each in omitted for name, value in kept[each].items()})


def has_has(reference: Reference) -> bool:
    rules = (rule for document in reference.documents for rule in document.rules)
    return any(Text(ASKS_WHAT_IS_THERE) in (*rule.when, *rule.unless) for rule in rules)


@settings(max_examples=100, deadline=None)
@given(REFERENCES, MAYBE_LEARNING, st.sets(st.sampled_from(["id", "tenant", "properties"]), min_size=1))
def test_saying_less_never_loosens(reference: Reference, ask: Ask, omitted: set[str]) -> None:
    """It holds for all conditions but those that ask by `has` whether something was said at all."""
    assert not has_has(reference)
    stack = stack_of(reference)
    told = decided_with(stack, ask)
    less = replace(ask, now=replace(ask.now, person=saying_less(ask.now.person, omitted)))
    assert at_least_as_strict(decided_with(stack, less), told) == []


def test_whoever_asks_what_is_there_gives_more_to_those_who_say_less() -> None:
    """Why `has` is left out of the theorem: the policy says so itself."""
    rule = Rule("named", when=(Text(ASKS_WHAT_IS_THERE),), approval=(("count", 2),))
    reference = with_rule(Reference(Document()), rule)
    hits = {
        tenant: [
            hit.rule.id
            for hit in decided_with(stack_of(reference), Ask(Situation(Person(tenant=tenant)))).decision.hits
        ]
        for tenant in (None, "acme")
    }
    assert hits == {None: [], "acme": ["named"]}


# What applies


@settings(max_examples=60, deadline=None)
@given(REFERENCES, st.one_of(ASKS, CALLS.map(Ask)))
def test_an_index_finds_what_asking_each_rule_finds(reference: Reference, ask: Ask) -> None:
    stack = stack_of(reference)
    facts = facts_with_call(stack, ask)
    hits, pending = [], []
    for rule, truth, answers in traced(stack, facts):
        if truth is None:
            pending.append(rule)
        elif truth is not Truth.false:
            hits.append(Hit(rule, truth, answers))
    assert applied_to(stack, facts) == Applied(tuple(hits), tuple(pending))


@settings(max_examples=100, deadline=None)
@given(REFERENCES, st.one_of(ASKS, CALLS.map(Ask)))
def test_every_truth_and_every_leaf_is_what_the_page_says(reference: Reference, ask: Ask) -> None:
    stack = stack_of(reference)
    now = reference.seen(ask.situation)
    rules = [rule for document in reference.documents for rule in document.rules]
    for rule, (fast, truth, answers) in zip(rules, traced(stack, facts_with_call(stack, ask)), strict=True):
        assert fast.id == rule.id
        if rule.pending(now):
            assert (truth, answers) == (None, ())
            continue
        assert truth is FACTS[rule.truth(now)], rule
        leaves = {"if": list(rule.when), "unless": list(rule.unless)}
        for answer in answers:
            if answer.leaf.clause == "during":
                assert answer.truth is FACTS[any(window.holds(now) for window in rule.during)]
            else:
                leaf = leaves[answer.leaf.clause].pop(0)
                assert answer.truth is FACTS[leaf.truth(now)], leaf


def facts_with_call(stack: PolicyStack, ask: Ask) -> Facts:
    """What conditions read, of a call if a tool is called."""
    facts = normalized(stack, ask)[2]
    if ask.now.tool is None:
        return facts
    return replace(facts, call=CallFacts(ask.now.tool, dict(ask.now.args), SIGNATURE))


# Calls of tools


def called(reference: Reference, now: Situation) -> Decision:
    stack = stack_of(reference)
    return decide_call(facts_with_call(stack, Ask(now)), stack)


@settings(max_examples=100, deadline=None)
@given(REFERENCES, CALLS)
def test_fast_and_slow_agree_on_calls(reference: Reference, now: Situation) -> None:
    assert now.tool is not None
    slow, wanted = reference.given(now), points("tool", now.tool)
    decision = called(reference, now)
    stopped = bool(slow.hits) and slow.answer("run", ONLY) == "deny"  # by now: else it had not begun
    effect = "deny" if stopped else slow.answer("tool", wanted)
    assert decision.effect == effect

    def decides(rule: Rule) -> bool:
        about_tool = any(e.action == "tool" and e.covers(wanted) for e in (*rule.deny, *rule.ask))
        return about_tool or (stopped and any(e.action == "run" for e in rule.deny))

    assert [hit.rule.id for hit in decision.hits] == [rule.id for _, rule in slow.hits if decides(rule)]
    demands = slow.demands("tool", wanted) | slow.besides if effect == "ask" else set()
    assert {plain(demand) for demand in decision.demands} == demands
    assert len(decision.demands) == len(demands)


@theorem
@given(REFERENCES, CALLS, of_a_rule("added"), st.randoms(use_true_random=False))
def test_adding_a_rule_never_loosens_a_call(
    reference: Reference, now: Situation, rule: Rule, random: Random
) -> None:
    before, after = called(reference, now), called(in_some_document(reference, rule, random), now)
    assert SEVERITY[after.effect] >= SEVERITY[before.effect]
    if after.effect == "ask":
        assert set(before.demands) <= set(after.demands)


@theorem
@given(REFERENCES, CALLS, st.sets(st.sampled_from(["amount", "note"]), min_size=1))
def test_saying_less_never_loosens_a_call(reference: Reference, now: Situation, omitted: set[str]) -> None:
    less = replace(now, args=tuple(pair for pair in now.args if pair[0] not in omitted))
    before, after = called(reference, now), called(reference, less)
    assert SEVERITY[after.effect] >= SEVERITY[before.effect]


# Rehearsal


def prepared(reference: Reference, ask: Ask) -> Prepared:
    return prepare(
        ask.request,
        stack_of(reference),
        (),
        at=instant_of(ask.now),
        directory="/t",
        host_environment={},
        digest=digest,
    )


REQUESTS = ASKS.map(lambda ask: replace(ask, inferred=None))
"""Requests whose code wants nothing: here the screen is the real one, and it sees `1`."""


@theorem
@given(REHEARSING, REQUESTS)
def test_rehearsed_bounds_decide_nothing(reference: Reference, ask: Ask) -> None:
    with_them, without = (prepared(r, ask) for r in (reference, replace(reference, rehearsed=())))
    one, two = with_them.decision, without.decision
    assert [hit.rule.id for hit in one.hits] == [hit.rule.id for hit in two.hits]
    assert (one.effect, one.opened, one.demands, one.required) == (
        two.effect,
        two.opened,
        two.demands,
        two.required,
    )
    assert [(v.intent, v.effect) for v in one.verdicts] == [(v.intent, v.effect) for v in two.verdicts]
    assert with_them.request.limits == without.request.limits
    assert one.policy_digest != two.policy_digest


@theorem
@given(REHEARSING, REQUESTS)
def test_a_rehearsal_says_what_the_bound_would_decide(reference: Reference, ask: Ask) -> None:
    real = prepared(reference, ask).decision
    answers = [(Want(v.intent.action, v.intent.target), v.effect) for v in real.verdicts]
    for bound, told in zip(reference.rehearsed, real.rehearsals, strict=True):
        counted = replace(reference, bounds=(*reference.bounds, bound), rehearsed=())
        slow = counted.given(ask.situation)
        judged = judge(slow, ask.declared, [])
        assert told.effect == judged.effect
        would_be = [(want, slow.verdict(want)) for want, _ in answers]
        differing = [new for new, old in zip(would_be, answers, strict=True) if new != old]
        assert [(Want(v.intent.action, v.intent.target), v.effect) for v in told.verdicts] == differing
        own = [rule.id for number, rule in slow.hits if number == len(counted.bounds)]
        assert [hit.rule.id for hit in told.hits] == own


@theorem
@given(REHEARSING, REQUESTS)
def test_a_rehearsal_is_the_decision_with_the_bound_counted(reference: Reference, ask: Ask) -> None:
    """Two rehearsed bounds are rehearsed apart."""
    real = prepared(reference, ask).decision
    for bound, told in zip(reference.rehearsed, real.rehearsals, strict=True):
        counted = replace(reference, bounds=(*reference.bounds, bound), rehearsed=())
        decided = decided_with(stack_of(counted), ask).decision
        assert told.effect == decided.effect
        for action in ("read", "write", "network", "shell"):
            assert points_of(decided.opened, action) <= points_of(real.opened, action)


def test_what_a_demand_leaves_open_is_its_documents_then_the_default() -> None:
    """The reference itself, by an example of the page."""
    assert demanded((("count", 2),), (("count", 3), ("reviewer", "human"))) == (2, (), "human", 1800, "deny")
    assert subject_of(Person()).id == "unknown"
