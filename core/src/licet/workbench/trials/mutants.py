"""Whether tests would notice: a rule that never applies, always applies, or has a condition turned round.

Rules this module keeps:

- a changed rule keeps its place, name and tests, so that a test fails for what the rule does and for
  nothing else;
- a condition that reads a call still waits for one;
- what is unknown stays so: what changes is only what tests can pin down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from licet.errors import Position
from licet.policy import PolicyStack
from licet.policy.conditions import Condition, Leaf
from licet.policy.facts import Facts
from licet.policy.leaves import Test
from licet.policy.rule import Rule
from licet.policy.truth import Truth, negated
from licet.workbench.trials.trial import Trial, try_case


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change of the rule `rule`, in words; `where` is what was changed."""

    where: Position
    rule: str
    change: str

    def __str__(self) -> str:
        return f"`{self.rule}` {self.change}"


@dataclass(frozen=True, slots=True)
class _Constant:
    """A leaf with one answer."""

    value: Truth
    reads_call: bool

    def truth(self, facts: Facts) -> Truth:
        return self.value

    def answer(self, facts: Facts) -> tuple[Truth, str]:
        return self.value, ""


@dataclass(frozen=True, slots=True)
class _Turned:
    """A leaf that says the opposite."""

    test: Test

    @property
    def reads_call(self) -> bool:
        return self.test.reads_call

    def truth(self, facts: Facts) -> Truth:
        return negated(self.test.truth(facts))

    def answer(self, facts: Facts) -> tuple[Truth, str]:
        truth, why = self.test.answer(facts)
        return negated(truth), why


def mutants(stack: PolicyStack) -> Iterator[tuple[Mutant, PolicyStack]]:
    """Each change of a rule that stands in the root's own file, with the policy as it would be."""
    for rule in stack.root.rules:
        if rule.where.file == stack.root.file:
            for mutant, changed in _changes(rule):
                yield mutant, _with(stack, rule, changed)


def _changes(rule: Rule) -> Iterator[tuple[Mutant, Rule]]:
    condition = rule.condition
    yield Mutant(rule.where, rule.id, "that never applies"), _constantly(rule, Truth.false)
    if not condition.leaves:
        return
    yield Mutant(rule.where, rule.id, "that always applies"), _constantly(rule, Truth.true)
    for leaf, test in zip(condition.leaves, condition.tests, strict=True):
        tests = (*condition.tests[: leaf.index], _Turned(test), *condition.tests[leaf.index + 1 :])
        change = f"with `{leaf.text}` turned round"
        yield Mutant(leaf.where, rule.id, change), replace(rule, condition=Condition(condition.leaves, tests))


def _constantly(rule: Rule, value: Truth) -> Rule:
    """`rule` with a condition that is `value`, whatever is asked."""
    condition = rule.condition
    if not condition.leaves:
        leaf = Leaf("if", "never", rule.where, 0)
        return replace(rule, condition=Condition((leaf,), (_Constant(value, False),)))
    opposite = negated(value)
    tests = tuple(
        _Constant(opposite if leaf.clause == "unless" else value, test.reads_call)
        for leaf, test in zip(condition.leaves, condition.tests, strict=True)
    )
    return replace(rule, condition=Condition(condition.leaves, tests))


def _with(stack: PolicyStack, rule: Rule, changed: Rule) -> PolicyStack:
    rules = tuple(changed if one is rule else one for one in stack.root.rules)
    return replace(stack, root=stack.root.model_copy(update={"rules": rules}))


def count(stack: PolicyStack) -> int:
    """How many changes there are."""
    return sum(1 for _ in mutants(stack))


def unnoticed(
    stack: PolicyStack, trials: Sequence[Trial], heard: Callable[[], None] = lambda: None
) -> tuple[Mutant, ...]:
    """The changes under which all of `trials` that passed still pass; `heard` is called after each."""
    passed = [trial for trial in trials if trial.passed]
    found = []
    for mutant, changed in mutants(stack):
        # those about the rule are the likeliest to notice
        nearest = sorted(passed, key=lambda trial: trial.rule is None or trial.rule.id != mutant.rule)
        if all(try_case(trial.case, changed).passed for trial in nearest):
            found.append(mutant)
        heard()
    return tuple(found)
