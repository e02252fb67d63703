"""Spans are a view of records: same values, one for each step, child of the caller's span."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from licet import Runtime
from licet.record import MemoryLog
from licet.telemetry import names
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import StatusCode


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    kept = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    return kept


def run(code: str, log: MemoryLog, **fields: Any) -> None:
    async def main() -> None:
        async with Runtime(log=log) as runtime:
            await runtime.run(code, **fields)

    asyncio.run(main())


def test_each_step_is_a_span_of_the_run_with_its_place_in_the_log(exporter: InMemorySpanExporter) -> None:
    log = MemoryLog()
    with trace.get_tracer("caller").start_as_current_span("caller") as caller:
        run("1+1", log)
    spans = {span.name: span for span in exporter.get_finished_spans()}
    root = spans["licet.run"]
    assert root.parent is not None
    assert root.parent.span_id == caller.get_span_context().span_id
    records = list(log.records())
    assert [record.entry.kind for record in records] == [
        "request", "decision", "selection", "authorization", "execution", "result",
    ]  # fmt: skip
    for record in records:
        span = spans[names.STEPS[record.entry.kind]]
        assert span.parent is not None
        assert span.parent.span_id == root.context.span_id
        assert span.attributes is not None
        assert span.attributes[names.SEQ] == record.seq
        assert span.attributes[names.LEAF] == record.leaf
        assert record.entry.trace_id == f"{root.context.trace_id:032x}"
    assert spans["licet.decide"].attributes["licet.decision.effect"] == "allow"  # type: ignore[index]
    assert root.attributes["licet.termination"] == "exited"  # type: ignore[index]


def test_a_denial_is_no_error(exporter: InMemorySpanExporter) -> None:
    run("open('/etc/passwd')", MemoryLog())
    root = next(span for span in exporter.get_finished_spans() if span.name == "licet.run")
    assert root.status.status_code is StatusCode.UNSET
    assert root.attributes["licet.termination"] == "policy_denied"  # type: ignore[index]


def test_sampling_everything_away_costs_no_record(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = TracerProvider(sampler=ALWAYS_OFF)
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    log = MemoryLog()
    run("1+1", log)
    assert len(list(log.records())) == 6


def test_every_kind_of_record_has_a_span_and_the_docs_name_it() -> None:
    from pathlib import Path
    from typing import get_args

    from licet.record import Kind

    page = (Path(__file__).parents[2] / "docs" / "reference" / "trail.md").read_text("utf-8")
    assert set(names.STEPS) == set(get_args(Kind))
    assert [name for name in names.STEPS.values() if f"`{name}`" not in page] == []
