"""The parts of a log's files that are scanned at a time: whole lines, of about `PART` bytes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from licet.files import open_plain

from licet_audit.chain import MAX_LINE
from licet_audit.segments import Segment

PART = 2 * 2**20
"""How many bytes a part should have; it is as much longer as its last line needs."""
MAX_PART = PART + 2 * MAX_LINE
_WINDOW = 64 * 1024


class Part(NamedTuple):
    """Bytes `start` to `stop` of a file: whole lines, save that the last of the file may have no end."""

    path: str
    start: int
    stop: int


def parts(segment: Segment) -> Iterator[Part]:
    """Cut a segment behind lines, into parts of about `PART` bytes.

    Raises:
        OSError: it can't be read.
    """
    start = 0
    descriptor = open_plain(segment.path, os.O_RDONLY)
    try:
        while start < segment.size:
            stop = _line_end(descriptor, min(start + PART, segment.size), segment.size)
            yield Part(str(segment.path), start, stop)
            start = stop
    finally:
        os.close(descriptor)


def _line_end(descriptor: int, at: int, size: int) -> int:
    """The first byte after the line that holds the byte before `at`, or the end of the file."""
    os.lseek(descriptor, at - 1, os.SEEK_SET)
    at -= 1
    while at < size and (window := os.read(descriptor, min(_WINDOW, size - at))):
        if (place := window.find(b"\n")) >= 0:
            return at + place + 1
        at += len(window)
    return size


def read(part: Part) -> bytes | None:
    """The bytes of a part; None if it holds a line longer than a record may be.

    Raises:
        OSError: it can't be read.
    """
    size = part.stop - part.start
    if size > MAX_PART:
        return None
    with os.fdopen(open_plain(Path(part.path), os.O_RDONLY), "rb") as file:
        file.seek(part.start)
        return file.read(size)
