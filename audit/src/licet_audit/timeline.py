"""A run as a timeline: typed rows, which a terminal and a page show alike.

Rules this module keeps:

- rows follow the order of the log; times are told apart from it, since clocks are set back;
- an effect and its outcome are one row, with the time between them; an effect without an outcome says so;
- time since the first record is that of the host's monotonic clock where that wrote both, and where the wall
  clock moved otherwise, a row says so;
- text is as it was recorded: whoever shows it escapes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from licet.approvals.telling import OVER
from licet.record import Record
from licet.workbench.history.recounting import recounted

from licet_audit import controls, telling, telling_approvals
from licet_audit.telling import Told, Tone, show_time

__all__ = ["Row", "Tone", "rows", "show_time"]

_JUMP = 1.0  # seconds by which wall clock and monotonic clock may differ within a run
_NO_DECISION = {"effect": None, "policy": None, "policy_digest": None}
_EMPTY = ("verdicts", "violations", "rules", "demands", "rehearsals", "ballots", "documents")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a timeline, told by record `seq`.

    `time` is what the record says, RFC 3339 in UTC; `after` is seconds since the first record, None where no
    clock can tell. `what` is a label, with two leading blanks where the row belongs to the one above; `text`
    is untrusted. `first` marks the first row of a record.
    """

    seq: int
    time: str
    after: float | None
    what: str
    text: str
    tone: Tone
    first: bool


def rows(records: Iterable[Record]) -> Iterator[Row]:
    """The rows of one run, or of any records, in the order of the log."""
    found = tuple(records)
    story = _Story(found)
    for number, record in enumerate(found):
        after = since(found[0], record)
        for place, told in enumerate(story.tell(number, record)):
            yield Row(record.seq, record.entry.time, after, told.what, told.text, told.tone, not place)


