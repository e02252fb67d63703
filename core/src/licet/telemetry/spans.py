"""The spans of one run, from its records alone: when each begins, when it ends, and what it says.

Rules this module keeps:

- pure, and the same whether the records were just committed or are read from a log years later;
- a denial is no error: the status of a span is ERROR only for faults of licet, its backends or its log;
- a span that is open when its run ends ends with it; where a process died, at the last that is known of it;
- nobody waits in a span: all of them end where a run waits for an approval, and it begins anew when resumed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from licet.record import Record
from licet.telemetry import CALL, ROOT
from licet.telemetry import attributes as says
from licet.telemetry import names as n
from licet.telemetry.values import MOST_ATTRIBUTES, Attributes, at, text

CODE = "code"
RESOLVED = frozenset({"granted", "denied", "expired", "withdrawn", "revoked"})
"""Events that end the asking of an approval, or take it back."""
FAULTS = frozenset({"backend_error", "backend_lost", "launch_failed", "audit_unavailable", "unknown"})
"""Terminations that are faults, and not what the code or the policy did."""

_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
_UNITS = (timedelta(microseconds=1), 1000)


@dataclass(frozen=True, slots=True)
class Begin:
    """A span begins: its key in its run, the key of its parent, its name, and the leaf that began it.

    `link` is the key of a span that ended before, maybe in another process, and that this one belongs to.
    """

    key: str
    parent: str | None
    name: str
    ns: int
    leaf: str
    attributes: Attributes = field(default_factory=dict)
    link: str | None = None


@dataclass(frozen=True, slots=True)
class End:
    """A span ends, with the record that ended it; `error` is its type where the status is ERROR."""

    key: str
    ns: int
    record: Record
    attributes: Attributes = field(default_factory=dict)
    error: str | None = None


Step = Begin | End


class RunSpans:
    """Turns the records of one run, in their order, into steps of its spans.

    `rooted` says that the root was begun already, by whoever is about to write the first record.
    """

    def __init__(self, *, rooted: bool = False) -> None:
        self._rooted = rooted
        self._mark = 0  # where the last stage ended
        self._last = 0  # when the last record was written
        self._took: dict[str, int] = {}
        self._who: Attributes = {}
        self.open: dict[str, str] = {}
        """Keys of the spans that are open below the root, in their order."""
        self.ended = False

    def feed(self, record: Record) -> Iterator[Step]:
        """The steps that this record makes."""
        now = nanoseconds(record.entry.time)
        match record.entry.kind, record.entry.phase:
            case "request", _:
                yield from self._request(record, now)
            case (("decision" | "selection" | "authorization"), _):
                yield from self._stage(record, now)
            case "probe", phase:
                yield from self._probe(record, now, phase == "before")
            case "approval", _:
                yield from self._approval(record, now)
            case "execution", _:
                yield self._begin(record, CODE, ROOT, n.EXECUTE, now)
            case "tool_call", "before":
                yield from self._call(record, now)
            case "tool_call", _:
                yield from self._close(record, _call_key(record), now, _own(record))
            case "result", _:
                yield from self._result(record, now)
            case kind, _:
                parent = self._inner() if record.entry.run_id else None
                yield from self._whole(record, n.STEPS.get(kind, n.LOG_SPAN), now, now, parent)
        self._last = now

    def _request(self, record: Record, now: int) -> Iterator[Step]:
        body = record.entry.body
        began = instant(body.get("at")) or now
        if not self._rooted:
            self._rooted = True
            yield Begin(ROOT, None, n.RUN, began, record.leaf, {n.RUN_ID: record.entry.run_id})
        self._who = says.who(body)
        took = body.get("took_ns")
        if isinstance(took, Mapping):
            self._took = {str(stage): _duration(ns) for stage, ns in took.items()}
        self._mark = began
        yield from self._stage(record, now)

    def _stage(self, record: Record, now: int) -> Iterator[Step]:
        """A stage that reaches from where the one before ended for as long as it took, or until now."""
        kind = record.entry.kind
        began = self._mark or now
        took = self._took.pop(kind, None)
        self._mark = now if took is None else min(began + took, now)
        yield from self._whole(record, n.STEPS[kind], began, self._mark, ROOT)

    def _probe(self, record: Record, now: int, begins: bool) -> Iterator[Step]:
        body = record.entry.body
        key = f"probe {body.get('backend')}"
        self._took.clear()  # what was measured was before the attacks
        self._mark = now
        if begins:
            yield self._begin(record, key, ROOT, n.PROBE, now)
        elif key in self.open:
            yield from self._close(record, key, now, _own(record))
        else:  # interrupted
            yield from self._close_all(record, now)

    def _call(self, record: Record, now: int) -> Iterator[Step]:
        body = record.entry.body
        key = _call_key(record)
        began = now - _duration(body.get("took_ns"))
        name = f"{n.EXECUTE_TOOL} {text(body.get('tool'))}"
        yield self._begin(record, key, self._inner(), name, began)
        yield from self._whole(record, n.DECIDE, began, now, key, says.decision(body))

    def _approval(self, record: Record, now: int) -> Iterator[Step]:
        """One short span a step; a run that waits has none that is open, until it is resumed."""
        body = record.entry.body
        event, asked = str(body.get("event")), f"{n.APPROVAL_REQUEST} {text(body.get('approval'))}"
        if event == "resumed" and not self._rooted:
            self._rooted, self.ended = True, False
            yield Begin(ROOT, None, n.RUN, now, record.leaf, {n.RUN_ID: record.entry.run_id})
        if event == "asked":
            yield Begin(asked, self._inner(), n.APPROVAL_REQUEST, now, record.leaf, _own(record))
            yield End(asked, now, record, place(record))
        elif event in RESOLVED:
            key = f"{n.APPROVAL_RESOLVE} {record.seq}"
            yield Begin(key, self._inner(), n.APPROVAL_RESOLVE, now, record.leaf, _own(record), asked)
            yield End(key, now, record, place(record))
        else:
            yield from self._whole(record, n.APPROVAL, now, now, self._inner())
        if event == "waiting":
            yield from self._close_all(record, now)
            self._rooted, self.ended = False, True
            yield End(ROOT, now, record, self._who | place(record))
        self._mark = now

    def _result(self, record: Record, now: int) -> Iterator[Step]:
        body = record.entry.body
        termination = str(body.get("termination"))
        error = termination if termination in FAULTS else None
        began = now - _duration(body.get("took_ns"))
        until = now
        if termination == "unknown":  # written by whoever came after the process that died
            began = until = self._last or now
        yield from self._close_all(record, began, says.ended(body), error)
        yield from self._whole(record, n.RESULT, began, until, ROOT, error=error)
        self.ended = True
        yield End(ROOT, until, record, self._who | says.ended(body) | place(record), error)

    def _inner(self) -> str:
        return CODE if CODE in self.open else ROOT

    def _begin(self, record: Record, key: str, parent: str, name: str, ns: int) -> Begin:
        self.open[key] = name
        return Begin(key, parent, name, ns, record.leaf, _own(record) | place(record))

    def _close(
        self, record: Record, key: str, ns: int, found: Attributes, error: str | None = None
    ) -> Iterator[End]:
        if self.open.pop(key, None) is not None:
            yield End(key, ns, record, found | place(record), error)

    def _close_all(
        self, record: Record, ns: int, found: Attributes | None = None, error: str | None = None
    ) -> Iterator[End]:
        for key in reversed(list(self.open)):
            mine = key == CODE
            yield from self._close(record, key, ns, (found or {}) if mine else {}, error if mine else None)

    def _whole(
        self,
        record: Record,
        name: str,
        began: int,
        ended: int,
        parent: str | None,
        found: Attributes | None = None,
        error: str | None = None,
    ) -> Iterator[Step]:
        """A span that one record makes whole."""
        key = f"{name} {record.seq}"
        own = _own(record) if found is None else found
        yield Begin(key, parent, name, began, record.leaf, own)
        yield End(key, ended, record, place(record), error)


def place(record: Record) -> Attributes:
    """What leads from a span to its record; always last, so that limits evict it last."""
    return {
        n.RUN_ID: record.entry.run_id,
        n.RECORD_ID: record_id(record),
        n.LOG: record.log,
        n.SEQ: record.seq,
        n.LEAF: record.leaf,
    }


def record_id(record: Record) -> str:
    """What names a record everywhere."""
    return f"{record.log}/{record.seq}"


def nanoseconds(time: str) -> int:
    """The time of a record (RFC 3339 in UTC, with nanoseconds) since 1970; 0 if it is none."""
    whole, _, fraction = time.removesuffix("Z").partition(".")
    digits = f"{fraction:0<9}"[:9]
    if not digits.isascii() or not digits.isdigit():
        return 0
    seconds = instant(f"{whole}+00:00")
    return seconds + int(digits) if seconds is not None else 0


def instant(value: Any) -> int | None:
    """An ISO 8601 instant in nanoseconds since 1970, None if it is none."""
    try:
        found = datetime.fromisoformat(value) - _EPOCH
    except (TypeError, ValueError):
        return None
    return found // _UNITS[0] * _UNITS[1]


def _own(record: Record) -> Attributes:
    found = says.attributes(record.entry.kind, record.entry.body)
    return dict(list(found.items())[: MOST_ATTRIBUTES - 8])


def _duration(value: Any) -> int:
    """Nanoseconds that something took, as far as a record can say it."""
    return value if type(value) is int and 0 <= value < 2**53 else 0


def _call_key(record: Record) -> str:
    return f"{CALL} {at(record.entry.body, 'sequence')}"
