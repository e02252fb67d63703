"""Records and spans in the words of OTLP.

Rules this module keeps:

- the body of a log record is the line of the log, so that whoever has it can check the leaf beside it;
- nothing here depends on when it is done: the same record gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from licet.record import Record
from licet.telemetry import names as n
from licet.telemetry.attributes import attributes, is_refuted
from licet.telemetry.spans import FAULTS, nanoseconds, place
from licet.telemetry.values import Value, objects, text
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, InstrumentationScope, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs, SeverityNumber
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1 import trace_pb2 as pb

from licet_audit.otlp.assembly import Span, span_of, trace_of

T = TypeVar("T")

_SEVERITIES = {
    "INFO": SeverityNumber.SEVERITY_NUMBER_INFO,
    "WARN": SeverityNumber.SEVERITY_NUMBER_WARN,
    "ERROR": SeverityNumber.SEVERITY_NUMBER_ERROR,
}
_RESOURCE = {
    "version": "service.version",
    "instance": "service.instance.id",
    "host": "host.name",
    "pid": "process.pid",
}
_WORRYING = frozenset({"torn_tail_quarantined", "gap", "reopened", "writes_recovered"})


def logs(records: Sequence[tuple[bytes, Record]]) -> bytes:
    """A request that brings these records, each with its line, as logs."""
    request = ExportLogsServiceRequest()
    for writer, members in _by_writer((record, (line, record)) for line, record in records):
        scope = ScopeLogs(scope=_scope(writer), schema_url=n.SCHEMA_URL)
        scope.log_records.extend(_log(line, record) for line, record in members)
        request.resource_logs.append(
            ResourceLogs(resource=_resource(writer), scope_logs=[scope], schema_url=n.SCHEMA_URL)
        )
    return bytes(request.SerializeToString(deterministic=True))


def traces(spans: Sequence[Span]) -> bytes:
    """A request that brings these spans."""
    request = ExportTraceServiceRequest()
    for writer, members in _by_writer((span.end.record, span) for span in spans):
        scope = pb.ScopeSpans(scope=_scope(writer), schema_url=n.SCHEMA_URL)
        scope.spans.extend(map(_span, members))
        request.resource_spans.append(
            pb.ResourceSpans(resource=_resource(writer), scope_spans=[scope], schema_url=n.SCHEMA_URL)
        )
    return bytes(request.SerializeToString(deterministic=True))


def severity(record: Record) -> str:
    """How much a record wants to be looked at: ERROR for faults and refuted claims, WARN for denials."""
    body = record.entry.body
    if body.get("termination") in FAULTS or any(map(is_refuted, objects(body, "results"))):
        return "ERROR"
    if body.get("event") in _WORRYING:
        return "ERROR"
    denied = body.get("effect") == "deny" or body.get("allowed") is False
    denied |= record.entry.kind == "approval" and body.get("event") in ("denied", "revoked")
    return "WARN" if denied or str(body.get("termination")).endswith("_denied") else "INFO"


def _log(line: bytes, record: Record) -> LogRecord:
    entry, level = record.entry, severity(record)
    own: dict[str, Value] = {n.KIND: entry.kind}
    if entry.phase is not None:
        own[n.PHASE] = entry.phase
    found = attributes(entry.kind, entry.body) | own | place(record)
    at = nanoseconds(entry.time)
    return LogRecord(
        time_unix_nano=at,
        observed_time_unix_nano=at,
        severity_number=_SEVERITIES[level],
        severity_text=level,
        event_name=f"licet.{entry.kind}",
        body=AnyValue(string_value=line.decode()),
        attributes=_pairs(found),
        trace_id=trace_of(record) if entry.trace_id else b"",
        span_id=span_of(record),
    )


def _span(span: Span) -> pb.Span:
    begin, end = span.begin, span.end
    found = begin.attributes | end.attributes
    status = pb.Status()
    if end.error is not None:
        status = pb.Status(code=pb.Status.STATUS_CODE_ERROR)
        found = {n.ERROR_TYPE: end.error} | found
    return pb.Span(
        trace_id=span.trace_id,
        span_id=span.span_id,
        parent_span_id=span.parent_id,
        name=begin.name,
        kind=pb.Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=begin.ns,
        end_time_unix_nano=max(begin.ns, end.ns),
        attributes=_pairs(found),
        links=[pb.Span.Link(trace_id=span.link[0], span_id=span.link[1])] if span.link else [],
        status=status,
    )


def _by_writer(
    members: Iterable[tuple[Record, T]],
) -> Iterable[tuple[Mapping[str, object], list[T]]]:
    """The members of one writer together, in the order of the log."""
    found: dict[str, tuple[Mapping[str, object], list[T]]] = {}
    for record, member in members:
        key = repr(sorted(record.writer.items()))
        found.setdefault(key, (record.writer, []))[1].append(member)
    return found.values()


def _resource(writer: Mapping[str, object]) -> Resource:
    known = {_RESOURCE[key]: value for key, value in writer.items() if key in _RESOURCE}
    found: dict[str, Value] = {"service.name": n.SCOPE}
    for name, value in sorted(known.items()):
        found[name] = value if type(value) is int else text(value)
    return Resource(attributes=_pairs(found))


def _scope(writer: Mapping[str, object]) -> InstrumentationScope:
    return InstrumentationScope(name=n.SCOPE, version=text(writer.get("version") or ""))


def _pairs(found: Mapping[str, Value]) -> list[KeyValue]:
    return [KeyValue(key=name, value=_any(value)) for name, value in found.items()]


def _any(value: Value) -> AnyValue:
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    if isinstance(value, str):
        return AnyValue(string_value=value)
    return AnyValue(array_value=ArrayValue(values=map(_any, value)))