class _Story:
    """Joins what records say apart: an effect with its outcome, claims with what was seen."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._records = records
        self._outcomes = _outcomes(records)
        self._joined = set(self._outcomes.values())

    def tell(self, number: int, record: Record) -> Iterator[Told]:
        """The lines of one record; none where the record of its beginning told it already."""
        entry = record.entry
        body, outcome = entry.body, self._outcomes.get(number)
        after = self._records[outcome] if outcome is not None else None
        took = _took(since(record, after)) if after else ""
        if number in self._joined and entry.kind != "result":
            return
        match entry.kind, entry.phase:
            case "request", _:
                yield from telling.request(body)
            case "decision", _:
                empty: dict[str, Any] = {**_NO_DECISION, **{name: [] for name in _EMPTY}}
                yield from telling.decision(body, recounted((record,)) or empty)
            case "probe", "after":
                yield from telling.probe(None, body, took)
            case "probe", _:
                yield from telling.probe(body, after.entry.body if after else None, took)
            case "selection", _:
                yield from telling.selection(body)
            case "authorization", _:
                yield from telling.authorization(body)
            case "approval", _:
                yield from telling_approvals.approval(body)
            case "execution", _:
                yield from telling.execution(body)
                if after is None and not self._was_suspended(number):
                    yield Told(
                        "unfinished", "no result is recorded: it still runs, or its process died", "warn"
                    )
                    yield from self._controls()
            case "tool_call", "before":
                yield from telling.tool_call(body, after.entry.body if after else None, took)
            case "tool_call", _:
                yield from telling.call_not_made(body)
            case "access", "before":
                yield from telling.asked_connection(body)
            case "access", "after":
                yield from telling.connection(body)
            case "access", _:
                yield from telling.access(body)
            case "commit", _:
                yield from telling.commit(body)
            case "result", _:
                yield from telling.result(body, self._ran(number))
                if body.get("executed") is not False:
                    yield from self._controls()
                yield from self._clock(record)
            case "log", _:
                yield from telling.of_the_log(body)
            case kind, _:
                yield from telling.anything(kind, body)
        yield from telling.commitments(record.kept)

    def _was_suspended(self, number: int) -> bool:
        """Whether what began here came to a call that waited: what goes on begins with a later record."""
        return any(one.entry.body.get("event") == "waiting" for one in self._records[number:])

    def _ran(self, number: int) -> str:
        began = next((one for one, end in self._outcomes.items() if end == number), None)
        return _took(since(self._records[began], self._records[number])) if began is not None else ""

    def _controls(self) -> Iterator[Told]:
        found = controls.of_run(self._records)
        asked = [one for one in found if one.asked is not None]
        seen = sum(not one.unknown for one in asked)
        if found:
            count = f"{len(asked)} controls were asked for, the system showed something of {seen}"
            yield Told("protection", count, "plain" if seen == len(asked) else "warn")
        for one in found:
            facts = [
                f"{name} {value}"
                for name, value in (
                    ("asked", one.asked),
                    ("claimed", one.claimed),
                    ("set up", one.configured),
                    ("seen", one.observed),
                )
                if value is not None
            ]
            facts += ["nothing seen of it"] if one.unknown else []
            tone: Tone = "bad" if one.short else "plain" if one.asked is not None else "faint"
            yield telling.told(f"  {one.control}", ", ".join(facts), tone)

    def _clock(self, last: Record) -> Iterator[Told]:
        first, writer = self._records[0], last.writer
        wall = _wall(first, last)
        if not _one_clock(first, last):
            yield Told("clock", "several systems wrote this: only their wall clocks tell the time", "warn")
        elif wall is not None and abs(moved := wall - since_boot(first, last)) >= _JUMP:
            yield Told("clock", f"the clock of the host was set by {moved:+.1f} s meanwhile", "warn")
        if (state := writer.get("clock")) is not None:
            yield telling.told("clock", f"{state} when the writer began", "faint")
        process = f"process {writer.get('pid')} of {writer.get('user') or '?'} on {writer.get('host')}"
        yield telling.told("written", f"by {process}, licet-audit {writer.get('version')}")


def waits(records: Sequence[Record]) -> bool:
    """Whether a run waits for an approval, as the last of its records says that tells."""
    return _last_word(records) == "waiting"


def was_denied(records: Sequence[Record]) -> bool:
    """Whether what a run waited for is over, so that it never goes on."""
    return _last_word(records) in OVER


def _last_word(records: Sequence[Record]) -> object:
    """The last event that says whether a run waits; None if it has ended, or never waited."""
    for record in reversed(records):
        event = record.entry.body.get("event") if record.entry.kind == "approval" else None
        if event in ("waiting", "resumed", *OVER) or record.entry.kind == "result":
            return event
    return None


def since(first: Record, last: Record) -> float | None:
    """Seconds from one record to another; None if no clock can tell."""
    return since_boot(first, last) if _one_clock(first, last) else _wall(first, last)


def since_boot(first: Record, last: Record) -> float:
    """Seconds from one record to another by a monotonic clock that both went by."""
    return (last.entry.mono_ns - first.entry.mono_ns) / 1e9


def _one_clock(first: Record, last: Record) -> bool:
    """Whether both went by one monotonic clock: that of a process, or of one start of a host."""
    one, other = first.writer, last.writer
    same = all(one.get(name) == other.get(name) and one.get(name) is not None for name in ("host", "boot"))
    return one.get("instance") == other.get("instance") or same


def _wall(first: Record, last: Record) -> float | None:
    try:
        moments = [datetime.fromisoformat(one.entry.time) for one in (first, last)]
        return (moments[1] - moments[0]).total_seconds()
    except (ValueError, TypeError):
        return None


def _took(seconds: float | None) -> str:
    return "" if seconds is None or seconds < 0 else f" after {show_time(seconds)}"


def _outcomes(records: Sequence[Record]) -> dict[int, int]:
    """The place of each effect with that of its outcome."""
    found: dict[int, int] = {}
    begun: dict[object, int] = {}
    for number, record in enumerate(records):
        entry = record.entry
        key = _key(record)
        if key is None:
            continue
        if entry.phase == "before":
            begun[key] = number
        elif (start := begun.pop(key, None)) is not None:
            found[start] = number
    return found


def _key(record: Record) -> object:
    """What an effect and its outcome have in common; None for a record that is neither."""
    entry = record.entry
    match entry.kind:
        case "tool_call":
            return "call", entry.run_id, str(entry.body.get("sequence"))
        case "probe":
            return "probe", entry.run_id, str(entry.body.get("backend"))
        case "execution" | "result":
            return "run", entry.run_id
    return None
