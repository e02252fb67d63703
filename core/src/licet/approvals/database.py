"""The file of the store: opened without a trap, changed by one at a time, and plain about what fails.

Rules this module keeps:

- the file is a plain one of this user's that nobody else can read, and so are those that SQLite puts beside
  it; it is made before SQLite sees it;
- every change holds the lock of a file beside it, from before it begins until after it is durable; so no two
  processes ever write, or fold the write-ahead log in, at one instant, by which versions of SQLite that are
  still common (3.7.0 to 3.51.2) can lose pages;
- nobody waits longer than `PATIENCE` for another process;
- a file that was replaced while it is open is not written to: what is spent in one would not be in the other;
- whatever fails is `ApprovalsUnavailable`, and what was to change has not.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import stat
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from licet.approvals.schema import Damaged, Foreign, prepare
from licet.errors import ApprovalsUnavailable
from licet.files import open_plain, sync_directory
from licet.locks import unlock, wait_lock
from licet.state import StateDirectory, unavailable

PATIENCE = 10.0
"""Seconds that another process may hold the file."""

LOCK = "approvals.lock"
_SMALLEST = 512  # bytes of a page
_BESIDE = ("-wal", "-shm", "-journal")
_ERRNO = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_IOERR: errno.EIO,
    sqlite3.SQLITE_CANTOPEN: errno.EACCES,
    sqlite3.SQLITE_PERM: errno.EACCES,
    sqlite3.SQLITE_AUTH: errno.EACCES,
    sqlite3.SQLITE_READONLY: errno.EROFS,
}
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_SETTINGS = {
    "cell_size_check": "ON",
    "foreign_keys": "ON",
    "secure_delete": "ON",
    "synchronous": "FULL",
    "temp_store": "MEMORY",
    "trusted_schema": "OFF",
}


class Database:
    """An open file; one thread of this process uses it at a time."""

    def __init__(self, state: StateDirectory, name: str) -> None:
        """Open the file, which is made where it is missing.

        Raises:
            ApprovalsUnavailable: it can't be opened, was damaged, or is not the store of this directory.
        """
        self.path = state.path / name
        self._threads = threading.RLock()
        self._closed = False
        with self._failures():
            self._lock = open_plain(state.path / LOCK, os.O_RDWR | os.O_CREAT)
        self.db: sqlite3.Connection | None = None
        try:
            with self._failures(), self._alone():
                self._inode = self._made()
                self.db = sqlite3.connect(
                    self.path, timeout=PATIENCE, isolation_level=None, check_same_thread=False
                )
                for setting, value in _SETTINGS.items():
                    self.db.execute(f"PRAGMA {setting} = {value}")
                self.db.execute("PRAGMA journal_mode = WAL")
                prepare(self.db, state.log_id)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of the file, and fold the write-ahead log in if nobody else has it open."""
        with self._threads:
            if self._closed:
                return
            self._closed = True
            try:
                with contextlib.suppress(ApprovalsUnavailable, sqlite3.Error), self._alone():
                    if self.db is not None:
                        self.db.close()
            finally:
                if self.db is not None:
                    self.db.close()  # where others held the lock all the while
                os.close(self._lock)

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """See one state of the file inside.

        Raises:
            ApprovalsUnavailable: it can't be read.
        """
        with self._threads, self._failures():
            db = self._open()
            if db.in_transaction:  # within a change, which sees what it has changed
                yield db
                return
            db.execute("BEGIN")
            try:
                yield db
            finally:
                with contextlib.suppress(sqlite3.Error):
                    db.execute("ROLLBACK")

    @contextlib.contextmanager
    def changing(self) -> Iterator[sqlite3.Connection]:
        """Change the file inside: all of it, durable when this returns, or nothing if an error leaves it.

        Raises:
            ApprovalsUnavailable: it can't be changed.
        """
        with self._threads, self._failures():
            db = self._open()
            with self._alone():
                self._check_place()
                db.execute("BEGIN IMMEDIATE")
                try:
                    yield db
                    db.execute("COMMIT")
                except BaseException:
                    if db.in_transaction:  # SQLite takes some failures back by itself
                        with contextlib.suppress(sqlite3.Error):
                            db.execute("ROLLBACK")
                    raise

    def fold(self) -> None:
        """Leave nothing of what was erased in the write-ahead log.

        Raises:
            ApprovalsUnavailable: another process reads the file all the while.
        """
        with self._threads, self._failures(), self._alone():
            (busy, _, _) = self._open().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise _held(self.path)

    def _open(self) -> sqlite3.Connection:
        if self._closed or self.db is None:
            raise ApprovalsUnavailable("the store of approvals was closed", advice="open another one")
        return self.db

    def _made(self) -> tuple[int, int]:
        """Make the file where it is missing, and look at it and its companions before SQLite does."""
        missing = not self.path.exists()
        descriptor = open_plain(self.path, os.O_RDWR | os.O_CREAT)
        try:
            found = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        if 0 < found.st_size < _SMALLEST:  # SQLite would begin anew
            raise _damaged(self.path, f"it has {found.st_size} bytes")
        if missing:
            sync_directory(self.path.parent)
        for beside in _BESIDE:
            place = self.path.with_name(self.path.name + beside)
            with contextlib.suppress(FileNotFoundError):
                os.close(open_plain(place, os.O_RDONLY))
        if sys.platform != "win32" and (found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077):
            raise ApprovalsUnavailable(
                f"other users may read or own `{self.path}`, expected mode 0600 and this user",
                advice=f"check who could have answered in it, then run `chmod 600 {self.path}`",
            )
        return found.st_dev, found.st_ino

    def _check_place(self) -> None:
        try:
            found = self.path.lstat()
        except FileNotFoundError:
            found = None
        if found is None or (found.st_dev, found.st_ino) != self._inode:
            raise ApprovalsUnavailable(
                f"`{self.path}` was moved or replaced while it is in use",
                advice="put it back, or restart what uses it",
            )

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        if not wait_lock(self._lock, PATIENCE):
            raise _held(self.path)
        try:
            yield
        finally:
            unlock(self._lock)

    @contextlib.contextmanager
    def _failures(self) -> Iterator[None]:
        """Turn what file system and SQLite refuse inside into `ApprovalsUnavailable`."""
        try:
            yield
        except OSError as problem:
            raise _unusable(problem, self.path) from problem
        except sqlite3.Error as problem:
            raise _refusal(problem, self.path) from problem
        except Damaged as problem:
            raise _damaged(self.path, str(problem)) from problem
        except Foreign as problem:
            raise ApprovalsUnavailable(f"`{self.path}` {problem.why}", advice=problem.advice) from None


def _damaged(path: Path, why: str) -> ApprovalsUnavailable:
    """What is in the file can't be trusted."""
    return ApprovalsUnavailable(
        f"`{path}` is damaged: {why}",
        advice="restore it from a backup, or move it aside with the files that begin with its name: "
        "what is pending in it has to be asked again",
    )


def _refusal(problem: sqlite3.Error, path: Path) -> ApprovalsUnavailable:
    code = getattr(problem, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
    if code in _BUSY:
        return _held(path)
    if code in _ERRNO:
        return _unusable(OSError(_ERRNO[code], os.strerror(_ERRNO[code]), str(path)), path)
    return _damaged(path, str(problem))


def _unusable(problem: OSError, path: Path) -> ApprovalsUnavailable:
    found = unavailable(problem, path)
    return ApprovalsUnavailable(found.message, advice=found.advice)


def _held(path: Path) -> ApprovalsUnavailable:
    return ApprovalsUnavailable(
        f"another process has held `{path}` for {PATIENCE:g} s",
        advice="see which one it is, and run again when it has ended",
    )
