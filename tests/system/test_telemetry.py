"""Spans and metrics are a view of records: they say what records say, and nothing they do reaches a run."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from cli import licet
from licet import Runtime, Settings, Termination, telemetry
from licet.backend import Descriptor, Host, Language, Outcome, Sandbox, ToolCall
from licet.contract import Control, Enforcement, Level, SandboxEnforcementContract
from licet.errors import AuditUnavailable, BackendError
from licet.logbook import Gaps
from licet.plan import ExecutionPlan
from licet.record import Entry, MemoryLog, Record
from licet.state import open_state
from licet.telemetry import emitter, names
from licet.trail import Trail
from licet_audit.log import DurableLog
from licet_audit.otlp.assembly import Assembly
from opentelemetry import context as otel_context
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased, Sampler
from opentelemetry.trace import NonRecordingSpan, SpanContext, StatusCode, TraceFlags

HELD = SandboxEnforcementContract(
    **{control.value: Enforcement(Level.enforced, "kernel", "a test") for control in Control}
)
POLICY = """\
licet: 1
name: t
sandbox: {evidence: declared}
allow: [tool add]
deny: [tool wipe]
"""
Work = Callable[[Host], Any]


class Puppet:
    """A backend whose code is a function of the test."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def describe(self) -> Descriptor:
        opens = frozenset({"read", "write", "network", "shell", "tool"})
        return Descriptor("puppet", "7", HELD, Language("Puppet"), opens, 1.0)  # type: ignore[arg-type]

    async def open(self, plan: ExecutionPlan, host: Host) -> Sandbox:
        return self  # type: ignore[return-value]

    async def run(self, plan: ExecutionPlan, host: Host) -> Outcome:
        await self._work(host)
        return Outcome(Termination.exited, exit_code=0)

    async def close(self) -> None:
        pass


async def nothing(host: Host) -> None:
    pass


async def two_calls(host: Host) -> None:
    await host.call(ToolCall("add", (1,)))
    await host.call(ToolCall("wipe", ()))


def add(number: int) -> int:
    return number + 1


def traced_add(number: int) -> int:
    with trace.get_tracer("the tool").start_as_current_span("inside the tool"):
        return number + 1


def run(
    work: Work = nothing, code: str = "1+1", log: Any = None, tool: Any = add, **fields: Any
) -> list[Record]:
    """Run, and return the records."""
    log = log or MemoryLog()
    Path("t.yaml").write_text(POLICY)
    settings = Settings(enabled=("policies",))
    tools = {"add": tool, "wipe": print}
    with Runtime("t.yaml", log=log, backends=[Puppet(work)], settings=settings) as runtime:
        runtime.run_sync(code, tools=tools, **fields)
    return list(log.records())


@pytest.fixture
def provide(monkeypatch: pytest.MonkeyPatch) -> Callable[[TracerProvider], None]:
    return lambda provider: monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)


@pytest.fixture
def exporter(provide: Callable[[TracerProvider], None]) -> InMemorySpanExporter:
    kept = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    provide(provider)
    return kept


def by_name(exporter: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in exporter.get_finished_spans()}


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def parent(span: ReadableSpan) -> int | None:
    return span.parent.span_id if span.parent else None


def span_id(span: ReadableSpan) -> int:
    assert span.context is not None
    return span.context.span_id


# -- what spans say


