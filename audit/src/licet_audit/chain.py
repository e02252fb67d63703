"""One record, one line: how an entry takes its place in the chain, and how a line is read back.

Rules this module keeps:

- `prev` is the leaf of the record before, over all of its bytes, so no field can change unnoticed;
- a line is read only if it is the one canonical spelling of what it says.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from licet.plain import Plain, canonical
from licet.record import VERSION, Entry, Record
from licet.units import show_instant

MAX_LINE = 4 * 2**20  # bytes, newline included; a longer line is no record
_PLACE = 64 + 20 + 1  # bytes that `prev`, `seq` and the newline take at most


@dataclass(frozen=True, slots=True)
class Head:
    """The last record of a log: its sequence number and its leaf."""

    seq: int
    leaf: str


NOTHING = Head(-1, "")


_TEXT_OR_NONE = {str, type(None)}


class Draft:
    """An entry whose place is open: its line is spelled but for `seq` and `prev`."""

    __slots__ = ("_after", "_before", "_between", "_digest", "entry", "kept")

    def __init__(self, entry: Entry, kept: Mapping[str, str], parts: tuple[bytes, bytes, bytes]) -> None:
        self.entry = entry
        self.kept = kept
        self._before, self._between, self._after = parts
        self._digest = hashlib.sha256(b"\x00" + self._before)  # a leaf, as RFC 6962 has it

    def seat(self, seq: int, prev: str) -> tuple[bytes, str]:
        """Its line with the newline, and its leaf, as record `seq` after the one whose leaf is `prev`."""
        rest = b"%b%b%d%b" % (prev.encode("ascii"), self._between, seq, self._after)
        digest = self._digest.copy()
        digest.update(rest)
        return b"%b%b\n" % (self._before, rest), digest.hexdigest()


class Spelling:
    """How the records of one writer of one log are spelled; what they share is spelled once."""

    def __init__(self, log: str, writer: Mapping[str, Any]) -> None:
        self.log = log
        self.writer = writer
        self._end = canonical({"v": VERSION, "writer": dict(writer)})[1:]

    def draft(self, entry: Entry) -> Draft:
        """Spell an entry, as `licet.record.seat` does, before its place is known.

        Raises:
            ValueError: the entry has no canonical form, or could be read back as no record.
        """
        _require_form(entry)
        kept = {one.name: one.commitment for one in entry.kept}
        # The names of fields are sorted, so those around `prev` and `seq` are three runs of them.
        try:
            parts = (
                canonical(self._before(entry, kept))[:-1] + b',"prev":"',
                b'","run_id":%b,"seq":' % canonical(entry.run_id),
                b",%b,%b" % (canonical(_after(entry))[1:-1], self._end),
            )
        except (TypeError, RecursionError) as problem:
            raise ValueError(f"it is no plain JSON: {problem}") from None
        if (size := sum(map(len, parts)) + _PLACE) >= MAX_LINE:
            raise ValueError(f"it has {size} bytes, a record has fewer than {MAX_LINE}")
        return Draft(entry, kept, parts)

    def record(self, draft: Draft, seq: int, prev: str, leaf: str) -> Record:
        """The record that a draft became."""
        return Record(self.log, seq, prev, self.writer, draft.entry, leaf=leaf, kept=draft.kept)

    def _before(self, entry: Entry, kept: Mapping[str, str]) -> dict[str, Any]:
        """The fields up to `prev`; Plain, which need not be checked, if the body is."""
        plain = type(entry.body) is Plain
        fields: dict[str, Any] = {
            "body": entry.body.spelled() if type(entry.body) is Plain else dict(entry.body),
            "kind": entry.kind,
            "log": self.log,
            "mono_ns": str(entry.mono_ns),
        }
        if kept:
            fields["kept"] = kept
        if entry.phase is not None:
            fields["phase"] = entry.phase
        return Plain(fields) if plain else fields


def _require_form(entry: Entry) -> None:
    """Refuse what could be written, and would then be read back as no record.

    Raises:
        ValueError: a field is of another type, or is no number of nanoseconds.
    """
    needed = type(entry.kind) is type(entry.run_id) is type(entry.time) is str
    if not needed or not {type(entry.phase), type(entry.trace_id), type(entry.span_id)} <= _TEXT_OR_NONE:
        raise ValueError("a field of it is no text")
    if type(entry.mono_ns) is not int or not 0 <= entry.mono_ns < 10**19:
        raise ValueError(f"`{entry.mono_ns}` is no number of nanoseconds")


def _after(entry: Entry) -> dict[str, Any]:
    """The fields between `seq` and `v`."""
    fields = Plain(time=entry.time)
    if entry.span_id is not None:
        fields["span_id"] = entry.span_id
    if entry.trace_id is not None:
        fields["trace_id"] = entry.trace_id
    return fields


def decode(line: bytes) -> dict[str, Any]:
    """Read a line, without its newline.

    Raises:
        ValueError: it is no record of any version, or not in its canonical spelling.
    """
    if len(line) >= MAX_LINE:
        raise ValueError(f"it has {MAX_LINE} bytes or more")
    try:
        content = json.loads(line.decode("utf-8"))
        spelling = canonical(content)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if spelling != line:
        raise ValueError("it is not in canonical form")
    if not isinstance(content, dict):
        raise ValueError("it is no JSON object")
    for name in ("writer", "body"):
        if not isinstance(content.get(name), dict):
            raise ValueError(f"its `{name}` is no object")
    return content


def log_record(line: bytes) -> Mapping[str, Any] | None:
    """The content of a line if it is a record that the log makes about itself, told quickly; None if not.

    Raises:
        ValueError: it might be one, and is no record.
    """
    if b'"kind":"log"' not in line:
        return None
    content = orjson.loads(line)
    if not isinstance(content, dict) or not isinstance(content.get("body"), dict):
        raise ValueError("it is no record")
    return content if content.get("kind") == "log" else None


def log_entry(event: str, **body: Any) -> Entry:
    """An entry that the log makes about itself, now."""
    return Entry(kind="log", run_id="", body={"event": event, **body}, time=now(), mono_ns=mono_ns())


def now() -> str:
    """Wall time in UTC, RFC 3339 with nanoseconds."""
    return show_instant(time.time_ns())


def mono_ns() -> int:
    """The monotonic clock in nanoseconds."""
    return time.monotonic_ns()
