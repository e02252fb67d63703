"""Trying test cases: what was expected, what was found, and why.

Rules this module keeps:

- a case about the whole policy passes if everything it states is exactly so;
- a case about a rule passes if that rule by itself behaves so, whatever else the policy says: since rules
  only tighten, what a rule asks or denies is at least asked or denied, and its limits are at least as low;
- a case that names a rule which does not exist, or that could not fail, is an error, never skipped;
- what a case does not show is told in notes, even where it passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from licet.decide import Verdict
from licet.errors import InvalidPolicy
from licet.policy import PolicyStack
from licet.policy.advice import nearest
from licet.policy.cases import Case
from licet.policy.expectations import Wish
from licet.policy.parts import Approval
from licet.policy.rule import Rule
from licet.workbench.trials.asking import Answer, ask, beside_of, canonical


@dataclass(frozen=True, slots=True)
class Shortfall:
    """One expectation that was not met: of `what`, in words."""

    what: str
    expected: str
    found: str

    def __str__(self) -> str:
        return f"{self.what}: expected {self.expected}, found {self.found}"


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """A case, what came of it, and why. `managed` are the managed bounds that decided it."""

    case: Case
    rule: Rule | None
    answer: Answer
    shortfalls: tuple[Shortfall, ...]
    notes: tuple[str, ...]
    managed: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether everything that was expected is so."""
        return not self.shortfalls


def try_case(case: Case, stack: PolicyStack) -> Trial:
    """Put `case` to `stack`, and compare.

    Raises:
        InvalidPolicy: the case can't be tried, or could not fail; with its place.
    """
    rule = rule_of(case, stack)
    answer = ask(case, stack)
    short = tuple(_short_of_rule(answer, rule) if rule else _short_of_whole(answer, stack))
    deciding = (by.document for verdict in _deciding(answer) for by in verdict.by)
    managed = tuple(dict.fromkeys(document for document in deciding if document in stack.managed))
    return Trial(case, rule, answer, short, tuple(_notes(answer, rule)), managed)


def rules_of(stack: PolicyStack) -> tuple[Rule, ...]:
    """Every rule that a case can be about: of the root, of its bounds, and of those that only rehearse."""
    return tuple(rule for document in (*stack.documents, *stack.rehearsed) for rule in document.rules)


def rule_of(case: Case, stack: PolicyStack) -> Rule | None:
    """The rule that `case` is about: one of the file that it stands in, else the root's, else the only one.

    Raises:
        InvalidPolicy: there is none of that name, or more than one, or the case could not fail.
    """
    if case.rule is None:
        return None
    name, where = case.rule
    known = rules_of(stack)
    named = [rule for rule in known if rule.id == name]
    root = [rule for rule in stack.root.rules if rule.id == name]
    inside = [rule for rule in named if case in rule.tests]
    chosen = inside or root or named
    if not chosen:
        ids = list(dict.fromkeys(rule.id for rule in known))
        raise InvalidPolicy(
            f"this tests the rule `{name}`, and there is none of that name",
            where=where,
            advice=nearest(name, ids) if ids else "the policy has no rules",
        )
    if len(chosen) > 1:
        places = " and ".join(str(rule.where) for rule in chosen)
        raise InvalidPolicy(
            f"`{name}` could be the rule of {places}", where=where, advice="test one of these files by itself"
        )
    rule = chosen[0]
    if case.expect.effect == "allow" and case.expect.state is None and not rule.entries:
        raise InvalidPolicy(
            f"`{name}` denies nothing and asks about nothing, so that this could not fail",
            where=case.where,
            advice="expect `hit` or `miss`, or the `limits` that it sets",
        )
    return rule


def _short_of_rule(answer: Answer, rule: Rule) -> Iterator[Shortfall]:
    expect = answer.case.expect
    state, own = answer.state(rule), answer.own(rule)
    if expect.state is not None and state != expect.state:
        yield Shortfall("rule", expect.state, state)
    if expect.effect is not None and own != expect.effect:
        yield Shortfall("effect", expect.effect, f"{own} ({state})")
    for name, value in expect.limits.stated().items():
        mine = rule.limits.stated().get(name) if state == "hit" else None
        if mine != value:
            yield Shortfall(f"limits.{name}", str(value), _none_or(mine))
    if expect.demands is not None:
        demanded = (rule.approval,) if rule.approval is not None and state == "hit" else ()
        yield from _short_of_demands(expect.demands, demanded)


