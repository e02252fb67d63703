"""Which processes have begun what they were allowed, and live: a locked file for each.

Rules this module keeps:

- a file is made and locked, and looked at, only while its caller holds the lock of the store; so a file
  that is not locked, or is missing, is that of a process that died or has let go;
- the lock ends with the process, however that ends; a number of a process could be given out again.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from licet.files import make_folder, open_plain, sync_directory
from licet.locks import try_lock, unlock

FOLDER = "approvals.using"


class Presence:
    """The file of one store that is open; it is made when something is first begun by it."""

    def __init__(self, state: Path) -> None:
        self.name = secrets.token_hex(16)
        self._folder = state / FOLDER
        self._descriptor = -1

    def announce(self) -> None:
        """Make the file and lock it, durably, where that was not done before.

        Raises:
            OSError: it can't be made.
        """
        if self._descriptor >= 0:
            return
        make_folder(self._folder)
        self._descriptor = open_plain(self._folder / self.name, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        try_lock(self._descriptor)
        sync_directory(self._folder)

    def release(self) -> bool:
        """Give up the lock, if there is one; what was begun and has not ended is for others to end."""
        if self._descriptor < 0:
            return False
        unlock(self._descriptor)
        os.close(self._descriptor)
        self._descriptor = -1
        return True

    def is_alive(self, holder: str) -> bool:
        """Whether the store that `holder` names is still open in a process that lives.

        Raises:
            OSError: its file can't be opened.
        """
        if holder == self.name:
            return self._descriptor >= 0
        try:
            descriptor = open_plain(self._folder / holder, os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            return not try_lock(descriptor)
        finally:
            os.close(descriptor)

    def others(self) -> Iterator[str]:
        """The names of all other files."""
        if self._folder.is_dir():
            yield from sorted(path.name for path in self._folder.iterdir() if path.name != self.name)

    def drop(self, holder: str) -> None:
        """Remove the file of a holder that is not alive, and of which nothing is open."""
        (self._folder / holder).unlink(missing_ok=True)
