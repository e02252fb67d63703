"""Finding the rules that could apply to a request, without asking each.

Rules this module keeps:

- a rule is left out only if one of its conditions is certainly false for the subject: what the subject does
  not state leaves the rule in;
- rules keep the order in which they stand, so that equal requests are told the same;
- texts that are asked of every request are worked out together, and answer as they would alone.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property

from licet.policy.facts import Facts
from licet.policy.leaves import TextTest, index_words
from licet.policy.rule import Rule

_AT_ONCE = 32
"""How many texts are worked out in one step: if one of them fails, all of these are asked alone."""


class Rulebook:
    """All rules of a stack, by what they ask of a subject.

    A rule with an equality in its `if`, such as `tenant: acme`, is found by it; every other one is always
    looked at.
    """

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(rules)
        self._always: list[int] = []
        self._by_key: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        shared = Counter(
            (key, value)
            for rule in self.rules
            for key, values in rule.condition.necessary.items()
            for value in values
        )
        for number, rule in enumerate(self.rules):
            self._file(number, rule, shared)

    def _file(self, number: int, rule: Rule, shared: Mapping[tuple[str, str], int]) -> None:
        """Put a rule where its most selective equality leads: that which the fewest rules share."""
        necessary = rule.condition.necessary
        if not necessary:
            self._always.append(number)
            return
        key = min(necessary, key=lambda key: (sum(shared[key, value] for value in necessary[key]), key))
        for value in necessary[key]:
            self._by_key[key][value].append(number)

    @cached_property
    def about_calls(self) -> tuple[Rule, ...]:
        """The rules that read the arguments of a call."""
        return tuple(rule for rule in self.rules if rule.condition.reads_call)

    @cached_property
    def _together(self) -> tuple[Callable[[Facts], None], ...]:
        """What works out the texts of the rules that are always looked at."""
        texts = [
            test.compiled
            for number in self._always
            for test in self.rules[number].condition.tests
            if isinstance(test, TextTest) and not test.reads_call
        ]
        if len(texts) < 2:
            return ()
        engine = texts[0].engine
        return tuple(engine.together(texts[at : at + _AT_ONCE]) for at in range(0, len(texts), _AT_ONCE))

    def candidates(self, facts: Facts) -> Iterator[Rule]:
        """The rules that are not certainly out of the question for the subject of `facts`."""
        for ask in self._together:
            ask(facts)
        found: set[int] = set()
        for key, by_value in self._by_key.items():
            stated = index_words(key, facts)
            for value in by_value if stated is None else stated:
                if value in by_value:
                    found.update(by_value[value])
        if not found:
            return (self.rules[number] for number in self._always)
        return (self.rules[number] for number in sorted(found.union(self._always)))
