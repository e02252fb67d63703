"""The files of a log: `log/seg-<first sequence number>.jsonl`, one canonical record a line.

Rules this module keeps:

- only plain files whose names are exact are segments; nothing else in `log` is read;
- reading is bounded: a line is at most `MAX_LINE` bytes in memory, and a snapshot's sizes are final;
- a segment that is full ends with a record that says so, so a missing successor can be noticed.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from licet.errors import AuditUnavailable
from licet.files import open_plain
from licet.locks import lock_file
from licet.record import Record, from_json, leaf_hash
from licet.state import StateDirectory

from licet_audit.chain import MAX_LINE, NOTHING, Head, decode

SEGMENT_BYTES = 64 * 2**20  # a segment is sealed by the batch that brings it to this size
SEALED = "sealed"

_NAME = re.compile(r"seg-(\d{20})\.jsonl", re.ASCII)
_CHUNK = 64 * 1024
_GROWTH = 2**20  # bytes by others that are read at once
_PATIENCE = 5.0  # seconds; a reader then looks without the lock


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment as it was when the log was listed: the number of its first record, its size in bytes."""

    path: Path
    first: int
    size: int

    def resized(self, size: int) -> Segment:
        """The same segment with another size."""
        return Segment(self.path, self.first, size)


@dataclass(frozen=True, slots=True)
class Line:
    """A line without its newline, where it starts, and whether it ends with a newline in the file."""

    data: bytes
    offset: int
    complete: bool


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a segment: its last record, whether that seals it, and where whole lines end."""

    head: Head
    sealed: bool
    end: int


class Damaged(Exception):
    """The end of a log is not what its writer leaves, whenever it dies; the message says how."""


def log_directory(state: StateDirectory) -> Path:
    """Where the segments are."""
    return state.path / "log"


def segment_path(state: StateDirectory, first: int) -> Path:
    """The file of the segment whose first record is `first`."""
    return log_directory(state) / f"seg-{first:020d}.jsonl"


def listing(state: StateDirectory) -> list[Segment]:
    """All segments in order; empty if there is no log.

    Raises:
        OSError: the log can't be listed.
    """
    found = []
    try:
        with os.scandir(log_directory(state)) as entries:
            for entry in entries:
                name = _NAME.fullmatch(entry.name)
                if name and entry.is_file(follow_symlinks=False):
                    size = entry.stat(follow_symlinks=False).st_size
                    found.append(Segment(Path(entry.path), int(name[1]), size))
    except FileNotFoundError:
        return []
    return sorted(found, key=lambda segment: segment.first)


def snapshot(state: StateDirectory) -> list[Segment]:
    """The segments and their sizes at one moment between two batches; nothing is written.

    Raises:
        OSError: the log can't be listed.
    """
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            stack.enter_context(lock_file(state.path / "log.lock", _PATIENCE, shared=True, make=False))
        return listing(state)


def lines(segment: Segment, start: int = 0) -> Iterator[Line]:
    """The lines of a segment from byte `start`, where one begins, up to the size it was listed with.

    A line that is too long is cut.

    Raises:
        OSError: the segment can't be read.
    """
    offset = start
    with os.fdopen(open_plain(segment.path, os.O_RDONLY), "rb", buffering=_CHUNK) as file:
        file.seek(start)
        while offset < segment.size:
            start = offset
            data = file.readline(min(MAX_LINE, segment.size - offset))
            if not data:
                return
            offset += len(data)
            end = data
            while not end.endswith(b"\n") and offset < segment.size:
                end = file.readline(min(MAX_LINE, segment.size - offset))
                if not end:
                    break
                offset += len(end)
            yield Line(data.removesuffix(b"\n"), start, end.endswith(b"\n"))


def record_of(segment: Segment, line: Line) -> Record:
    """Read one line of a segment.

    Raises:
        AuditUnavailable: it is no record.
    """
    try:
        return from_json(decode(line.data), leaf_hash(line.data))
    except ValueError as problem:
        raise AuditUnavailable(
            f"the line at byte {line.offset} of `{segment.path}` is no record: {problem}",
            advice="`licet audit verify` says what else is wrong",
        ) from None


def lines_from(segments: Sequence[Segment], seq: int) -> Iterator[tuple[int, bytes]]:
    """The whole lines of an intact log from record `seq` on, each with the number of its record.

    Raises:
        OSError: a segment can't be read.
    """
    following = [segment.first for segment in segments[1:]]
    for segment, end in zip(segments, [*following, None], strict=False):
        if end is not None and end <= seq:
            continue
        for number, line in enumerate(lines(segment), segment.first):
            if number >= seq and line.complete:
                yield number, line.data


def grown_head(descriptor: int, segment: Segment, size: int, head: Head) -> Head | None:
    """The last record of an open segment that ended in `head` and has grown to `size` since.

    All writers wait for this, so nothing is parsed. None unless it is plain that other writers added whole
    records which follow `head` and don't seal the segment; `find_tail` takes the closer look.
    """
    grown = size - segment.size
    data = _read_at(descriptor, min(grown, _GROWTH), segment.size)
    if len(data) < grown or not data.endswith(b"}}\n"):
        return None
    seq, line = head.seq + data.count(b"\n"), data[data.rfind(b"\n", 0, -1) + 1 : -1]
    follows = data.find(b'"prev":"%b"' % head.leaf.encode("ascii"), 0, data.index(b"\n")) > 0
    # quotes in texts are escaped, so these are fields; as many lines as numbers means that none is missing
    if not follows or b'"seq":%d,' % seq not in line or b'"kind":"log"' in line or line[:9] != b'{"body":{':
        return None
    return Head(seq, leaf_hash(line))


def find_tail(segments: Sequence[Segment], log: str) -> Tail:
    """The end of a log; `end` counts in the last segment.

    Raises:
        Damaged: what would be the last record is none.
    """
    if not segments:
        return Tail(NOTHING, True, 0)
    last = segments[-1]
    descriptor = open_plain(last.path, os.O_RDONLY)
    try:
        tail = read_tail(descriptor, last, log)
    finally:
        os.close(descriptor)
    if tail is not None:
        return tail
    before = find_tail(segments[:-1], log)
    if before.head.seq + 1 != last.first or not before.sealed:
        raise Damaged(f"`{last.path}` does not continue record #{before.head.seq}")
    return Tail(before.head, False, 0)


def read_tail(descriptor: int, segment: Segment, log: str) -> Tail | None:
    """The end of one segment, None if it holds no whole line.

    Raises:
        Damaged: its last whole line is no record of this log.
    """
    window = b""
    start = segment.size
    while start > 0 and window.count(b"\n") < 2:
        if len(window) > 2 * MAX_LINE:
            raise Damaged(f"`{segment.path}` ends in a line of more than {MAX_LINE} bytes")
        size = min(_CHUNK, start)
        start -= size
        window = _read_at(descriptor, size, start) + window
    whole, newline, _ = window.rpartition(b"\n")
    if not newline:
        return None
    line = whole.rpartition(b"\n")[2]
    content = _record_of(line, segment, log)
    sealed = content["kind"] == "log" and content["body"].get("event") == SEALED
    return Tail(Head(content["seq"], leaf_hash(line)), sealed, start + len(whole) + 1)


def _read_at(descriptor: int, size: int, offset: int) -> bytes:
    os.lseek(descriptor, offset, os.SEEK_SET)
    return os.read(descriptor, size)


def _record_of(line: bytes, segment: Segment, log: str) -> dict[str, Any]:
    try:
        content = decode(line)
        record = from_json(content)
        if type(content["seq"]) is not int or record.seq < segment.first:
            raise ValueError(f"its number is `{content['seq']}`, the segment starts at {segment.first}")
        if record.log != log:
            raise ValueError(f"it belongs to log `{record.log}`")
    except ValueError as problem:
        raise Damaged(f"the last line of `{segment.path}` is no record: {problem}") from None
    return content
