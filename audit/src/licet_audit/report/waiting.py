"""How long approvals took: from the decision that asks to the answer, as the records of runs tell it.

Rules this module keeps:

- a time is told only where both records were written by one process, by its monotonic clock;
- a run that asks and has no answer is counted, never guessed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from licet.record import Record

from licet_audit.report import charts

_STEPS = (
    (1.0, "under a second"),
    (60.0, "up to a minute"),
    (600.0, "up to 10 minutes"),
    (3600.0, "up to an hour"),
    (86400.0, "up to a day"),
)
_LONGER = "longer"


@dataclass(frozen=True, slots=True)
class Waits:
    """Bars by length of time, and what is to be said of them."""

    bars: list[charts.Bar]
    note: str


def waits(asking: Iterable[Sequence[Record]], total: int) -> Waits:
    """Sum up runs that asked, each as its records; `total` is how many asked in all."""
    found: Counter[str] = Counter()
    unanswered = 0
    for records in asking:
        seconds = waited(records)
        if seconds is None:
            unanswered += 1
        else:
            found[next((name for most, name in _STEPS if seconds < most), _LONGER)] += 1
    if not found and not unanswered:
        return Waits([], "")
    looked_at = found.total() + unanswered
    notes = [f"Of the {looked_at:,} newest of {total:,} runs that asked."] if looked_at < total else []
    if found[_STEPS[0][1]]:
        notes.append("Under a second no person answered.")
    if unanswered:
        notes.append(f"{unanswered:,} asked and have no answer on record.")
    names = [name for _, name in _STEPS] + [_LONGER]
    rows = charts.in_order((name, found[name]) for name in names) if found else []
    return Waits(rows, " ".join(notes))


def waited(records: Sequence[Record]) -> float | None:
    """Seconds from the decision to its last answer; None if there is none, or clocks can't be compared."""
    asked = next((one for one in records if one.entry.kind == "decision"), None)
    answered = next((one for one in reversed(records) if one.entry.kind == "authorization"), None)
    if asked is None or answered is None:
        return None
    if asked.writer.get("instance") != answered.writer.get("instance"):
        return None
    return max(answered.entry.mono_ns - asked.entry.mono_ns, 0) / 1e9
