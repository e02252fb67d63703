"""Audit records: their canonical bytes, their hashes, and the protocols of the log.

Rules this module keeps:

- a record is written in the one canonical spelling of its content (see `plain`);
- a leaf is `SHA-256(0x00 || bytes)` as in RFC 6962, so that the chain can become a Merkle tree;
- `AuditLog.append` returns only when all that it was given is durable, together and in order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from licet.errors import AuditUnavailable, UsageError
from licet.plain import Plain, canonical

VERSION = 1

Kind = Literal[
    "request",
    "decision",
    "probe",
    "selection",
    "authorization",
    "execution",
    "tool_call",
    "access",
    "result",
    "log",
]
Phase = Literal["before", "after"]


@dataclass(frozen=True, slots=True)
class Entry:
    """What a stage wants recorded; the log adds the rest.

    `body` holds JSON values without floats. `time` is RFC 3339 in UTC with nanoseconds, `mono_ns` the
    monotonic clock of the writer.
    """

    kind: Kind
    run_id: str
    body: Mapping[str, Any]
    time: str
    mono_ns: int
    phase: Phase | None = None
    trace_id: str | None = None
    span_id: str | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """An entry at its place in a log.

    `prev` is the leaf of the record before it, `""` for the first. `writer` names the process that wrote
    it: host, pid, instance, version. `leaf` is derived from the canonical bytes of all the other fields.
    """

    log: str
    seq: int
    prev: str
    writer: Mapping[str, Any]
    entry: Entry
    v: int = VERSION
    leaf: str = field(default="", compare=False)

    def as_json(self) -> dict[str, Any]:
        """The record as it is written: one flat object; what is None is left out."""
        return _flat(self.entry, self.v, self.log, self.seq, self.prev, self.writer)


def seat(entry: Entry, *, log: str, seq: int, prev: str, writer: Mapping[str, Any]) -> tuple[Record, bytes]:
    """Give an entry its place in a log; return the record and its canonical bytes.

    Raises:
        ValueError: the entry has no canonical form.
    """
    content = _flat(entry, VERSION, log, seq, prev, writer)
    if type(content["body"]) is type(content["writer"]) is Plain:
        content = Plain(content)  # what is around them is plain
    line = canonical(content)
    return Record(log, seq, prev, writer, entry, leaf=leaf_hash(line)), line


def _flat(entry: Entry, v: int, log: str, seq: int, prev: str, writer: Mapping[str, Any]) -> dict[str, Any]:
    content = {
        "v": v,
        "log": log,
        "seq": seq,
        "prev": prev,
        "writer": writer if type(writer) is Plain else dict(writer),
        "kind": entry.kind,
        "run_id": entry.run_id,
        "time": entry.time,
        "mono_ns": str(entry.mono_ns),
        "body": entry.body if type(entry.body) is Plain else dict(entry.body),
    }
    if entry.phase is not None:
        content["phase"] = entry.phase
    if entry.trace_id is not None:
        content["trace_id"] = entry.trace_id
    if entry.span_id is not None:
        content["span_id"] = entry.span_id
    return content


def from_json(content: Mapping[str, Any], leaf: str = "") -> Record:
    """Read a record back.

    Raises:
        ValueError: a field is missing or of the wrong type, or the version is not known.
    """
    if content.get("v") != VERSION:
        raise ValueError(f"record version `{content.get('v')}` is not known here, `{VERSION}` is")
    entry = Entry(
        kind=_field(content, "kind", str),
        run_id=_field(content, "run_id", str),
        body=_field(content, "body", dict),
        time=_field(content, "time", str),
        mono_ns=_digits(_field(content, "mono_ns", str)),
        phase=_field(content, "phase", str, required=False),
        trace_id=_field(content, "trace_id", str, required=False),
        span_id=_field(content, "span_id", str, required=False),
    )
    return Record(
        log=_field(content, "log", str),
        seq=_field(content, "seq", int),
        prev=_field(content, "prev", str),
        writer=_field(content, "writer", dict),
        entry=entry,
        leaf=leaf,
    )


def leaf_hash(line: bytes) -> str:
    """RFC 6962 leaf hash of a record's canonical bytes (without the newline), as hexadecimal."""
    return hashlib.sha256(b"\x00" + line).hexdigest()


