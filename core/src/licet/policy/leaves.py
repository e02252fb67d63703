"""The smallest conditions: one key of a mapping, one text, one time.

Rules this module keeps:

- texts are compared exactly, numbers by value, and never a text with a number or a truth value;
- what nobody said is unknown: the tenant (an empty one is none), a property, and for a subject without an
  id also its type and its groups; a subject that has an id and no groups is in none;
- an instant is exclusive: at that instant, `before` is over and `after` has begun.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

from licet.errors import InvalidPolicy, Position
from licet.policy.advice import nearest
from licet.policy.during import During, Moment, parse_moment
from licet.policy.engine import Compiled
from licet.policy.facts import ANONYMOUS, Facts
from licet.policy.truth import Truth, certain, either, negated
from licet.policy.yaml import Items
from licet.request import Subject
from licet.units import show_moment

Word = str | int | float | bool

PROPERTY = "property."
_SHOWN = 8
KEYS = ("tenant", "group", "subject", "type", "language", "before", "after", "property.NAME")
"""The keys of a mapping in `if` and `unless`."""


class Test(Protocol):
    """What answers for one leaf."""

    @property
    def reads_call(self) -> bool:
        """Whether it is only known when a tool is called."""

    def truth(self, facts: Facts) -> Truth:
        """The answer."""

    def answer(self, facts: Facts) -> tuple[Truth, str]:
        """The answer, and what was found, in words."""


@dataclass(frozen=True, slots=True)
class KeyTest:
    """Whether what a subject says under `key` is any of `words`."""

    key: str
    words: tuple[Word, ...]
    reads_call: bool = False
    _classes: tuple[type, ...] = field(init=False, repr=False)  # since to Python, `1` equals `true`
    _texts: frozenset[str] = field(init=False, compare=False, repr=False)
    _reader: Reader = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_classes", tuple(map(class_of, self.words)))
        object.__setattr__(self, "_texts", frozenset(one for one in self.words if isinstance(one, str)))
        object.__setattr__(self, "_reader", reader(self.key))

    def truth(self, facts: Facts) -> Truth:
        """The answer; unknown where the subject says nothing, or something of another type."""
        found = self._reader(facts.subject, facts.language)
        if found is None:
            return Truth.unknown
        if not self._texts.isdisjoint(found):
            return Truth.true
        if self.key == "group":
            return Truth.false
        return either(_same(found[0], word) for word in self.words)

    def answer(self, facts: Facts) -> tuple[Truth, str]:
        """The answer, and what the subject says."""
        found, truth = self._reader(facts.subject, facts.language), self.truth(facts)
        if found is None:
            return truth, f"nobody said the {self.key}"
        if self.key == "group":
            return truth, f"the groups are {_listed(found)}" if found else "the subject is in no group"
        if truth is Truth.unknown:
            return truth, f"the {self.key} is {_listed(found)}, which is of another type than the policy's"
        return truth, f"the {self.key} is {_listed(found)}"


Reader = Callable[[Subject, str], tuple[Word, ...] | None]
"""What a subject (or the request, in its language) says under one key; None where it says nothing."""


@lru_cache(maxsize=4096)
def reader(key: str) -> Reader:
    """How a key of a mapping is read; the group is the one that has several words, or none."""
    if not key.startswith(PROPERTY):
        return _READERS[key]
    name = key[len(PROPERTY) :]

    def read(subject: Subject, _: str) -> tuple[Word, ...] | None:
        value = subject.properties.get(name)
        return None if value is None or value != value else (value,)  # NaN is the one unlike itself

    return read


_READERS: Mapping[str, Reader] = {
    "language": lambda _, language: (language,),
    "tenant": lambda subject, _: (subject.tenant,) if subject.tenant else None,
    "group": lambda subject, _: None if subject.id in ANONYMOUS else subject.groups,
    "subject": lambda subject, _: None if subject.id in ANONYMOUS else (subject.id,),
    "type": lambda subject, _: None if subject.id in ANONYMOUS else (subject.type,),
}


def _same(found: Word, word: Word) -> Truth:
    if class_of(found) is not class_of(word):
        return Truth.unknown
    return certain(found == word)


def class_of(word: Word) -> type:
    """What a word may be compared with: texts, numbers, or truth values."""
    return float if isinstance(word, (int, float)) and not isinstance(word, bool) else type(word)


def _listed(words: tuple[Word, ...]) -> str:
    shown = [repr(word)[1:-1] if isinstance(word, str) else str(word) for word in words[:_SHOWN]]
    more = [f"{len(words) - _SHOWN} more"] if len(words) > _SHOWN else []
    return ", ".join([*(f"`{text[:59]}…`" if len(text) > 60 else f"`{text}`" for text in shown), *more])


@dataclass(frozen=True, slots=True)
class MomentTest:
    """Whether the decision is made before, or not before, an instant."""

    key: str
    moment: Moment
    reads_call: bool = False

    def truth(self, facts: Facts) -> Truth:
        """The answer; unknown only for a day, while it depends on the place on earth."""
        reached = self.moment.reached(facts.at)
        return reached if self.key == "after" else negated(reached)

    def answer(self, facts: Facts) -> tuple[Truth, str]:
        """The answer, and the time of the decision."""
        truth, why = self.truth(facts), f"it is {show_moment(facts.at.timestamp())}"
        if truth is Truth.unknown:
            why += ", and whether that day has begun depends on the time zone; write a time with its offset"
        return truth, why


@dataclass(frozen=True, slots=True)
class DuringTest:
    """Whether the decision is made in a window of time."""

    during: During
    reads_call: bool = False

    def truth(self, facts: Facts) -> Truth:
        """The answer; it is always known."""
        return self.during.holds(facts.at)

    def answer(self, facts: Facts) -> tuple[Truth, str]:
        """The answer, and the time of the decision on every clock that the windows name."""
        zones = {window.zone.key: window.zone for window in self.during.windows if window.zone is not None}
        local = [f"{facts.at.astimezone(zone):%a %Y-%m-%d %H:%M} in {name}" for name, zone in zones.items()]
        return self.truth(facts), f"it is {' and '.join(local) or show_moment(facts.at.timestamp())}"


@dataclass(frozen=True, slots=True)
class TextTest:
    """What a compiled text says."""

    compiled: Compiled

    @property
    def reads_call(self) -> bool:
        """Whether it reads the call of a tool."""
        return self.compiled.reads_call

    def truth(self, facts: Facts) -> Truth:
        """The answer of the engine."""
        return self.compiled.evaluate(facts)[0]

    def answer(self, facts: Facts) -> tuple[Truth, str]:
        """The answer of the engine, and for what is unknown, its reason."""
        return self.compiled.evaluate(facts)


def parse_key(key: str, value: object, places: tuple[Position, ...]) -> KeyTest | MomentTest:
    """Read one key of a mapping; `places` are those of the key and, for a list, of its items.

    Raises:
        InvalidPolicy: the key is unknown, or its value is of the wrong type.
    """
    where = places[0]
    if key in ("before", "after"):
        return MomentTest(key, parse_moment(value, where))
    if key not in _READERS and not (key.startswith(PROPERTY) and len(key) > len(PROPERTY)):
        bare = key in ("property", "properties", PROPERTY)
        raise InvalidPolicy(
            f"unknown key `{key}` of a condition",
            where=where,
            advice="write `property.NAME`" if bare else nearest(key, KEYS),
        )
    words = value if isinstance(value, list) else [value]
    if not words:
        raise InvalidPolicy(f"`{key}` lists nothing", where=where, advice="name at least one value")
    spots = places[1:] if isinstance(value, Items) else (where,) * len(words)
    return KeyTest(key, tuple(_word(key, word, spot) for word, spot in zip(words, spots, strict=True)))


def _word(key: str, word: object, where: Position) -> Word:
    if isinstance(word, str):
        return word
    if not key.startswith(PROPERTY):
        advice = f'put it in quotes: `{key}: "{word}"`' if isinstance(word, (bool, int, float)) else None
        raise InvalidPolicy(f"`{key}` needs a text, found `{word}`", where=where, advice=advice)
    if not isinstance(word, (bool, int, float)) or (isinstance(word, float) and not math.isfinite(word)):
        raise InvalidPolicy(f"`{key}` needs a text, a number, true or false, found `{word}`", where=where)
    return word


def index_words(key: str, facts: Facts) -> frozenset[str] | None:
    """The texts that a subject has under a key of `Condition.necessary`; None where that is not known.

    A rule is certainly not met where this is a set that shares nothing with the rule's.
    """
    found = reader(key)(facts.subject, facts.language)
    if found is None:
        return None
    texts = frozenset([word for word in found if isinstance(word, str)])
    return texts if len(texts) == len(set(found)) else None
