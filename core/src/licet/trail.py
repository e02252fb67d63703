"""The trail of one run: each stage becomes a record and, from the same value, a span.

Rules this module keeps:

- `step` notes, `commit` makes durable: what was not committed has not happened for an auditor;
- the record is the truth; spans and metrics are made from records that are durable (`licet.telemetry`), and
  nothing that becomes of them reaches the run;
- a failed commit raises `AuditUnavailable`, unless policy says `best_effort`: then the gap is recorded as
  soon as the log takes records again.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from licet import telemetry
from licet.errors import AuditUnavailable, EntryRefused
from licet.logbook import Gaps
from licet.plain import plain_body
from licet.record import AuditLog, Entry, Kept, Kind, Phase, Record
from licet.units import show_instant

if TYPE_CHECKING:
    from licet.telemetry.live import LiveRun


class Trail:
    """The records and spans of the run `run_id`; use it as a context manager around the run.

    `last` is the last record that is durable, `lost` why a `best_effort` trail lost some, and `log_failed`
    whether the log is to be given up. `caller` is the id of the span around the run, if there is one.
    """

    def __init__(
        self,
        log: AuditLog,
        run_id: str,
        *,
        best_effort: bool,
        gaps: Gaps,
        span: str = telemetry.RUN,
        began: datetime | None = None,
    ) -> None:
        self.run_id = run_id
        self.last: Record | None = None
        self.lost: AuditUnavailable | None = None
        self.log_failed = False
        self.caller: str | None = None
        self._log = log
        self._best_effort = best_effort
        self._gaps = gaps
        self._noted: list[Entry] = []
        self._aside: list[Entry] = []
        self._live = _live(span, run_id, began) if telemetry.is_loaded() else None
        self._trace_id: str | None = None
        self._span_id: str | None = None

    def __enter__(self) -> Self:
        if self._live is not None:
            ids = self._live.begin()
            self._trace_id, self._span_id, self.caller = ids.trace, ids.span, ids.parent
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.end()

    def inside(self, key: str) -> contextlib.AbstractContextManager[None]:
        """Let the span `key` of this run be the current one inside, if there is one."""
        return self._live.inside(key) if self._live is not None else contextlib.nullcontext()

    def step(
        self, kind: Kind, body: Mapping[str, Any], *, phase: Phase | None = None, kept: tuple[Kept, ...] = ()
    ) -> None:
        """Note that a stage is done, now; `kept` is content that becomes durable with it."""
        entry = Entry(
            kind=kind,
            run_id=self.run_id,
            body=plain_body(body),
            time=show_instant(time.time_ns()),
            mono_ns=time.monotonic_ns(),
            phase=phase,
            trace_id=self._trace_id,
            span_id=self._span_id,
            kept=kept,
        )
        self._noted.append(entry)

    def aside(self, body: Mapping[str, Any], *, kind: Kind = "log", run_id: str = "") -> None:
        """Note what belongs to another run, or to none (what a log says of itself); durable as all else."""
        moment = show_instant(time.time_ns()), time.monotonic_ns()
        self._aside.append(Entry(kind, run_id, plain_body(body), *moment))

    async def end(self, kind: Kind, body: Mapping[str, Any]) -> None:
        """Record how something ended that was cancelled, if that can be; else the next start tells."""
        self.step(kind, body, phase="after")
        with contextlib.suppress(AuditUnavailable):
            await self.commit()

    async def commit(self) -> None:
        """Make all that was noted durable, as one write.

        Raises:
            AuditUnavailable: it is not durable, and policy requires that it is.
        """
        noted, self._noted = self._noted, []
        aside, self._aside = self._aside, []
        if not (entries := [*aside, *noted]):
            return
        if missing := self._gaps.missing:
            entries.insert(0, _gap(missing, entries[0]))
        began = time.perf_counter()
        try:
            records = await self._log.append(entries)
        except AuditUnavailable as problem:
            self.log_failed |= not isinstance(problem, EntryRefused)
            if self._live is not None:
                self._live.failed(problem.slug)
            if not self._best_effort:
                raise
            self.lost = problem
            self._gaps.lost(len(noted))
            return
        if missing:
            self._gaps.recorded(missing)
        self.last = records[-1]
        if self._live is not None and noted:
            self._live.show(records[-len(noted) :], time.perf_counter() - began)


def _live(span: str, run_id: str, began: datetime | None) -> LiveRun:
    from licet.telemetry.live import LiveRun  # a program without OpenTelemetry has no use for it
    from licet.telemetry.spans import instant

    return LiveRun(span, run_id, instant(began.isoformat()) if began else None)


def _gap(missing: int, first: Entry) -> Entry:
    body = {"event": "gap", "missing": missing}
    return Entry("log", "", body, time=first.time, mono_ns=first.mono_ns)
