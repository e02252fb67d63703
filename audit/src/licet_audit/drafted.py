"""A batch on its way into the log: drafted, then written.

Rules this module keeps: a group of entries is refused alone; the others of its batch are written without it.
"""

from __future__ import annotations

from dataclasses import dataclass

from licet.errors import EntryRefused

from licet_audit.batch import Answer
from licet_audit.chain import Draft
from licet_audit.ends import End

Drafted = list[Draft] | EntryRefused
"""The entries of one append, or why they can't be recorded."""


@dataclass(frozen=True, slots=True)
class Written:
    """A batch that stands in the log: its answers, its bytes, where it ends, and how many records it has."""

    answers: list[Answer]
    data: bytes = b""
    end: End | None = None  # None if nothing was to be written
    records: int = 0


def has_lines(group: Drafted) -> bool:
    """Whether something is to be written for a group."""
    return bool(group) and not isinstance(group, EntryRefused)


def empty_answer(group: Drafted) -> Answer:
    """The answer to a group for which nothing is to be written."""
    return group if isinstance(group, EntryRefused) else ()
