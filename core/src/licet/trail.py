"""The trail of one run: each stage becomes a record and, from the same value, a span.

Rules this module keeps:

- `step` notes, `commit` makes durable: what was not committed has not happened for an auditor;
- the record is the truth; a span is made after its record is durable, and names its place in the log;
- a failed commit raises `AuditUnavailable`, unless policy says `best_effort`: then the gap is recorded as
  soon as the log takes records again.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from licet import telemetry
from licet.errors import AuditUnavailable, EntryRefused
from licet.logbook import Gaps
from licet.plain import plain_body
from licet.record import AuditLog, Entry, Kept, Kind, Phase, Record

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, Tracer


_Noted = tuple[Entry, int, int]
"""An entry, and when its stage began and ended, in nanoseconds."""


class Trail:
    """The records and spans of the run `run_id`; use it as a context manager around the run.

    `last` is the last record that is durable, `lost` why a `best_effort` trail lost some, and `log_failed`
    whether the log is to be given up.
    """

    def __init__(
        self, log: AuditLog, run_id: str, *, best_effort: bool, gaps: Gaps, span: str = telemetry.RUN
    ) -> None:
        self.run_id = run_id
        self.last: Record | None = None
        self.lost: AuditUnavailable | None = None
        self.log_failed = False
        self._log = log
        self._best_effort = best_effort
        self._gaps = gaps
        self._name = span
        self._noted: list[_Noted] = []
        self._mark_ns = time.time_ns()
        self._tracer: Tracer | None = telemetry.tracer()
        self._span: Span | None = None
        self._context: Context | None = None
        self._trace_id: str | None = None
        self._span_id: str | None = None

    def __enter__(self) -> Self:
        if self._tracer is not None:
            from opentelemetry import trace

            self._span = self._tracer.start_span(self._name, attributes={telemetry.RUN_ID: self.run_id})
            self._context = trace.set_span_in_context(self._span)
            if (own := self._span.get_span_context()).is_valid:
                self._trace_id, self._span_id = f"{own.trace_id:032x}", f"{own.span_id:016x}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._span is not None:
            self._span.end()

    def step(
        self, kind: Kind, body: Mapping[str, Any], *, phase: Phase | None = None, kept: tuple[Kept, ...] = ()
    ) -> None:
        """Note that a stage is done; its span reaches from the stage before it to now.

        `kept` is content that becomes durable with the record, beside it.
        """
        now = time.time_ns()
        entry = Entry(
            kind=kind,
            run_id=self.run_id,
            body=plain_body(body),
            time=_rfc3339(now),
            mono_ns=time.monotonic_ns(),
            phase=phase,
            trace_id=self._trace_id,
            span_id=self._span_id,
            kept=kept,
        )
        self._noted.append((entry, self._mark_ns, now))
        self._mark_ns = now

    async def commit(self) -> None:
        """Make all that was noted durable, as one write.

        Raises:
            AuditUnavailable: it is not durable, and policy requires that it is.
        """
        noted, self._noted = self._noted, []
        entries = [entry for entry, _, _ in noted]
        if missing := self._gaps.missing:
            entries.insert(0, _gap(missing, entries[0]))
        try:
            records = await self._log.append(entries)
        except AuditUnavailable as problem:
            self.log_failed |= not isinstance(problem, EntryRefused)
            if not self._best_effort:
                raise
            self.lost = problem
            self._gaps.lost(len(noted))
            return
        if missing:
            self._gaps.recorded(missing)
        self.last = records[-1]
        self._emit(noted, records[-len(noted) :])

    def _emit(self, noted: list[_Noted], records: tuple[Record, ...]) -> None:
        if self._tracer is None or self._span is None or not self._span.is_recording():
            return
        for (_, began_ns, ended_ns), record in zip(noted, records, strict=True):
            kind = record.entry.kind
            span = self._tracer.start_span(telemetry.STEPS[kind], context=self._context, start_time=began_ns)
            span.set_attributes(dict(telemetry.attributes(kind, record.entry.body)) | _place(record))
            span.end(ended_ns)
        if records[-1].entry.kind == "result":
            self._close(records[-1])

    def _close(self, result: Record) -> None:
        assert self._span is not None
        body = result.entry.body
        self._span.set_attributes({telemetry.TERMINATION: body["termination"]} | _place(result))
        if body["termination"] in ("backend_error", "backend_lost", "launch_failed"):
            from opentelemetry.trace import Status, StatusCode

            self._span.set_attribute("error.type", body["termination"])
            self._span.set_status(Status(StatusCode.ERROR))


def _gap(missing: int, first: Entry) -> Entry:
    body = {"event": "gap", "missing": missing}
    return Entry("log", "", body, time=first.time, mono_ns=first.mono_ns)


def _place(record: Record) -> dict[str, str | int]:
    place: dict[str, str | int] = {
        telemetry.RUN_ID: record.entry.run_id,
        telemetry.LOG: record.log,
        telemetry.SEQ: record.seq,
        telemetry.LEAF: record.leaf,
    }
    if record.entry.phase is not None:
        place[telemetry.PHASE] = record.entry.phase
    return place


def _rfc3339(ns: int) -> str:
    seconds, rest = divmod(ns, 1_000_000_000)
    return f"{_second(seconds)}.{rest:09d}Z"


@lru_cache(maxsize=4)
def _second(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"
