"""Whole spans from the records of a log, run by run, with ids that are the same every time.

Rules this module keeps:

- the spans are those of `licet.telemetry.spans`, which also makes them live;
- a run keeps the ids of its own span where it had one live; every other id comes from a leaf;
- memory grows with the runs that are open and with what people are asked, not with the log; an export that
  began after somebody was asked links to nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from licet.record import Record
from licet.telemetry import ROOT
from licet.telemetry import names as n
from licet.telemetry.spans import Begin, End, RunSpans


@dataclass(frozen=True, slots=True)
class Span:
    """A span that has ended; ids are bytes, `parent_id` is empty for one at the top of its trace.

    `link` is the trace and the span that it is linked to.
    """

    trace_id: bytes
    span_id: bytes
    parent_id: bytes
    begin: Begin
    end: End
    link: tuple[bytes, bytes] | None = None


@dataclass(slots=True)
class _Run:
    """A run whose spans have not all ended."""

    first: int
    steps: RunSpans = field(default_factory=RunSpans)
    begun: dict[str, Begin] = field(default_factory=dict)
    ids: dict[str, bytes] = field(default_factory=dict)
    around: bytes = b""


class Assembly:
    """Takes records in their order, and gives the spans that each ends."""

    def __init__(self) -> None:
        self._runs: dict[str, _Run] = {}
        self._asked: dict[str, tuple[bytes, bytes]] = {}

    @property
    def oldest(self) -> int | None:
        """The first record of the oldest run that is open: whoever goes on later has to begin there."""
        return min((run.first for run in self._runs.values()), default=None)

    def feed(self, record: Record) -> Iterator[Span]:
        """The spans that this record ends."""
        run_id = record.entry.run_id
        run = self._runs.pop(run_id, None) if run_id else None
        if run is None:
            run = _begun(record)
        for step in run.steps.feed(record):
            if isinstance(step, Begin):
                run.begun[step.key] = step
                run.ids.setdefault(step.key, derived(b"span", step.leaf, step.key)[:8])
            elif step.key in run.begun:
                yield self._linked(_whole(run, record, run.begun.pop(step.key), step))
        if run_id and run.begun:
            self._runs[run_id] = run

    def _linked(self, span: Span) -> Span:
        """A span with its link; one that others will link to is remembered until one does."""
        begin = span.begin
        if begin.name == n.APPROVAL_REQUEST:
            self._asked[begin.key] = span.trace_id, span.span_id
        elif begin.link is not None:
            return replace(span, link=self._asked.pop(begin.link, None))
        return span


def _begun(record: Record) -> _Run:
    run = _Run(record.seq)
    own = _id(record.entry.span_id, 8)
    if own:
        run.ids[ROOT] = own
    run.around = _id(record.entry.body.get("caller_span"), 8)
    return run


def _whole(run: _Run, record: Record, begin: Begin, end: End) -> Span:
    own = run.ids[begin.key]
    around = run.around if begin.parent is None else run.ids.get(begin.parent, b"")
    return Span(trace_of(record), own, around if around != own else b"", begin, end)


def trace_of(record: Record) -> bytes:
    """The trace that a record belongs to: the one that was live, or one for its run."""
    live = _id(record.entry.trace_id, 16)
    return live or derived(b"trace", record.log, record.entry.run_id or str(record.seq))[:16]


def span_of(record: Record) -> bytes:
    """The span that a log record belongs to: that of its run, where it was live."""
    return _id(record.entry.span_id, 8)


def derived(what: bytes, *parts: str) -> bytes:
    """An id that is the same every time."""
    framed = b"\0".join((b"licet", what, *(part.encode() for part in parts)))
    return hashlib.sha256(framed).digest()


def _id(value: object, size: int) -> bytes:
    """An id that a record holds; empty if it holds none."""
    try:
        found = bytes.fromhex(value) if isinstance(value, str) else b""
    except ValueError:
        return b""
    return found if len(found) == size and any(found) else b""
