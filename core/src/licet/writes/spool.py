"""Sized storage for what a run writes: in memory while it is little, else in a file that has no name.

Rules this module keeps:

- bytes that belong to no content any more are given back, so that rewriting a file a thousand times takes the
  room of one;
- nothing is left behind, however the process ends.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Iterable, Iterator

from licet.writes.staged import StorageFull

IN_MEMORY = 1 << 20
_PIECE = 1 << 18
_SLACK = 4 << 20  # bytes that may lie waste before the storage is packed


class Stored:
    """The content of one file, in the order it was written; made by `Spool`."""

    __slots__ = ("_spool", "extents", "size")

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self.extents: list[tuple[int, int]] = []
        self.size = 0

    def chunks(self) -> Iterator[bytes]:
        """The content, piece by piece."""
        return self._spool.read(self.extents)


class Spool:
    """Holds at most `limit` bytes of content."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self._end = 0
        self._room = _Room()
        self._contents: set[Stored] = set()

    def new(self, content: Iterable[bytes] = ()) -> Stored:
        """Make a content of these pieces.

        Raises:
            StorageFull: it does not fit.
        """
        stored = Stored(self)
        self._contents.add(stored)
        try:
            for piece in content:
                self.append(stored, piece)
        except BaseException:
            self.drop(stored)
            raise
        return stored

    def append(self, stored: Stored, data: bytes) -> None:
        """Put `data` at the end of a content.

        Raises:
            StorageFull: it does not fit.
        """
        if self.used + len(data) > self.limit:
            raise StorageFull(f"the limit `files` is {self.limit} bytes")
        if not data:
            return
        self._room.write(self._end, data)
        if stored.extents and sum(stored.extents[-1]) == self._end:
            start, length = stored.extents[-1]
            stored.extents[-1] = (start, length + len(data))
        else:
            stored.extents.append((self._end, len(data)))
        self._end += len(data)
        stored.size += len(data)
        self.used += len(data)

    def drop(self, stored: Stored) -> None:
        """Give the room of a content back."""
        self._contents.discard(stored)
        self.used -= stored.size
        stored.extents, stored.size = [], 0
        if self._end > 2 * self.used + _SLACK:
            self._pack()

    def read(self, extents: Iterable[tuple[int, int]]) -> Iterator[bytes]:
        """What lies in these places, piece by piece."""
        for start, length in tuple(extents):
            end = start + length
            while start < end:
                piece = self._room.read(start, min(_PIECE, end - start))
                yield piece
                start += len(piece)

    def close(self) -> None:
        """Give everything back."""
        self._room.close()

    def _pack(self) -> None:
        packed = _Room()
        moved: list[tuple[Stored, int]] = []
        end = 0
        for stored in self._contents:
            moved.append((stored, end))
            for piece in stored.chunks():
                packed.write(end, piece)
                end += len(piece)
        self._room.close()
        self._room, self._end = packed, end
        for stored, start in moved:
            stored.extents = [(start, stored.size)] if stored.size else []


class _Room:
    """Bytes by their place; closed at the latest when nobody has it any more."""

    def __init__(self) -> None:
        self._memory = bytearray()
        self._file: int | None = None
        self._closing: weakref.finalize[..., _Room] | None = None

    def write(self, start: int, data: bytes) -> None:
        if self._file is None and start + len(data) > IN_MEMORY:
            with tempfile.TemporaryFile(buffering=0) as file:
                self._file = os.dup(file.fileno())
            self._closing = weakref.finalize(self, os.close, self._file)
            _write(self._file, 0, self._memory)
            self._memory = bytearray()
        if self._file is None:
            self._memory[start : start + len(data)] = data
        else:
            _write(self._file, start, data)

    def read(self, start: int, size: int) -> bytes:
        if self._file is None:
            return bytes(self._memory[start : start + size])
        return os.pread(self._file, size, start)

    def close(self) -> None:
        if self._closing is not None:
            self._closing()
        self._file, self._memory = None, bytearray()


def _write(file: int, start: int, data: bytes | bytearray) -> None:
    left = memoryview(data)
    while left:
        written = os.pwrite(file, left, start)
        left, start = left[written:], start + written
