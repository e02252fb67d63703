"""How long approvals took: from the asking to what came of it, as the records of runs tell it.

Rules this module keeps:

- a time is that of one monotonic clock where both records go by one, and else that of wall clocks;
- a run that asks and has no answer is counted, never guessed; where nobody was asked, the answer is what
  authorization said in the same process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from licet.record import Record
from licet.telemetry.spans import RESOLVED

from licet_audit.report import charts
from licet_audit.timeline import since

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
    """Seconds from the asking of the first approval to its end; None if it has none."""
    asked = next((one for one in records if _event(one) == "asked"), None)
    if asked is not None:
        name = asked.entry.body.get("approval")
        mine = (one for one in records if one.entry.body.get("approval") == name)
        answered = next((one for one in mine if _event(one) in RESOLVED), None)
    else:
        asked = next((one for one in records if one.entry.kind == "decision"), None)
        answered = next((one for one in reversed(records) if one.entry.kind == "authorization"), None)
        if asked and answered and asked.writer.get("instance") != answered.writer.get("instance"):
            return None
    if asked is None or answered is None:
        return None
    passed = since(asked, answered)
    return None if passed is None else max(passed, 0.0)


def _event(record: Record) -> str | None:
    return str(record.entry.body.get("event")) if record.entry.kind == "approval" else None
