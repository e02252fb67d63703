"""What the log says of itself: gaps, torn ends, erasures, holds and the like, in words.

Rules this module keeps: what tells of a loss is told first; ordinary events are only counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from licet.record import Record
from licet.workbench.history import bodies

from licet_audit.event_words import event_words
from licet_audit.report.safe import Part, part

MOST = 100
_ORDINARY = frozenset({"sealed"})
_TONES = {
    "gap": "bad",
    "torn_tail_quarantined": "warn",
    "reopened": "warn",
    "anchor_failed": "warn",
    "erased": "warn",
    "pruned": "warn",
}
_ORDER = {"bad": 0, "warn": 1}


@dataclass(frozen=True, slots=True)
class Event:
    """One record of the log about itself."""

    seq: int
    time: str
    name: str
    tone: str
    text: str


def events(records: Iterable[Record]) -> Part[Event]:
    """The events of a log, losses first, then in order."""
    found = [event for record in records if (event := _event(record)).name not in _ORDINARY]
    return part(sorted(found, key=lambda one: (_ORDER.get(one.tone, 2), one.seq)), MOST)


def _event(record: Record) -> Event:
    body = record.entry.body
    name = bodies.text(body, "event") or "?"
    tone = _TONES.get(name, "quiet")
    return Event(record.seq, record.entry.time, name.replace("_", " "), tone, event_words(body))
