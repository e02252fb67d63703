"""The two locks of a log: one for writing to its end, one for making that durable.

Rules this module keeps:

- who holds `log.lock` writes to the end of the log, and nobody else does; who holds the lock of `sync.lock`
  syncs, and says what came of it; who needs both takes that one first, so nobody waits in a circle;
- both end with their process, however that ends.
"""

from __future__ import annotations

import os

from licet.files import open_plain
from licet.locks import take_lock, try_lock, unlock
from licet.state import StateDirectory

from licet_audit import ends
from licet_audit.ends import Ends

NAME = "log.lock"


class Lock:
    """One of the locks; used by one thread at a time."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.held = False

    def take(self) -> None:
        """Take it, however long others hold it.

        Raises:
            OSError: the file system can't lock.
        """
        take_lock(self._descriptor)
        self.held = True

    def attempt(self) -> bool:
        """Take it if it is free; False also if it can't be asked for, which `take` tells."""
        try:
            self.held = try_lock(self._descriptor)
        except OSError:
            return False
        return self.held

    def release(self) -> None:
        """Give it back, if it is held."""
        if self.held:
            self.held = False
            unlock(self._descriptor)


class LogLocks:
    """Both locks of a log, and what is said in the file of the second; open until `close`."""

    def __init__(self, state: StateDirectory) -> None:
        """Open both files, which are made where they are missing.

        Raises:
            OSError: one can't be opened.
        """
        flags = os.O_RDWR | os.O_CREAT
        self._descriptors = [open_plain(state.path / NAME, flags)]
        try:
            self._descriptors.append(open_plain(state.path / ends.NAME, flags))
        except OSError:
            os.close(self._descriptors[0])
            raise
        self.append, self.sync = map(Lock, self._descriptors)
        self.ends = Ends(self._descriptors[1])

    def take(self) -> None:
        """Take both, however long others hold them.

        Raises:
            OSError: the file system can't lock.
        """
        self.sync.take()
        self.append.take()

    def attempt(self) -> bool:
        """Take both if they are free, else none."""
        if self.sync.attempt():
            if self.append.attempt():
                return True
            self.sync.release()
        return False

    def release(self) -> None:
        """Give back what is held."""
        self.append.release()
        self.sync.release()

    def close(self) -> None:
        """Close both files; a lock that a parent holds stays held."""
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._descriptors = []
        self.append.held = self.sync.held = False
