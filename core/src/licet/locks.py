"""Locks on files, between processes and between objects of one process.

Rules this module keeps:

- a lock belongs to an open file, so it ends with its process, however that ends;
- nobody waits for ever: a process that is stopped while it holds a lock can't hang all others; only
  `take_lock` keeps no deadline, for a thread that nobody depends on, and those who wait for it keep theirs.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from licet.files import open_plain

_SHORTEST, _LONGEST, _GROWTH = 0.0001, 0.002, 1.5  # seconds between two tries, and how that grows

if sys.platform == "win32":
    import msvcrt

    _BYTE = 1 << 30  # Windows forbids reading a locked byte, so lock one that holds nothing

    def try_lock(descriptor: int, *, shared: bool = False) -> bool:
        """Take the lock if it is free; `shared` is exclusive here, which is stricter."""
        os.lseek(descriptor, _BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True

    def take_lock(descriptor: int) -> None:
        """Take the lock, however long others hold it, by asking again and again."""
        pause = _SHORTEST
        while not try_lock(descriptor):
            time.sleep(pause)
            pause = min(pause * _GROWTH, _LONGEST)

    def unlock(descriptor: int) -> None:
        """Give the lock back."""
        os.lseek(descriptor, _BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def try_lock(descriptor: int, *, shared: bool = False) -> bool:
        """Take the lock if it is free; a shared one excludes only exclusive ones."""
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def take_lock(descriptor: int) -> None:
        """Take the lock, however long others hold it; the kernel keeps those who wait in order."""
        fcntl.flock(descriptor, fcntl.LOCK_EX)

    def unlock(descriptor: int) -> None:
        """Give the lock back."""
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def wait_lock(descriptor: int, seconds: float, *, shared: bool = False) -> bool:
    """Take the lock, waiting at most `seconds` for others; False if it is still held then."""
    deadline = time.monotonic() + seconds
    pause = _SHORTEST
    while not try_lock(descriptor, shared=shared):
        if time.monotonic() >= deadline:
            return False
        time.sleep(pause)
        pause = min(pause * _GROWTH, _LONGEST)
    return True


@contextmanager
def lock_file(path: Path, seconds: float, *, shared: bool = False, make: bool = True) -> Iterator[bool]:
    """Hold the lock of a file inside, after waiting at most `seconds`; False inside if others hold it still.

    The file is made where it is missing, or only read if it is not to be made. The lock is given back, not
    only closed: a child that was forked meanwhile has the open file too.

    Raises:
        OSError: the file can't be opened.
    """
    descriptor = open_plain(path, os.O_RDWR | os.O_CREAT if make else os.O_RDONLY)
    try:
        held = wait_lock(descriptor, seconds, shared=shared)
        try:
            yield held
        finally:
            if held:
                unlock(descriptor)
    finally:
        os.close(descriptor)