def test_a_run_is_a_span_below_the_callers_with_its_steps_below_it(exporter: InMemorySpanExporter) -> None:
    with trace.get_tracer("caller").start_as_current_span("caller") as caller:
        records = run(
            two_calls,
            tool=traced_add,
            subject={"id": "ada", "session": "s1"},
            metadata={"gen_ai.agent.name": "bot"},
        )
    spans = by_name(exporter)
    root, code = spans["licet.run"], spans["licet.execute"]
    assert parent(root) == caller.get_span_context().span_id
    assert parent(spans["execute_tool add"]) == span_id(code)
    assert parent(spans["inside the tool"]) == span_id(spans["execute_tool add"])
    for name in ("licet.normalize", "licet.select", "licet.authorize", "licet.execute", "licet.result"):
        assert parent(spans[name]) == span_id(root), name
    decided = [span for span in exporter.get_finished_spans() if span.name == "licet.decide"]
    above = [span_id(spans[name]) for name in ("execute_tool add", "execute_tool wipe")]
    assert [parent(span) for span in decided] == [span_id(root), *above]
    assert [attributes(span)[names.EFFECT] for span in decided] == ["allow", "allow", "deny"]
    assert {record.entry.trace_id for record in records} == {f"{root.context.trace_id:032x}"}  # type: ignore[union-attr]
    assert {record.entry.span_id for record in records} == {f"{span_id(root):016x}"}
    said = attributes(root)
    assert (said[names.TERMINATION], said[names.SUCCESS]) == ("exited", True)
    assert (said[names.USER_ID], said[names.SESSION_ID], said[names.AGENT_NAME]) == ("ada", "s1", "bot")
    assert attributes(spans["execute_tool wipe"])[names.CALL_OUTCOME] == "denied"
    assert {span.status.status_code for span in exporter.get_finished_spans()} == {StatusCode.UNSET}


def test_no_span_waits_for_an_approval_and_its_end_is_linked_to_its_asking(
    exporter: InMemorySpanExporter,
) -> None:
    trail = Trail(MemoryLog(), "R", best_effort=False, gaps=Gaps())

    async def steps() -> None:
        trail.step("execution", {"backend": "puppet"}, phase="before")
        for event in ("asked", "granted", "waiting"):
            trail.step("approval", {"event": event, "approval": "A"})
            await trail.commit()

    with trail:
        asyncio.run(steps())
        assert telemetry.settle(5)
        spans = by_name(exporter)  # nothing is open while it waits
        assert {"licet.run", "licet.execute", "licet.approval"} < spans.keys()
    asked, resolved = spans["licet.approval.request"], spans["licet.approval.resolve"]
    assert [link.context.span_id for link in resolved.links] == [span_id(asked)]
    assert (len(asked.links), parent(asked)) == (0, span_id(spans["licet.execute"]))
    assert attributes(resolved)[names.APPROVAL_ID] == "A"


def test_every_span_leads_to_the_record_that_ended_it(exporter: InMemorySpanExporter) -> None:
    records = {record.seq: record for record in run(two_calls)}
    spans = exporter.get_finished_spans()
    assert len(spans) == 11
    for span in spans:
        said = attributes(span)
        record = records[said[names.SEQ]]
        assert (said[names.LEAF], said[names.RECORD_ID]) == (record.leaf, f"memory/{record.seq}")
    assert {attributes(span)[names.SEQ] for span in spans} == {0, 1, 2, 3, 6, 8, 9, 5, 7}


def test_stages_follow_each_other_and_last_as_long_as_they_took(exporter: InMemorySpanExporter) -> None:
    run()
    spans = by_name(exporter)
    stages = [spans[f"licet.{stage}"] for stage in ("normalize", "decide", "select", "authorize")]
    times = [time for span in stages for time in (span.start_time, span.end_time)]
    root = spans["licet.run"]
    assert times == sorted(times)  # type: ignore[type-var]
    assert stages[0].start_time == root.start_time
    assert all(before.end_time == after.start_time for before, after in pairwise(stages))
    assert spans["licet.result"].end_time == root.end_time


def test_a_denial_is_no_error_and_a_fault_is_one(exporter: InMemorySpanExporter) -> None:
    run(code="open('/etc/passwd')")
    root = by_name(exporter)["licet.run"]
    assert (root.status.status_code, attributes(root)[names.TERMINATION]) == (
        StatusCode.UNSET,
        "policy_denied",
    )
    exporter.clear()

    async def broken(host: Host) -> None:
        raise BackendError("no")

    run(broken)
    spans = by_name(exporter)
    for name in ("licet.run", "licet.execute"):
        assert spans[name].status.status_code is StatusCode.ERROR
        assert attributes(spans[name])[names.ERROR_TYPE] == "backend_error"
    assert spans["licet.decide"].status.status_code is StatusCode.UNSET


def test_a_log_that_takes_nothing_is_an_error_of_the_run(exporter: InMemorySpanExporter) -> None:
    class Full(MemoryLog):
        async def append(self, entries: Sequence[Entry]) -> tuple[Record, ...]:
            raise AuditUnavailable("full")

    assert run(log=Full()) == []
    [root] = exporter.get_finished_spans()
    assert (root.name, root.status.status_code) == ("licet.run", StatusCode.ERROR)
    assert attributes(root)[names.ERROR_TYPE] == "audit_unavailable"


