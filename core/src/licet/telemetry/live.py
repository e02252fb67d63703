"""The spans and metrics of one run while it happens, for the program's own OpenTelemetry.

Rules this module keeps:

- the root begins with the run, in the caller's context; all else follows records that are durable;
- everything but asking for ids happens on the emitter's thread, in the caller's context;
- the spans of a run are touched by that thread alone.
"""

from __future__ import annotations

import contextlib
import contextvars
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from licet.record import Record
from licet.telemetry import ROOT, instruments
from licet.telemetry import names as n
from licet.telemetry.emitter import emitter
from licet.telemetry.measures import Measure, RunMeasures
from licet.telemetry.spans import Begin, End, RunSpans, Step
from licet.telemetry.values import Attributes

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, SpanContext

_HASH = 80  # characters of the longest hash
_LIMITS = ("OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT")


@dataclass(frozen=True, slots=True)
class Ids:
    """Where a run stands in a trace: its trace, its own span if it has one, and the span around it."""

    trace: str | None = None
    span: str | None = None
    parent: str | None = None


class LiveRun:
    """The spans and metrics of the run `run_id`, which began at `began_ns` (since 1970)."""

    def __init__(self, name: str, run_id: str, began_ns: int | None = None) -> None:
        self._name = name
        self._run_id = run_id
        self._began = began_ns
        self._caller = contextvars.copy_context()
        self._steps = RunSpans(rooted=True)
        self._measures = RunMeasures()
        self._spans: dict[str, Span] = {}
        self._asked: dict[str, SpanContext] = {}
        self._root: Span | None = None
        self._fits = _hashes_fit()

    def begin(self) -> Ids:
        """Begin the root; what is known of it in time."""
        tracer = instruments.tracer()
        if tracer is None:
            return Ids()

        def start() -> Ids:
            from opentelemetry import trace

            own = {n.RUN_ID: self._run_id}
            around = trace.get_current_span().get_span_context()
            self._root = tracer.start_span(self._name, attributes=own, start_time=self._began)
            self._spans[ROOT] = self._root
            here = self._root.get_span_context()
            parent = f"{around.span_id:016x}" if around.is_valid else None
            if not here.is_valid:
                return Ids()
            mine = here.span_id != around.span_id  # without an SDK, it is the caller's span again
            return Ids(f"{here.trace_id:032x}", f"{here.span_id:016x}" if mine else None, parent)

        return emitter().ask(lambda: self._caller.run(start)) or Ids()

    def show(self, records: Sequence[Record], seconds: float) -> None:
        """Show what these records say; it took `seconds` until they were durable."""

        def work() -> None:
            measures: list[Measure] = [(n.APPEND_DURATION, seconds, {})]
            for record in records:
                measures.extend(self._measures.feed(record))
                for step in self._steps.feed(record):
                    emitter().attempt(partial(self._take, step))
            self._count(measures)

        emitter().do(lambda: self._caller.run(work))

    def failed(self, slug: str) -> None:
        """Show that records could not be made durable."""

        def work() -> None:
            if self._root is not None:
                _mark(self._root, "audit_unavailable")
            self._count([(n.LOG_FAILURES, 1, {n.ERROR_TYPE: slug})])

        emitter().do(lambda: self._caller.run(work))

    def end(self) -> None:
        """End what is still open: a run that was refused without a record, or attacks without a run."""

        def work() -> None:
            while self._spans:
                emitter().attempt(self._spans.popitem()[1].end)

        emitter().do(lambda: self._caller.run(work))

    @contextlib.contextmanager
    def inside(self, key: str) -> Iterator[None]:
        """Let the span `key` be the current one, so that what happens inside is below it.

        The root is at hand at once; another one is waited for, so that a tool finds its own.
        """
        span = self._root
        if span is not None and key != ROOT:
            span = emitter().ask(lambda: self._spans.get(key)) or span
        if span is None:
            yield
            return
        from opentelemetry import context, trace

        token = context.attach(trace.set_span_in_context(span))
        try:
            yield
        finally:
            context.detach(token)

    def _take(self, step: Step) -> None:
        if self._root is None or not self._root.is_recording():
            return
        if isinstance(step, Begin):
            begun = self._spans[step.key] = self._start(step)
            if step.name == n.APPROVAL_REQUEST:
                self._asked[step.key] = begun.get_span_context()
        elif (span := self._spans.pop(step.key, None)) is not None:
            self._finish(span, step)

    def _start(self, step: Begin) -> Span:
        tracer = instruments.tracer()
        assert tracer is not None  # there is a root
        from opentelemetry.trace import Link

        parent = self._spans.get(step.parent or ROOT, self._root)
        linked = self._asked.get(step.link) if step.link is not None else None
        return tracer.start_span(
            step.name,
            context=_context(parent),
            attributes=self._fitting(step.attributes),
            links=[Link(linked)] if linked is not None else None,
            start_time=step.ns,
        )

    def _finish(self, span: Span, step: End) -> None:
        span.set_attributes(self._fitting(step.attributes))
        if step.error is not None:
            _mark(span, step.error)
        span.end(step.ns)

    def _fitting(self, attributes: Attributes) -> Attributes:
        """Without hashes where the environment says that they would be cut."""
        if self._fits:
            return attributes
        hashes = ("digest", "leaf", "evidence")
        return {name: value for name, value in attributes.items() if not name.endswith(hashes)}

    def _count(self, measures: list[Measure]) -> None:
        if dropped := emitter().dropped:
            emitter().dropped = 0
            measures.append((n.DROPPED, dropped, {}))
        instruments.measure(measures, _context(self._root))


def _context(span: Span | None) -> Context | None:
    if span is None:
        return None
    from opentelemetry import trace

    return trace.set_span_in_context(span)


def _mark(span: Span, error: str) -> None:
    from opentelemetry.trace import Status, StatusCode

    span.set_attribute(n.ERROR_TYPE, error)
    span.set_status(Status(StatusCode.ERROR))


def _hashes_fit() -> bool:
    limits = (os.environ.get(name, "").strip() for name in _LIMITS)
    return all(not limit.isdigit() or int(limit) >= _HASH for limit in limits)
