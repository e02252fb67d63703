"""Where an index is kept: a file in the user's cache directory, or memory where that can't be.

Rules this module keeps:

- the file lies in a directory that is this user's alone, so nobody else decides what it says;
- a file is removed only while nobody uses it: whoever does holds a shared lock beside it;
- readers and writers exclude one another by SQLite's rollback journal; its write-ahead log can lose pages in
  versions that are still common (3.7.0 to 3.51.2).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import stat
import sys
from pathlib import Path

import platformdirs
from licet.errors import reason_of
from licet.files import open_plain
from licet.locks import try_lock, unlock
from licet.state import StateDirectory

from licet_audit.index.schema import VERSION

PATIENCE = 5.0  # seconds that another process may hold the file
_CACHE_KIB = 64 * 1024
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_REFUSED = {
    sqlite3.SQLITE_READONLY: "it can't be written",
    sqlite3.SQLITE_IOERR: "the disk reported an error",
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_CANTOPEN: "it can't be opened",
    sqlite3.SQLITE_PERM: "it can't be written",
    sqlite3.SQLITE_AUTH: "it can't be written",
    **dict.fromkeys(_BUSY, "another process uses it"),
}


class Unusable(Exception):
    """Why there is no file to keep the index in."""


def path_of(state: StateDirectory) -> Path:
    """The file for the log in `state`; a copy of a log elsewhere has another one."""
    place = hashlib.sha256(os.fsencode(os.path.realpath(state.path))).hexdigest()[:16]
    folder = platformdirs.user_cache_path("licet", appauthor=False) / "index"
    return folder / f"{state.log_id}-{place}-v{VERSION}.sqlite"


def refusal(problem: sqlite3.Error) -> str | None:
    """Why a file can't be used now; None if what is wrong is the file itself."""
    code = getattr(problem, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
    return _REFUSED.get(code & 0xFF)


class Store:
    """An open database; `note` says why it is in memory, if it is."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.note: str | None = None
        self.db = sqlite3.connect(":memory:")  # until the file is open
        self._lock = -1
        try:
            self._lock = _prepared(path)
            self._connect()
        except sqlite3.Error as problem:
            why = refusal(problem)
            if why is not None or not self.begin_anew():
                self.move_to_memory(why or str(problem), copy=False)
        except Unusable as problem:
            self.move_to_memory(str(problem), copy=False)
        except OSError as problem:
            self.move_to_memory(f"`{problem.filename}`: {reason_of(problem)}", copy=False)

    @property
    def in_file(self) -> bool:
        """Whether it is kept."""
        return self.note is None

    def move_to_memory(self, why: str, *, copy: bool) -> None:
        """Go on in memory, with what the file has if that can be read."""
        before = self.db
        with contextlib.suppress(sqlite3.Error):
            before.execute("ROLLBACK")
        self.note, self.db = why, _in_memory()
        if copy:
            try:
                before.execute("BEGIN")
                before.execute("SELECT count(*) FROM segment").fetchall()  # takes the lock, or gives up
                before.backup(self.db)
            except sqlite3.Error:
                self.db = _in_memory()
        before.close()
        self.close_lock()

    def begin_anew(self) -> bool:
        """Replace a file that is damaged; False if somebody else uses it."""
        self.db.close()
        if sys.platform != "win32":
            unlock(self._lock)
            if not try_lock(self._lock):
                return False
        try:
            for name in (self.path, self.path.with_name(f"{self.path.name}-journal")):
                name.unlink(missing_ok=True)
            _made(self.path)
            self._connect()
        except (Unusable, OSError, sqlite3.Error):
            return False
        return True

    def close(self) -> None:
        """Leave the file as it is."""
        self.db.close()
        self.close_lock()

    def close_lock(self) -> None:
        """Let others remove the file."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _share(self) -> None:
        if sys.platform != "win32":  # where an open file can't be removed anyway, and no lock is shared
            unlock(self._lock)
            if not try_lock(self._lock, shared=True):
                raise Unusable("another process replaces it")

    def _connect(self) -> None:
        self._share()
        self.db.close()
        self.db = sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None)
        _configure(self.db)


def _prepared(path: Path) -> int:
    """Make directory and file; return the descriptor of the lock beside it."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = path.parent.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise Unusable(f"`{path.parent}` is not a directory")
    if sys.platform != "win32" and (found.st_uid != os.geteuid() or found.st_mode & 0o022):
        raise Unusable(f"other users may write to `{path.parent}`")
    _made(path)
    return open_plain(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT)


def _made(path: Path) -> None:
    os.close(open_plain(path, os.O_RDWR | os.O_CREAT))


def _in_memory() -> sqlite3.Connection:
    db = sqlite3.connect(":memory:", isolation_level=None)
    _configure(db)
    return db


def _configure(db: sqlite3.Connection) -> None:
    settings = {"cache_size": -_CACHE_KIB, "cell_size_check": "ON", "temp_store": "MEMORY", "mmap_size": 0}
    for name, value in settings.items():
        db.execute(f"PRAGMA {name} = {value}")
