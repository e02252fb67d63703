"""Kleene logic: what is known to be true, known to be false, and what is not known.

Rules this module keeps:

- false decides a conjunction and true a disjunction, whatever else is not known;
- a conjunction of nothing is true, a disjunction of nothing false;
- unknown never becomes certain by being negated.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Truth(StrEnum):
    """The value of a condition; compare it with `is`, since three values are no `bool`."""

    true = "true"
    false = "false"
    unknown = "unknown"

    def __bool__(self) -> bool:
        raise TypeError("a truth has three values; compare it with `is`")


_NEGATED = {Truth.true: Truth.false, Truth.false: Truth.true, Truth.unknown: Truth.unknown}


def both(truths: Iterable[Truth]) -> Truth:
    """The conjunction; reads no further than the first false."""
    answer = Truth.true
    for one in truths:
        if one is Truth.false:
            return one
        if one is Truth.unknown:
            answer = one
    return answer


def either(truths: Iterable[Truth]) -> Truth:
    """The disjunction; reads no further than the first true."""
    answer = Truth.false
    for one in truths:
        if one is Truth.true:
            return one
        if one is Truth.unknown:
            answer = one
    return answer


def negated(truth: Truth) -> Truth:
    """True for false, false for true, and unknown for unknown."""
    return _NEGATED[truth]


def certain(answer: bool) -> Truth:
    """What is known, as a truth."""
    return Truth.true if answer else Truth.false
