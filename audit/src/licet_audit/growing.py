"""The last segment of a log as one writer has it open: written to, made durable, and shared with others.

Rules this module keeps:

- a batch is durable only after a sync that began when it was written, whoever made that; a sync covers all
  whole batches that were said to be written before it;
- what a write or sync that failed may have left is cut off, as far as it is known that nobody was told that
  it is durable; whoever wrote that hears it from whoever failed;
- an interruption is no failure of the disk: it takes back what nobody stands on, and tells nobody.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from licet.errors import AuditUnavailable
from licet.files import open_plain, sync_directory
from licet.state import StateDirectory, unavailable

from licet_audit.ends import End
from licet_audit.files import sync, write_all
from licet_audit.locking import LogLocks
from licet_audit.segments import Segment, segment_path


class Stopped(Exception):
    """A write or a sync failed, so nothing more may be written; `failure` says why."""

    def __init__(self, failure: AuditUnavailable) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Growing:
    """The last segment of a log up to the end that its writer knows; the caller holds the locks it needs."""

    def __init__(self, state: StateDirectory, locks: LogLocks) -> None:
        self.syncs = 0  # made here, and not by others
        self.segment = Segment(segment_path(state, 0), 0, 0)
        self.file = -1
        self._state = state
        self._locks = locks
        self._device = self._inode = 0
        self._end: End | None = None  # as this writer last said it, or heard it

    def switch_to(self, segment: Segment, *, make: bool = False) -> None:
        """Open another segment in the place of this one.

        Raises:
            OSError: it can't be opened, or made.
        """
        flags = os.O_RDWR | os.O_APPEND | (os.O_CREAT | os.O_EXCL if make else 0)
        descriptor = open_plain(segment.path, flags)
        self.close()
        opened = os.fstat(descriptor)
        self.file, self.segment = descriptor, segment
        self._device, self._inode = opened.st_dev, opened.st_ino

    def close(self) -> None:
        """Close the file; nothing is touched."""
        if self.file >= 0:
            os.close(self.file)
        self.file, self._end = -1, None

    def move_to(self, size: int) -> None:
        """Know a later end, which others wrote to."""
        self.segment = self.segment.resized(size)

    def size_now(self) -> int | None:
        """How large the file is; None if it was cut, moved or deleted."""
        try:
            now = self.segment.path.lstat()
        except OSError:
            return None
        is_this = (now.st_dev, now.st_ino) == (self._device, self._inode)  # no other can be while it is open
        return now.st_size if is_this and now.st_size >= self.segment.size else None

    def is_of_another_epoch(self) -> bool:
        """Whether a sync failed since this was opened, so that it has to be opened again.

        The system tells each open file of that failure, as if it were one of what is written next.
        """
        _, durable = self._locks.ends.read()
        return self._end is not None and durable is not None and self._end.epoch != durable.epoch

    def is_as_left(self) -> bool:
        """Whether nobody wrote or failed since this writer last did. Both locks are held."""
        end = self._end
        return end is not None and self._locks.ends.read() == (end, end) and self.size_now() == end.size

    def agreed_size(self) -> int | None:
        """Where all writers agree that the segment ends, so that one may write there before that is durable.

        None if they don't, or if the file is not as they say. `log.lock` is held.

        Raises:
            OSError: nobody can tell.
        """
        end = self._end
        if end is None:
            return None
        written, durable = self._locks.ends.read()
        if written is None or durable is None or not (written.is_in(end) and durable.is_in(end)):
            return None
        return written.size if self.size_now() == written.size else None

    def write_behind(self, data: bytes) -> End:
        """Write a batch at the agreed end; it is durable once `settle` says so. `log.lock` is held.

        Raises:
            Stopped: nothing of it is written.
        """
        if self._end is None:
            raise RuntimeError("no end was agreed on")
        end = self._end._replace(size=self.segment.size + len(data))
        try:
            write_all(self.file, data)
            self._locks.ends.say_written(end)
        except BaseException as problem:
            raise self._cut_after(problem) from problem
        self.segment, self._end = self.segment.resized(end.size), end
        return end

    def settle(self, data: bytes, end: End) -> None:
        """Make a batch that `write_behind` wrote durable, unless somebody has; the lock for that is held.

        Raises:
            Stopped: it is not known to be durable.
        """
        ends = self._locks.ends
        written, durable = ends.read()
        if durable is None:  # whoever says nothing may have lost nothing, but may have cut it off
            lost = os.pread(self.file, len(data), end.size - len(data)) != data
        else:
            lost = durable.epoch != end.epoch
        if lost:
            message = f"another process could not make `{self.segment.path}` durable"
            raise Stopped(AuditUnavailable(message, advice="check the disk before anything runs again"))
        if durable is not None and durable.covers(end):
            return
        self.syncs += 1
        try:
            sync(self.file)
        except BaseException as problem:
            self._take_back(end, end.size - len(data), failed=isinstance(problem, OSError))
            raise self._stopped(problem) from problem
        if written is None or not written.is_in(end) or written.size < end.size:
            written = end
        with contextlib.suppress(OSError):  # others sync once more then
            ends.say_durable(written)

    def write(self, data: bytes, *, new: bool) -> None:
        """Write a batch and make it durable, with all that it stands on. Both locks are held.

        `new` says that the segment was just made.

        Raises:
            Stopped: nothing of it is known to be durable.
        """
        try:
            write_all(self.file, data)
        except BaseException as problem:
            raise self._cut_after(problem) from problem
        self.sync(self.segment.size + len(data), folder=self.segment.path.parent if new else None)

    def sync(self, size: int | None = None, *, folder: Path | None = None) -> None:
        """Make the segment durable up to `size`, or as it is, and say so to all writers. Both locks are held.

        `folder` is synced too; it is that of a segment that was just made.

        Raises:
            Stopped: nothing more than before is known to be durable.
        """
        ends, known = self._locks.ends, self.segment
        self.syncs += 1
        try:
            sync(self.file)
            if folder is not None:
                sync_directory(folder)
        except BaseException as problem:
            failure = self._cut_after(problem)
            if isinstance(problem, OSError) and folder is None:
                with contextlib.suppress(OSError, AuditUnavailable):  # whoever comes next tries again
                    ends.lose_from(known.first, self._inode, known.size)
                    ends.cut_lost(self._state)
            raise failure from problem
        self.segment = known.resized(known.size if size is None else size)
        self._end = ends.settled(known.first, self._inode, self.segment.size)
        with contextlib.suppress(OSError):  # nobody writes behind it then before it is looked at
            ends.say_both(self._end)

    def _cut_after(self, problem: BaseException) -> BaseException:
        """Cut off what a write or sync that failed may have left behind the end; return what to raise."""
        with contextlib.suppress(OSError):
            os.ftruncate(self.file, self.segment.size)
        return self._stopped(problem)

    def _stopped(self, problem: BaseException) -> BaseException:
        return Stopped(unavailable(problem, self.segment.path)) if isinstance(problem, OSError) else problem

    def _take_back(self, end: End, start: int, *, failed: bool) -> None:
        """Cut off what was written up to `end` if nobody stands on it; `failed` if others must hear of it."""
        ends, lock = self._locks.ends, self._locks.append
        with contextlib.suppress(OSError, AuditUnavailable):  # whoever comes next tries again
            if failed:
                ends.lose(end.first, end.inode)
            if not lock.attempt():
                return
            try:
                if failed:
                    ends.cut_lost(self._state)
                elif ends.read()[0] == end and os.fstat(self.file).st_size == end.size:
                    os.ftruncate(self.file, start)
                    ends.say_written(end._replace(size=start))
            finally:
                lock.release()
