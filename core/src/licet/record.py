"""Audit records: their canonical bytes, their hashes, and the protocols of the log.

Rules this module keeps:

- the canonical form is RFC 8785 (JCS) over a subset: ASCII keys, no floats, integers below 2**53; so a
  record has exactly one spelling, and any JCS library writes the same bytes;
- a leaf is `SHA-256(0x00 || bytes)` as in RFC 6962, so that the chain can become a Merkle tree;
- `AuditLog.append` returns only when all that it was given is durable, together and in order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import Any, Literal, Protocol

import orjson

from licet.errors import AuditUnavailable, UsageError

VERSION = 1
MAX_DEPTH = 32
"""How deep the content of a record may be nested."""

Kind = Literal[
    "request", "decision", "selection", "authorization", "execution", "tool_call", "access", "result", "log"
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
        return {"v": self.v, **_flat(self.entry, self.log, self.seq, self.prev, self.writer)}


def seat(entry: Entry, *, log: str, seq: int, prev: str, writer: Mapping[str, Any]) -> tuple[Record, bytes]:
    """Give an entry its place in a log; return the record and its canonical bytes.

    Raises:
        ValueError: the entry has no canonical form.
    """
    line = canonical({"v": VERSION, **_flat(entry, log, seq, prev, writer)})
    return Record(log, seq, prev, writer, entry, leaf=leaf_hash(line)), line


def _flat(entry: Entry, log: str, seq: int, prev: str, writer: Mapping[str, Any]) -> dict[str, Any]:
    content: dict[str, Any] = {
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


def canonical(value: Any) -> bytes:
    """The one spelling of a JSON value.

    Raises:
        ValueError: a float, an integer outside ±2**53, a key that is not ASCII text, a lone surrogate,
            nesting deeper than `MAX_DEPTH`, or something that is no JSON.
    """
    _check(value)
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError as problem:  # what JSONEncodeError is
        raise ValueError(f"a record can't hold this: {problem}") from None


class Plain(dict[str, Any]):
    """Content that `plain_body` made, so that it need not be checked again."""


def plain_body(body: Mapping[str, Any]) -> Plain:
    """Turn what a stage knows into what a record can hold.

    Numbers with a fraction and huge ones become text, characters that UTF-8 can't hold become escapes,
    values become mappings of their fields.
    """
    return Plain(_plain_mapping(body))


def _plain_mapping(content: Mapping[Any, Any]) -> dict[str, Any]:
    return {
        key if type(key) is str and key.isascii() else ascii_key(str(key)): (
            inner if type(inner) is str and inner.isascii() else _plain(inner)
        )
        for key, inner in content.items()
    }


def _plain(value: Any) -> Any:
    kind = type(value)
    if kind in _UNCHANGED:
        return value
    if isinstance(value, str):
        text = value if kind is str else str.__str__(value)
        return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
    if kind is int:
        return value if -(2**53) < value < 2**53 else hex(value)
    if kind is dict:
        return _plain_mapping(value)
    if kind is tuple or kind is list:
        return [_plain(inner) for inner in value]
    return _plain_of_other(value, kind)


_UNCHANGED = frozenset({bool, type(None), Plain})


def _plain_of_other(value: Any, kind: type) -> Any:
    if isinstance(value, float):
        return repr(float(value))
    if is_dataclass(value) and not isinstance(value, type):
        return {name: _plain(getattr(value, name)) for name in _field_names(kind)}
    if isinstance(value, Mapping):
        return _plain_mapping(value)
    return _plain(sorted(map(str, value)) if isinstance(value, (set, frozenset)) else str(value))


@cache
def _field_names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def ascii_key(key: str) -> str:
    """The name of a field in ASCII; other characters become escapes."""
    return key if key.isascii() else key.encode("ascii", "backslashreplace").decode()


def leaf_hash(line: bytes) -> str:
    """RFC 6962 leaf hash of a record's canonical bytes (without the newline), as hexadecimal."""
    return hashlib.sha256(b"\x00" + line).hexdigest()


def _check(value: Any, depth: int = 0) -> None:
    kind = type(value)
    if kind in _NO_DOUBT:
        return
    if kind is int:
        if not -(2**53) < value < 2**53:
            raise ValueError(f"integer `{value}` is too large for a record; write it as text")
        return
    if depth >= MAX_DEPTH:
        raise ValueError(f"a record can't be nested deeper than {MAX_DEPTH} levels")
    if kind is dict:
        for key, inner in value.items():
            if type(key) is not str or not key.isascii():
                raise ValueError(f"key `{key!r}` of a record is not ASCII text")
            if type(inner) not in _NO_DOUBT:
                _check(inner, depth + 1)
    elif kind is list or kind is tuple:
        for inner in value:
            _check(inner, depth + 1)
    else:
        raise ValueError(f"a record can't hold a `{kind.__name__}`")


_NO_DOUBT = _UNCHANGED | {str}
"""Types whose values a record holds as they are; half a surrogate pair is found when the text is written."""


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
