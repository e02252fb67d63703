"""One record, one line: how an entry takes its place in the chain, and how a line is read back.

Rules this module keeps:

- `prev` is the leaf of the record before, over all of its bytes, so no field can change unnoticed;
- a line is read only if it is the one canonical spelling of what it says.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from licet.plain import canonical
from licet.record import Entry, Record, seat

MAX_LINE = 4 * 2**20  # bytes, newline included; a longer line is no record


@dataclass(frozen=True, slots=True)
class Head:
    """The last record of a log: its sequence number and its leaf."""

    seq: int
    leaf: str


NOTHING = Head(-1, "")


def encode(entry: Entry, *, log: str, seq: int, prev: str, writer: Mapping[str, Any]) -> tuple[Record, bytes]:
    """Make `entry` record `seq`, after the one whose leaf is `prev`; return it with its line and newline.

    Raises:
        ValueError: the entry has no canonical form, or is longer than a record may be.
    """
    try:
        record, line = seat(entry, log=log, seq=seq, prev=prev, writer=writer)
    except (TypeError, RecursionError) as problem:
        raise ValueError(f"it is no plain JSON: {problem}") from None
    if len(line) >= MAX_LINE:
        raise ValueError(f"it has {len(line)} bytes, a record has fewer than {MAX_LINE}")
    return record, line + b"\n"


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


def log_entry(event: str, **body: Any) -> Entry:
    """An entry that the log makes about itself, now."""
    return Entry(kind="log", run_id="", body={"event": event, **body}, time=now(), mono_ns=mono_ns())


def now() -> str:
    """Wall time in UTC, RFC 3339 with nanoseconds."""
    seconds, fraction = divmod(time.time_ns(), 10**9)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{fraction:09d}Z"


def mono_ns() -> int:
    """The monotonic clock in nanoseconds."""
    return time.monotonic_ns()