def test_limits_of_the_sdk_evict_what_is_ours_to_lose_first(
    provide: Callable[[TracerProvider], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = InMemorySpanExporter()
    provider = TracerProvider(span_limits=SpanLimits(max_span_attributes=5))
    provider.add_span_processor(SimpleSpanProcessor(kept))
    provide(provider)
    records = run()
    for span in kept.get_finished_spans():
        said = attributes(span)
        assert said[names.LEAF] == records[said[names.SEQ]].leaf
    monkeypatch.setenv("OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", "20")
    kept.clear()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    provide(provider)
    run()
    whole = [attributes(span) for span in kept.get_finished_spans()]
    assert whole
    assert not any(name.endswith(("digest", "leaf")) for said in whole for name in said)


def test_runs_on_many_loops_and_threads_keep_their_own_spans(exporter: InMemorySpanExporter) -> None:
    Path("t.yaml").write_text(POLICY)
    log = MemoryLog()
    with Runtime(
        "t.yaml", log=log, backends=[Puppet(two_calls)], settings=Settings(enabled=("policies",))
    ) as runtime:

        def caller(number: int) -> None:
            with trace.get_tracer("caller").start_as_current_span(f"caller {number}"):
                asyncio.run(runtime.run("1", tools={"add": add, "wipe": print}))

        threads = [threading.Thread(target=caller, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    spans = exporter.get_finished_spans()
    callers = {span_id(span): span for span in spans if span.name.startswith("caller")}
    roots = [span for span in spans if span.name == "licet.run"]
    assert {parent(root) for root in roots} == set(callers)
    for root in roots:
        trace_id = root.context.trace_id  # type: ignore[union-attr]
        mine = [span for span in spans if span.context.trace_id == trace_id]  # type: ignore[union-attr]
        assert len(mine) == 12
        runs = {attributes(span).get(names.RUN_ID) for span in mine} - {None}
        assert len(runs) == 1


def test_an_export_makes_the_very_spans_that_were_live(exporter: InMemorySpanExporter) -> None:
    with trace.get_tracer("caller").start_as_current_span("caller") as caller:
        records = run(two_calls, subject={"id": "ada"})
    live = [span for span in exporter.get_finished_spans() if span.name != "caller"]
    assembly = Assembly()
    made = [span for record in records for span in assembly.feed(record)]
    assert assembly.oldest is None

    above = {span_id(span): span.name for span in live}
    seen = [
        (span.name, above.get(parent(span) or 0), span.start_time, span.end_time, attributes(span))
        for span in live
    ]
    around = {span.span_id: span.begin.name for span in made}
    exported = [
        (
            span.begin.name,
            around.get(span.parent_id),
            span.begin.ns,
            span.end.ns,
            span.begin.attributes | span.end.attributes,
        )
        for span in made
    ]
    assert sorted(exported, key=repr) == sorted(seen, key=repr)
    [root] = [span for span in made if span.begin.name == "licet.run"]
    [root_live] = [span for span in live if span.name == "licet.run"]
    assert int.from_bytes(root.span_id, "big") == span_id(root_live)
    assert int.from_bytes(root.parent_id, "big") == caller.get_span_context().span_id
    assert {int.from_bytes(span.trace_id, "big") for span in made} == {caller.get_span_context().trace_id}


# -- what metrics say


def test_metrics_count_what_records_say(
    exporter: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    monkeypatch.setattr(metrics, "get_meter_provider", lambda: provider)
    run(two_calls, subject={"id": "ada"})
    run(code="open('/etc/passwd')")
    found: dict[tuple[str, tuple[tuple[str, Any], ...]], Any] = {}
    data = reader.get_metrics_data()
    assert data is not None
    for metric in data.resource_metrics[0].scope_metrics[0].metrics:
        for point in metric.data.data_points:
            about = tuple(sorted((point.attributes or {}).items()))
            found[metric.name, about] = getattr(point, "value", None) or getattr(point, "count", None)
    ran = ((names.BACKEND, "puppet"), (names.EFFECT, "allow"), (names.TERMINATION, "exited"))
    denied = ((names.BACKEND, "puppet"), (names.EFFECT, "deny"), (names.TERMINATION, "policy_denied"))
    assert found["licet.runs", ran] == found["licet.run.duration", ran] == 1
    assert found["licet.runs", denied] == 1
    assert found["licet.decisions", ((names.EFFECT, "allow"),)] == 2
    assert found["licet.decisions", ((names.EFFECT, "deny"),)] == 2
    assert found["licet.denials", ((names.INTENT_ACTION, "tool"),)] == 1
    assert found["licet.denials", ((names.INTENT_ACTION, "read"),)] == 1
    assert found["licet.log.records", ((names.KIND, "tool_call"),)] == 4
    assert found["licet.log.append.duration", ()] == 7
    assert found["licet.execution.duration", ran[:1] + ran[2:]] == 1
    assert "ada" not in str(found)
    provider.shutdown()


def unsigned(reader: InMemoryMetricReader) -> list[Any]:
    data = reader.get_metrics_data()
    assert data is not None
    made = [one for scope in data.resource_metrics[0].scope_metrics for one in scope.metrics]
    return [point.value for one in made if one.name == "licet.log.unsigned" for point in one.data.data_points]


def test_a_metric_says_how_many_durable_records_nobody_signed_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    monkeypatch.setattr(metrics, "get_meter_provider", lambda: provider)
    state = open_state(tmp_path / ".licet")

    async def append(n: int) -> None:
        log = DurableLog(state)
        for _ in range(n):
            await log.append([Entry("request", "r", {}, "", 1)])
        await log.close()

    lock = state.path / "tree.lock"
    lock.mkdir()  # no checkpoint can be made
    asyncio.run(append(3))
    assert telemetry.settle(30)
    assert unsigned(reader) == [4]  # and the record `opened`
    lock.rmdir()
    asyncio.run(append(1))
    assert telemetry.settle(30)
    assert unsigned(reader) == [0]
    provider.shutdown()


# -- what can't reach a run


class Raising(SpanProcessor):
    def __init__(self, where: str, problem: BaseException) -> None:
        self._where, self._problem = where, problem

    def on_start(self, span: Span, parent_context: otel_context.Context | None = None) -> None:
        if self._where == "start":
            raise self._problem

    def on_end(self, span: ReadableSpan) -> None:
        if self._where == "end":
            raise self._problem


@pytest.mark.parametrize("where", ["start", "end"])
@pytest.mark.parametrize(
    "problem", [ValueError("x"), SystemExit(3), asyncio.CancelledError(), KeyboardInterrupt()]
)
def test_a_processor_that_raises_breaks_no_run(
    provide: Callable[[TracerProvider], None], where: str, problem: BaseException
) -> None:
    provider = TracerProvider()
    provider.add_span_processor(Raising(where, problem))
    provide(provider)
    records = run(two_calls)
    assert len(records) == 10
    assert records[-1].entry.body["termination"] == "exited"


class Stuck(SpanProcessor, SpanExporter):
    """Hangs at one place until the test lets go."""

    def __init__(self, where: str) -> None:
        self._where = where
        self.reached, self.free = threading.Event(), threading.Event()

    def _hang(self, here: str) -> None:
        if here == self._where:
            self.reached.set()
            self.free.wait(60)

    def on_start(self, span: Span, parent_context: otel_context.Context | None = None) -> None:
        self._hang("start")

    def on_end(self, span: ReadableSpan) -> None:
        self._hang("end")

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self._hang("export")
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        pass

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        return True


@pytest.fixture
def own_emitter(monkeypatch: pytest.MonkeyPatch) -> Iterator[emitter.Emitter]:
    """One for this test alone, since it will be stuck."""
    own = emitter.Emitter(most=100)
    monkeypatch.setattr(emitter, "_emitter", own)
    yield own


@pytest.mark.parametrize("where", ["start", "end", "export"])
def test_a_processor_that_hangs_holds_no_run_up(
    provide: Callable[[TracerProvider], None], own_emitter: emitter.Emitter, where: str
) -> None:
    stuck = Stuck(where)
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(stuck) if where == "export" else stuck)
    provide(provider)
    try:
        for _ in range(30):  # more than there is room for
            assert len(run(two_calls, log=MemoryLog())) == 10
        assert stuck.reached.is_set()
        assert not stuck.free.is_set()
        assert own_emitter.dropped > 0
    finally:
        stuck.free.set()


@pytest.mark.parametrize("sampler", [ALWAYS_OFF, ParentBased(ALWAYS_OFF)])
def test_sampling_everything_away_costs_no_record(
    provide: Callable[[TracerProvider], None], sampler: Sampler
) -> None:
    provide(TracerProvider(sampler=sampler))
    records = run(two_calls)
    assert len(records) == 10
    assert all(record.entry.trace_id for record in records)


def test_a_caller_that_is_not_sampled_costs_no_record(exporter: InMemorySpanExporter) -> None:
    remote = SpanContext(0xA1, 0xB2, is_remote=True, trace_flags=TraceFlags(0))
    context = contextvars.copy_context()
    context.run(otel_context.attach, trace.set_span_in_context(NonRecordingSpan(remote)))
    records = context.run(run, two_calls)
    assert len(records) == 10
    assert {record.entry.trace_id for record in records} == {f"{0xA1:032x}"}
    assert records[0].entry.body["caller_span"] == f"{0xB2:016x}"
    assert exporter.get_finished_spans() == ()


SCRIPT = """
import asyncio, json, os, signal, sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(ConsoleSpanExporter(out=sys.stderr)))
trace.set_tracer_provider(provider)
from licet import Runtime
runtime = Runtime()
code = "open('/etc/passwd')" if sys.argv[1] == "fork" else "1+1"  # an interpreter may not survive a fork
result = runtime.run_sync(code)
if sys.argv[1] == "fork":
    if os.fork() == 0:
        Runtime().run_sync(code)
        os._exit(0)
    assert os.wait()[1] == 0
    runtime.run_sync(code)
elif sys.argv[1] == "sigterm":
    os.kill(os.getpid(), signal.SIGTERM)
elif sys.argv[1] == "_exit":
    os._exit(0)
runtime.close()
"""


@pytest.mark.parametrize(
    ("how", "environment", "ends"),
    [
        ("plain", {"OTEL_SDK_DISABLED": "true"}, ["exited"]),
        ("plain", {"OTEL_TRACES_SAMPLER": "always_off"}, ["exited"]),
        ("fork", {}, ["policy_denied"] * 3),
        ("sigterm", {}, ["exited"]),
        ("_exit", {}, ["exited"]),
    ],
)
def test_however_a_process_ends_its_records_are_there(
    how: str, environment: dict[str, str], ends: list[str]
) -> None:
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT, how],
        env=os.environ | environment,
        capture_output=True,
        timeout=120,
    )
    listed = licet("audit", "list", "--json").json
    assert [run["termination"] for run in listed] == ends


def test_spans_of_a_script_that_just_ends_arrive() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT, "plain"], capture_output=True, timeout=120, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count('"name": "licet.run"') == 1


def test_without_opentelemetry_nothing_of_it_is_imported() -> None:
    script = (
        "import sys; from licet import Runtime\n"
        "with Runtime() as runtime: assert runtime.run_sync('1+1').success\n"
        "ours = ('opentelemetry.trace', 'licet.telemetry.')\n"
        "print([name for name in sys.modules if name.startswith(ours)])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "[]", done.stderr
    assert telemetry.settle(5.0)


def test_every_kind_of_record_has_a_span() -> None:
    from typing import get_args

    from licet.record import Kind

    assert set(names.STEPS) == set(get_args(Kind))


def test_names_that_are_not_ours_are_those_of_the_conventions() -> None:
    import opentelemetry.semconv._incubating.attributes as conventions
    from opentelemetry.semconv.schemas import Schemas

    folder = Path(conventions.__path__[0])
    known = "\n".join(path.read_text("utf-8") for path in folder.glob("*.py"))
    known += "\n".join(path.read_text("utf-8") for path in (folder.parents[1] / "attributes").glob("*.py"))
    strangers = [name for name in names.ATTRIBUTES if not name.startswith("licet.")]
    assert [name for name in strangers if f'"{name}"' not in known] == []
    with contextlib.suppress(AttributeError):  # an SDK that is older than the schema we pin
        assert Schemas.V1_44_0.value == names.SCHEMA_URL
