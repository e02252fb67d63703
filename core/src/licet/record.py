"""Audit records: their canonical bytes, their hashes, and the protocols of the log.

Rules this module keeps:

- a record is written in the one canonical spelling of its content (see `plain`);
- a leaf is `SHA-256(0x00 || bytes)`, as RFC 6962 has the leaves of a Merkle tree;
- content is never in a record; what is kept of it is named there by a salted commitment, so that it can be
  erased and the record still proves;
- `AuditLog.append` returns only when all that it was given is durable, together and in order.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
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
    "approval",
    "execution",
    "tool_call",
    "access",
    "commit",
    "result",
    "log",
]
Phase = Literal["before", "after"]


@dataclass(frozen=True, slots=True)
class Kept:
    """Content to be kept beside the log under its commitment: HMAC-SHA256 of `data` under a random salt.

    Whoever has salt and data can check the commitment; once both are erased, nothing can be guessed from it.
    """

    name: str
    data: bytes
    salt: bytes = field(default_factory=lambda: secrets.token_bytes(32))

    @property
    def commitment(self) -> str:
        """64 hexadecimal digits."""
        return commitment(self.salt, self.data)


def commitment(salt: bytes, data: bytes) -> str:
    """What a record holds of `data` that is kept under `salt`."""
    return hmac.digest(salt, data, "sha256").hex()


@dataclass(frozen=True, slots=True)
class Entry:
    """What a stage wants recorded; the log adds the rest.

    `body` holds JSON values without floats. `time` is RFC 3339 in UTC with nanoseconds, `mono_ns` the
    monotonic clock of the writer. `kept` is content that becomes durable no later than the record, which
    holds its commitments by name.
    """

    kind: Kind
    run_id: str
    body: Mapping[str, Any]
    time: str
    mono_ns: int
    phase: Phase | None = None
    trace_id: str | None = None
    span_id: str | None = None
    kept: tuple[Kept, ...] = ()


@dataclass(frozen=True, slots=True)
class Record:
    """An entry at its place in a log.

    `kept` names the commitments of content that was kept with it.

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
    kept: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The record as it is written: one flat object; what is None or empty is left out."""
        return _flat(self.entry, self.v, self.log, self.seq, self.prev, self.writer, self.kept)


def seat(entry: Entry, *, log: str, seq: int, prev: str, writer: Mapping[str, Any]) -> tuple[Record, bytes]:
    """Give an entry its place in a log; return the record and its canonical bytes.

    Raises:
        ValueError: the entry has no canonical form.
    """
    kept = {one.name: one.commitment for one in entry.kept}
    content = _flat(entry, VERSION, log, seq, prev, writer, kept)
    if type(entry.body) is Plain and type(writer) is Plain:
        # what is around them is plain
        content = Plain(content, body=entry.body.spelled(), writer=writer.spelled())
    line = canonical(content)
    return Record(log, seq, prev, writer, entry, leaf=leaf_hash(line), kept=kept), line


def _flat(
    entry: Entry,
    v: int,
    log: str,
    seq: int,
    prev: str,
    writer: Mapping[str, Any],
    kept: Mapping[str, str],
) -> dict[str, Any]:
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
    if kept:
        content["kept"] = dict(kept)
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
        kept=_field(content, "kept", dict, required=False) or {},
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

    def content(self, commitment: str) -> bytes | None:
        """The content that is kept under a commitment; None if it is erased, or not what was committed to.

        Raises:
            AuditUnavailable: it can't be read.
        """
        ...


class Checkpoint(Protocol):
    """A signed head of a log (C2SP tlog-checkpoint), as those see it who anchor it outside this host."""

    @property
    def note(self) -> bytes:
        """The signed note."""
        ...

    @property
    def origin(self) -> str:
        """The name of the log."""
        ...

    @property
    def size(self) -> int:
        """How many records it covers."""
        ...

    def consistency(self, old_size: int) -> Sequence[bytes]:
        """The hashes that prove that this head continues the one of `old_size` (RFC 6962)."""
        ...


@dataclass(frozen=True, slots=True)
class AnchorReceipt:
    """What proves that a checkpoint was seen outside this host.

    `kind` says how to check `data` (lower case, digits and `_`), `anchor` names who saw it, `time` is when,
    RFC 3339 in UTC, as the anchor says; None if it doesn't.
    """

    kind: str
    anchor: str
    data: bytes
    time: str | None = None


@dataclass(frozen=True, slots=True)
class AnchorFailure:
    """Why an anchor did not see a checkpoint, in words."""

    kind: str
    anchor: str
    reason: str


class UnavailableLog:
    """Stands for a log that can't be opened: every append fails with the reason."""

    def __init__(self, problem: AuditUnavailable) -> None:
        self._problem = problem

    async def append(self, entries: Sequence[Entry]) -> tuple[Record, ...]:
        """Fail as opening failed."""
        raise self._problem

    async def close(self) -> None:
        """Nothing to release."""


_MEMORY = Plain(instance="memory")


class MemoryLog:
    """A log in memory, for tests and for programs that want no durable trail; it is `AuditLog` and reader."""

    def __init__(self) -> None:
        self._records: list[Record] = []
        self._contents: dict[str, bytes] = {}

    async def append(self, entries: Sequence[Entry]) -> tuple[Record, ...]:
        """Append in memory; never fails."""
        start = len(self._records)
        for entry in entries:
            prev = self._records[-1].leaf if self._records else ""
            record, _ = seat(entry, log="memory", seq=len(self._records), prev=prev, writer=_MEMORY)
            self._records.append(record)
            self._contents |= {one.commitment: one.data for one in entry.kept}
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

    def content(self, commitment: str) -> bytes | None:
        """The content that was kept under a commitment."""
        return self._contents.get(commitment)