def _short_of_whole(answer: Answer, stack: PolicyStack) -> Iterator[Shortfall]:
    expect = answer.case.expect
    if expect.effect is not None and answer.effect != expect.effect:
        yield Shortfall("effect", expect.effect, answer.effect)
    if expect.by is not None:
        yield from _short_of_decider(answer, stack)
    in_force = answer.limits.stated()
    for name, value in expect.limits.stated().items():
        if in_force.get(name) != value:
            yield Shortfall(f"limits.{name}", str(value), _none_or(in_force.get(name)))
    if expect.demands is not None:
        yield from _short_of_demands(expect.demands, answer.demands)
    for wish in expect.opened:
        if not _opens(answer, wish):
            yield Shortfall("opened", str(wish), "closed")
    for wish in expect.closed:
        if _opens(answer, wish):
            yield Shortfall("closed", str(wish), "opened")


def _none_or(value: float | None) -> str:
    return "none" if value is None else str(value)


def _short_of_decider(answer: Answer, stack: PolicyStack) -> Iterator[Shortfall]:
    assert answer.case.expect.by is not None
    name, where = answer.case.expect.by
    ids = list(dict.fromkeys(rule.id for document in stack.documents for rule in document.rules))
    if name not in ids:
        advice = nearest(name, ids) if ids else "the policy has no rules"
        raise InvalidPolicy(f"there is no rule `{name}` that could decide", where=where, advice=advice)
    rules = [by.rule for verdict in _deciding(answer) for by in verdict.by]
    if name not in rules:
        found = (
            " and ".join(dict.fromkeys(f"`{rule}`" for rule in rules)) or f"nothing, it is {answer.effect}"
        )
        yield Shortfall("by", f"`{name}`", found)


def _short_of_demands(expected: Sequence[Approval], found: Sequence[Approval]) -> Iterator[Shortfall]:
    if len(expected) != len(found) or not _matched(tuple(expected), tuple(found)):
        stated = frozenset[str]().union(*(one.model_fields_set for one in expected))
        yield Shortfall("demands", _listed(expected, stated), _listed(found, stated))


def _matched(expected: tuple[Approval, ...], found: tuple[Approval, ...]) -> bool:
    """Whether each expectation has a demand of its own, which has all that it states."""
    if not expected:
        return True
    first, rest = expected[0], expected[1:]
    return any(
        all(getattr(first, name) == getattr(one, name) for name in first.model_fields_set)
        and _matched(rest, (*found[:index], *found[index + 1 :]))
        for index, one in enumerate(found)
    )


def _listed(demands: Iterable[Approval], stated: frozenset[str]) -> str:
    """Approvals in the spelling of policies, as far as they were `stated`, or in words."""
    return ", ".join(_spelled(one, stated) if stated else str(one) for one in demands) or "none"


def _spelled(demand: Approval, stated: frozenset[str]) -> str:
    shown = demand.model_dump(mode="json", include=set(stated), exclude_none=True, by_alias=True)
    return "{" + ", ".join(f"{name}: {_word(value)}" for name, value in shown.items()) + "}"


def _word(value: object) -> str:
    return f"[{', '.join(map(str, value))}]" if isinstance(value, list) else str(value)


def _opens(answer: Answer, wish: Wish) -> bool:
    target = canonical(wish, beside_of(answer.case), answer.facts.request.workdir)
    return answer.opened.opens(wish.action, target or "")


def _deciding(answer: Answer) -> list[Verdict]:
    """The verdicts that made the answer what it is."""
    return [verdict for verdict in answer.verdicts if verdict.effect == answer.effect != "allow"]


def _notes(answer: Answer, rule: Rule | None) -> Iterator[str]:
    """What a person has to know to read the outcome."""
    for decision in answer.decisions:
        for refused in decision.refusals:
            yield f"line {refused.line}: {refused.message}" if refused.line else refused.message
        yield from (
            f"the rule `{hit.rule.id}` applies since `{one.leaf.text}` is not known: {one.why}"
            for hit in decision.hits
            if rule is None
            for one in hit.answers
            if one.truth == "unknown"
        )
    if rule is None:
        yield from (f"`{v.intent}`: {v.effect}, {v.reason}" for v in _deciding(answer))
        return
    if answer.state(rule) != "pending":
        for one in rule.condition.trace(answer.facts):
            why = f": {one.why}" if one.why else ""
            yield f"`{one.leaf.clause}` `{one.leaf.text}` is {one.truth}{why}"
    if answer.effect != answer.own(rule):
        others = "; ".join(verdict.reason for verdict in _deciding(answer)) or "the screen refuses the code"
        yield f"with the rest of the policy it is {answer.effect}: {others}"
