"""A log at one moment: how many records it holds, and the leaf hash of each of them, by its number.

Rules this module keeps:

- only whole lines count, and the numbers of records come from the names of segments and from the last line;
- near the end little is read: whoever asks for the last leaves reads their lines and no others;
- records whose segment is gone have no leaf here; tiles may still know it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from licet.files import open_plain

from licet_audit import segments, tree
from licet_audit.chain import MAX_LINE
from licet_audit.segments import Segment

_CHUNK = 64 * 1024


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The segments of a log as they were listed, how many records the log had (`size`) and where it began.

    `sealed` says that the last record closes its segment. `first` is the number of the first record whose
    segment is there, which is 0 unless segments were pruned.
    """

    segments: tuple[Segment, ...]
    size: int
    sealed: bool

    @classmethod
    def of(cls, listed: Sequence[Segment], log_id: str) -> Snapshot:
        """What segments that were listed at one moment hold.

        Raises:
            Damaged: what would be the last record is none.
            OSError: it can't be read.
        """
        tail = segments.find_tail(listed, log_id)
        return cls(tuple(listed), tail.head.seq + 1, bool(listed) and tail.sealed)

    @property
    def first(self) -> int:
        """The number of the first record that is still there; `size` if none is."""
        return self.segments[0].first if self.segments else self.size

    @property
    def ends(self) -> list[int]:
        """The sizes that the log had whenever a segment was full."""
        found = [segment.first for segment in self.segments[1:]]
        return sorted({*found, self.size} if self.sealed else {*found})

    def leaves(self, start: int, stop: int) -> Iterator[bytes]:
        """The leaf hashes of records `start` to `stop - 1`.

        Raises:
            LookupError: one of them is not there.
            OSError: it can't be read.
        """
        seq = start
        for segment, end in self._spans(start, stop):
            if seq < segment.first:
                break
            offset = _start_of_last(segment, end - seq)
            if seq == segment.first and offset:
                raise LookupError(f"`{segment.path}` holds more records than it should")
            for line in islice(_whole_lines(segment, offset), min(end, stop) - seq):
                yield tree.leaf(line)
                seq += 1
        if seq < stop:
            raise LookupError(f"record #{seq} is in no segment of the log")

    def holding(self, start: int, stop: int) -> list[Segment]:
        """The segments that hold records `start` to `stop - 1`."""
        return [segment for segment, _ in self._spans(start, stop)]

    def _spans(self, start: int, stop: int) -> Iterator[tuple[Segment, int]]:
        """Those segments, each with the number after its last record."""
        following = [*(segment.first for segment in self.segments[1:]), self.size]
        for segment, end in zip(self.segments, following, strict=True):
            if max(start, segment.first) < min(stop, end):
                yield segment, end


def _whole_lines(segment: Segment, offset: int) -> Iterator[bytes]:
    """The lines that end with a newline, without it, from where one begins.

    Raises:
        LookupError: one is longer than a record may be.
    """
    rest = b""
    with os.fdopen(open_plain(segment.path, os.O_RDONLY), "rb") as file:
        file.seek(offset)
        left = segment.size - offset
        while left > 0 and (chunk := file.read(min(_CHUNK, left))):
            left -= len(chunk)
            *whole, rest = (rest + chunk).split(b"\n")
            if len(rest) > MAX_LINE:
                raise LookupError(f"`{segment.path}` has a line of more than {MAX_LINE} bytes")
            yield from whole


def _start_of_last(segment: Segment, count: int) -> int:
    """Where the last `count` whole lines of a segment begin.

    Raises:
        LookupError: it has fewer.
    """
    missing, start = count + 1, segment.size  # the newline before the first of them is the last one wanted
    descriptor = open_plain(segment.path, os.O_RDONLY)
    try:
        while start > 0:
            size = min(_CHUNK, start)
            start -= size
            os.lseek(descriptor, start, os.SEEK_SET)
            chunk = os.read(descriptor, size)
            here = chunk.count(b"\n")
            if here < missing:
                missing -= here
                continue
            place = len(chunk)
            for _ in range(missing):
                place = chunk.rindex(b"\n", 0, place)
            return start + place + 1
    finally:
        os.close(descriptor)
    if missing > 1:
        raise LookupError(f"`{segment.path}` holds fewer records than it should")
    return 0
