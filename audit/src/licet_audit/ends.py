"""How far the last segment is written, and how far it is durable: what the writers of a log tell each other.

Rules this module keeps:

- two places in `sync.lock`: the end of the last whole batch, which whoever holds `log.lock` writes, and the
  end of what a sync covered, which whoever holds the lock of `sync.lock` writes; who needs both locks takes
  that one first;
- an end counts only for the file and the start of the system that it was said for, and with its check sum;
  what was copied, restored, damaged or left by an earlier start says nothing;
- a sync that failed begins another epoch before its lock is given back, so nobody who wrote in the one
  before is told that lines are durable; what it lost is cut off before anything is written behind it;
- nothing that may be durable is cut: where it is not known what is, nobody goes on.
"""

from __future__ import annotations

import functools
import hashlib
import os
import secrets
import struct
import zlib
from typing import NamedTuple

from licet.errors import AuditUnavailable
from licet.files import open_plain, read_plain
from licet.machine import boot
from licet.state import StateDirectory

from licet_audit import segments
from licet_audit.segments import Segment

NAME = "sync.lock"
_FORM = struct.Struct("<8s8sQQQ")  # epoch, start of the system, first record, inode, bytes
_SIZE = _FORM.size + 4  # with the check sum
_TRIES = 3  # of a reader without a lock, who may meet somebody who writes


class End(NamedTuple):
    """How far a segment goes: its first record, its inode, bytes; said in an epoch, which a failure ends."""

    epoch: bytes
    first: int
    inode: int
    size: int

    def is_in(self, other: End) -> bool:
        """Whether both speak of the same segment in the same epoch."""
        return self[:3] == other[:3]

    def covers(self, other: End) -> bool:
        """Whether what ends there is durable if all up to here is: segments become durable in their order."""
        return self.epoch == other.epoch and (
            self.first > other.first or (self.is_in(other) and self.size >= other.size)
        )


class Ends:
    """Both ends of a log, as its processes say them; the caller holds the lock that its place needs."""

    def __init__(self, descriptor: int) -> None:
        """`descriptor` is `sync.lock`, open for reading and writing."""
        self._file = descriptor
        self._data = b""  # as it was read or said last, with what that says: nobody spells the same twice
        self._ends: tuple[End | None, End | None] = (None, None)

    def read(self) -> tuple[End | None, End | None]:
        """The end of what is written, and of what is durable; None where nothing is known."""
        if _boot() is None:
            return None, None
        data = os.pread(self._file, 2 * _SIZE, 0)
        if data != self._data:
            self._data, self._ends = data, (_end(data[:_SIZE]), _end(data[_SIZE:]))
        return self._ends

    def say_written(self, end: End) -> None:
        """Say where the last whole batch ends; `log.lock` is held."""
        data = self._say(_spelled(end), 0)
        self._data, self._ends = data + self._data[_SIZE:], (end, self._ends[1])

    def say_durable(self, end: End) -> None:
        """Say what a sync covered; the lock of `sync.lock` is held."""
        data = self._say(_spelled(end), _SIZE)
        self._data, self._ends = self._data[:_SIZE] + data, (self._ends[0], end)

    def say_both(self, end: End) -> None:
        """Say that all that is written is durable; both locks are held."""
        self._data, self._ends = self._say(2 * _spelled(end), 0), (end, end)

    def settled(self, first: int, inode: int, size: int) -> End:
        """What to say of a segment that is durable as a whole, for all who wait for that; both are held."""
        _, durable = self.read()
        if durable is None or ((durable.first, durable.inode) == (first, inode) and durable.size > size):
            return End(_epoch(), first, inode, size)
        return End(durable.epoch, first, inode, size)

    def lose(self, first: int, inode: int) -> None:
        """Say that a sync of a segment failed; the lock of `sync.lock` is held."""
        _, durable = self.read()
        if durable is not None and (durable.first, durable.inode) == (first, inode):
            self.say_durable(durable._replace(epoch=_epoch()))
        elif os.fstat(self._file).st_size:
            os.ftruncate(self._file, 0)

    def lose_from(self, first: int, inode: int, size: int) -> None:
        """Say that a sync of a segment failed whose whole batches go up to `size`; both locks are held."""
        _, durable = self.read()
        if durable is not None and (durable.first, durable.inode) == (first, inode):
            self.say_written(durable._replace(size=size))
        self.lose(first, inode)

    def lost(self) -> tuple[End, End] | None:
        """What is written and what of it is durable, if a sync failed and nobody has cut off the rest yet."""
        written, durable = self.read()
        if written is None or durable is None or written.epoch == durable.epoch:
            return None
        return None if written[1:3] != durable[1:3] else (written, durable)

    def cut_lost(self, state: StateDirectory) -> None:
        """Cut off what a sync that failed may have lost; both locks are held.

        Raises:
            AuditUnavailable: what is there is not what was said to be written.
            OSError: it can't be cut.
        """
        if (found := self.lost()) is None:
            return
        written, durable = found
        path = segments.segment_path(state, durable.first)
        try:
            file = open_plain(path, os.O_RDWR)
        except FileNotFoundError:
            return
        try:
            now = os.fstat(file)
            if now.st_ino != durable.inode:
                return  # it speaks of another file; whoever comes next says what holds of this one
            # A process that died, or goes by another `sync.lock`, may have written more.
            if now.st_size not in (written.size, durable.size) or not _ends_line(file, durable.size):
                raise AuditUnavailable(
                    f"what follows byte {durable.size} of `{path}` may not be durable: a sync failed",
                    advice="run `licet audit verify`, then move the state directory aside to start a new log",
                )
            os.ftruncate(file, durable.size)
            self.say_both(durable)
            os.fsync(self._file)  # so that nothing brings the call for this cut back later
        finally:
            os.close(file)

    def _say(self, data: bytes, offset: int) -> bytes:
        if _boot() is not None:
            os.pwrite(self._file, data, offset)
        return data


def durable_part(state: StateDirectory) -> list[Segment] | None:
    """The segments as far as their writers say that they are durable; None if nobody says so. Needs no lock.

    Raises:
        OSError: the log can't be listed.
    """
    end = _durable(state)
    if end is None:
        return None
    listed = segments.listing(state)
    for place, segment in enumerate(listed):
        if segment.first == end.first and end.size <= segment.size:
            if segment.path.lstat().st_ino != end.inode:
                return None
            return [*listed[:place], segment.resized(end.size)]
    return None


def _durable(state: StateDirectory) -> End | None:
    for _ in range(_TRIES):
        try:
            data = read_plain(state.path / NAME, 2 * _SIZE)
        except OSError:
            return None
        if (end := _end(data[_SIZE:])) is not None:
            return end
    return None


def _ends_line(file: int, size: int) -> bool:
    return size == 0 or os.pread(file, 1, size - 1) == b"\n"


def _epoch() -> bytes:
    return secrets.token_bytes(8)


@functools.cache
def _boot() -> bytes | None:
    """This start of the system in 8 bytes; None where it has no id, and then nothing is said or believed."""
    text = boot()
    return None if text is None else hashlib.sha256(text.encode()).digest()[:8]


def _spelled(end: End) -> bytes:
    data = _FORM.pack(end.epoch, _boot() or b"", end.first, end.inode, end.size)
    return data + zlib.crc32(data).to_bytes(4, "little")


def _end(data: bytes) -> End | None:
    if len(data) != _SIZE or zlib.crc32(data[:-4]).to_bytes(4, "little") != data[-4:]:
        return None
    epoch, start, first, inode, size = _FORM.unpack(data[:-4])
    return End(epoch, first, inode, size) if start == _boot() else None
