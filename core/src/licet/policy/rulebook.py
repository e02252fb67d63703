"""Finding the rules that could apply to a request, without asking each.

Rules this module keeps:

- a rule is left out only if one of its conditions is certainly false for the subject: what the subject does
  not state leaves the rule in;
- rules keep the order in which they stand, so that equal requests are told the same.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from licet.policy.leaves import index_words
from licet.policy.rule import Rule
from licet.request import Subject


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
        return tuple(rule for rule in self.rules if rule.condition.reads_args)

    def __bool__(self) -> bool:
        return bool(self.rules)

    def candidates(self, subject: Subject) -> Iterator[Rule]:
        """The rules that are not certainly out of the question for `subject`."""
        found = list(self._always)
        for key, by_value in self._by_key.items():
            stated = index_words(key, subject)
            if stated is None:
                found.extend(number for numbers in by_value.values() for number in numbers)
            else:
                for value in stated:
                    found.extend(by_value.get(value, ()))
        return (self.rules[number] for number in sorted(set(found)))