def _field(content: Mapping[str, Any], key: str, kind: type, *, required: bool = True) -> Any:
    value = content.get(key)
    if value is None and not required:
        return None
    if type(value) is not kind:
        raise ValueError(f"field `{key}` of a record is no `{kind.__name__}`")
    return value


def _digits(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise ValueError("field `mono_ns` of a record is no number of nanoseconds")
    return int(text)


class AuditLog(Protocol):
    """A durable log that a runtime writes to."""

    async def append(self, entries: Sequence[Entry]) -> tuple[Record, ...]:
        """Append all entries in order, as one durable write.

        Raises:
            AuditUnavailable: nothing is known to be durable; the caller runs nothing.
        """
        ...

    async def close(self) -> None:
        """Release the log; what was appended stays."""
        ...


@dataclass(frozen=True, slots=True)
class Claim:
    """One thing that a verification looked at: `ok` True, False, or None for "can't tell"."""

    name: str
    ok: bool | None
    detail: str


@dataclass(frozen=True, slots=True)
class Verification:
    """The separate claims of `audit verify`, never one tick, and what a pass does not prove."""

    status: Literal["proven", "tampered", "incomplete", "unverifiable"]
    records: int
    claims: tuple[Claim, ...]
    not_proven: tuple[str, ...]
    first_bad_seq: int | None = None
    first_bad_byte: int | None = None


class AuditReader(Protocol):
    """Reads a log without writing to it."""

    def records(self) -> Iterator[Record]:
        """All records, oldest first.

        Raises:
            AuditUnavailable: the log can't be read.
        """
        ...

    def records_of(self, run_id: str) -> tuple[Record, ...]:
        """The records of the one run whose id begins with `run_id`.

        Raises:
            UsageError: no run begins so, or more than one does.
        """
        ...

    def verify(self) -> Verification:
        """Check the bytes, the order and the chain of the whole log."""
        ...


class UnavailableLog:
    """Stands for a log that can't be opened: every append fails with the reason."""

    def __init__(self, problem: AuditUnavailable) -> None:
        self._problem = problem

    async def append(self, entries: Sequence[Entry]) -> tuple[Record, ...]:
        """Fail as opening failed."""
        raise self._problem

    async def close(self) -> None:
        """Nothing to release."""


class MemoryLog:
    """A log in memory, for tests and for programs that want no durable trail; it is `AuditLog` and reader."""

    def __init__(self) -> None:
        self._records: list[Record] = []

    async def append(self, entries: Sequence[Entry]) -> tuple[Record, ...]:
        """Append in memory; never fails."""
        start = len(self._records)
        for entry in entries:
            prev = self._records[-1].leaf if self._records else ""
            record, _ = seat(
                entry, log="memory", seq=len(self._records), prev=prev, writer={"instance": "memory"}
            )
            self._records.append(record)
        return tuple(self._records[start:])

    async def close(self) -> None:
        """Nothing to release."""

    def records(self) -> Iterator[Record]:
        """All records, oldest first."""
        return iter(tuple(self._records))

    def records_of(self, run_id: str) -> tuple[Record, ...]:
        """The records of one run."""
        found = tuple(record for record in self._records if record.entry.run_id.startswith(run_id))
        if len({record.entry.run_id for record in found}) != 1:
            raise UsageError(f"`{run_id}` is not the beginning of exactly one run's id")
        return found

    def verify(self) -> Verification:
        """A log in memory proves nothing to anybody else."""
        claim = Claim("durable", False, "this log lives in memory only")
        ends = "anything after the process ends"
        return Verification("unverifiable", len(self._records), (claim,), (ends,))
