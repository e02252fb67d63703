"""When a rule applies: `if`, `during` and `unless` as one condition of typed leaves.

Rules this module keeps:

- a condition is `if and during and not unless` in Kleene logic; keys of a mapping and items of a list are
  conjunctions, a list as the value of a key means any of; each text and each key is a leaf of its own;
- a clause that says nothing, an unknown key and a value of the wrong type are errors, with place and advice;
- asking for the truth reads as few leaves as it can, a trace reads all of them, and both agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from licet.errors import InvalidPolicy, Position
from licet.policy.during import parse_during
from licet.policy.engine import ConditionEngine, TextPlace
from licet.policy.facts import Facts
from licet.policy.leaves import DuringTest, KeyTest, Test, TextTest, parse_key
from licet.policy.signatures import Signature
from licet.policy.truth import Truth, both, negated
from licet.policy.yaml import Fields, Items, resolved

Clause = Literal["if", "during", "unless"]
CLAUSES: tuple[Clause, ...] = ("if", "during", "unless")


@dataclass(frozen=True, slots=True)
class Leaf:
    """One smallest condition of a rule.

    `index` counts the leaves of the rule: those of `if` first, then `during`, then those of `unless`, each in
    the order of the file. `text` is what the author wrote, or for a key, how it reads in one line.
    """

    clause: Clause
    text: str
    where: Position
    index: int


@dataclass(frozen=True, slots=True)
class LeafAnswer:
    """What one leaf said, before `unless` negates it, and why."""

    leaf: Leaf
    truth: Truth
    why: str


@dataclass(frozen=True)
class Condition:
    """When one rule applies; without any leaf, always."""

    leaves: tuple[Leaf, ...] = ()
    tests: tuple[Test, ...] = field(default=(), repr=False)

    @cached_property
    def reads_call(self) -> bool:
        """Whether it reads the call of a tool, and so is not known before."""
        return any(test.reads_call for test in self.tests)

    def truth(self, facts: Facts) -> Truth:
        """Whether the rule applies; reads no further than it must."""
        positive, negative = self._split
        met = positive[0].truth(facts) if len(positive) == 1 else both(t.truth(facts) for t in positive)
        if met is Truth.false or not negative:
            return met
        return both((met, negated(both(test.truth(facts) for test in negative))))

    def trace(self, facts: Facts) -> tuple[LeafAnswer, ...]:
        """What every leaf says, and why."""
        pairs = zip(self.leaves, self.tests, strict=True)
        return tuple(LeafAnswer(leaf, *test.answer(facts)) for leaf, test in pairs)

    @cached_property
    def necessary(self) -> Mapping[str, frozenset[str]]:
        """By key, the words of which the subject has to have one, unless it is not known what it has.

        See `licet.policy.leaves.index_words` for what a subject has. A key stands here only if all its words
        are texts.
        """
        found: dict[str, frozenset[str]] = {}
        for leaf, test in zip(self.leaves, self.tests, strict=True):
            if leaf.clause != "if" or not isinstance(test, KeyTest):
                continue
            words = frozenset(word for word in test.words if isinstance(word, str))
            # two leaves about groups can be met by two groups, so they don't narrow each other
            if len(words) == len(set(test.words)) and test.key not in found:
                found[test.key] = words
        return found

    @cached_property
    def _split(self) -> tuple[tuple[Test, ...], tuple[Test, ...]]:
        pairs = list(zip(self.leaves, self.tests, strict=True))
        return (
            tuple(test for leaf, test in pairs if leaf.clause != "unless"),
            tuple(test for leaf, test in pairs if leaf.clause == "unless"),
        )


_Found = tuple[Clause, str, Position, Test]


def build(
    rule: Fields, *, file: str, engine: Callable[[], ConditionEngine], calls: bool = False
) -> Condition:
    """Read the keys `if`, `during` and `unless` of a rule.

    `engine` makes the language of texts, and is called only if the rule has one. `calls` says that the rule
    is about nothing but tools, and so may read their calls; `check_calls` then looks at what each tool takes.

    Raises:
        InvalidPolicy: with the place of the first problem and what to write instead.
    """
    builder = _Builder(file, engine, calls)
    found: list[_Found] = []
    for clause in CLAUSES:
        if clause in rule:
            found += builder.clause(clause, rule)
    leaves = tuple(Leaf(*one[:3], index) for index, one in enumerate(found))
    return Condition(leaves, tuple(one[3] for one in found))


@dataclass(frozen=True, slots=True)
class _Builder:
    file: str
    engine: Callable[[], ConditionEngine]
    calls: bool

    def clause(self, clause: Clause, rule: Fields) -> Iterator[_Found]:
        value, where = rule[clause], Position(self.file, *rule.places[clause])
        if clause == "during":
            during = parse_during(value, self.file, where)
            yield clause, during.text, where, DuringTest(during)
            return
        if isinstance(value, str):
            start = rule.starts[clause]
            yield self._text(clause, value, TextPlace(self.file, *start))
        elif isinstance(value, Items) and value:
            for index, one in enumerate(value):
                yield from self._item(clause, one, value, index)
        else:
            yield from self._mapping(clause, value, where)

    def _item(self, clause: Clause, one: Any, items: Items, index: int) -> Iterator[_Found]:
        line, column = items.places[index]
        if isinstance(one, str):
            place = TextPlace(self.file, line, column, items.styles.get(index, ""))
            yield self._text(clause, one, place)
        else:
            yield from self._mapping(clause, one, Position(self.file, line, column))

    def _mapping(self, clause: Clause, value: Any, where: Position) -> Iterator[_Found]:
        if not isinstance(value, Fields) or not value:
            found = "nothing" if value is None or value in ([], {}) else f"`{value}`"
            raise InvalidPolicy(
                f"`{clause}` needs a condition, found {found}",
                where=where,
                advice="write a text such as `args.amount > 100`, or a mapping such as `{group: oncall}`",
            )
        for key, one in value.items():
            place = Position(self.file, *value.places[key])
            items = one.places if isinstance(one, Items) else []
            test = parse_key(key, one, (place, *(Position(self.file, *spot) for spot in items)))
            shown = f"[{', '.join(map(_as_written, one))}]" if isinstance(one, list) else _as_written(one)
            yield clause, f"{key}: {shown}", place, test

    def _text(self, clause: Clause, text: str, place: TextPlace) -> _Found:
        if not text.strip():
            raise InvalidPolicy(f"`{clause}` is an empty text", where=place.start)
        return clause, text, place.start, TextTest(self._engine(place).compile(text, place, calls=self.calls))

    def _engine(self, place: TextPlace) -> ConditionEngine:
        try:
            return self.engine()
        except InvalidPolicy as problem:
            raise InvalidPolicy(problem.message, advice=problem.advice, where=place.start) from None


def _as_written(value: object) -> str:
    """A value as a policy says it, so that a text that reads like a number is told from one."""
    if isinstance(value, str):
        return value if resolved(value) is value else f"'{value}'"
    return str(value).lower() if isinstance(value, bool) else str(value)


def check_calls(condition: Condition, signatures: Mapping[str, Signature]) -> None:
    """Check what a condition reads of calls against `signatures` of tools that its rule matches.

    Raises:
        InvalidPolicy: the condition does not fit one of them; with the place inside the text.
    """
    for test in condition.tests:
        if isinstance(test, TextTest) and test.reads_call:
            for tool, signature in signatures.items():
                test.compiled.check(tool, signature)
