"""Where receipts are kept: in the user's own state directory, one file a fingerprint.

Rules this module keeps:

- a file appears complete or not at all; several processes may write at once, and none loses another's;
- a damaged file, or one that somebody else may write, counts as missing;
- files that nothing can match any more (another boot, another version) are cleared away when they are old;
  a leak is kept for as long as its boot lasts.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from licet import files, locks, state
from licet.errors import AuditUnavailable
from licet.probe.results import LIFETIME_S, ProbeResult, Receipts

_VERSION = 1
_MOST_BYTES = 1 << 20
_WAIT_S = 10.0


class ReceiptStore:
    """Receipts on disk; `folder` replaces the one in the user's state directory, `clock` the time of day."""

    def __init__(self, folder: Path | None = None, *, clock: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._clock = clock

    def load(self, fingerprint: str) -> tuple[ProbeResult, ...]:
        """The receipts bound to `fingerprint`; none if there are none, or none to be read. Makes nothing."""
        try:
            if not (folder := self._place()).exists():
                return ()
            text = self._read(self._folder_made(folder) / f"{fingerprint}.receipts")
        except (OSError, AuditUnavailable):
            return ()
        try:
            content = json.loads(text)
            if content["version"] != _VERSION:
                return ()
            results = tuple(ProbeResult.from_json(item) for item in content["results"])
        except (ValueError, KeyError, TypeError, RecursionError):
            return ()
        return results if all(result.fingerprint == fingerprint for result in results) else ()

    def add(self, results: Iterable[ProbeResult]) -> None:
        """Keep these, beside those that are there and still count; a new result replaces an older one.

        Raises:
            AuditUnavailable: they can't be written.
        """
        by_fingerprint: dict[str, list[ProbeResult]] = {}
        for result in results:
            by_fingerprint.setdefault(result.fingerprint, []).append(result)
        for fingerprint, new in by_fingerprint.items():
            path = self._folder_made(self._place()) / f"{fingerprint}.receipts"
            with state.failures(path), self._locked(path):
                kept = Receipts.of(self.load(fingerprint)).updated(new, self._clock())
                results = [result.as_json() for result in (*kept, *kept.overdue.values())]
                content = {"version": _VERSION, "results": results}
                files.replace(path, json.dumps(content, indent=1).encode())
        if by_fingerprint:
            self._tidy()

    def _place(self) -> Path:
        """Where the folder is or would be."""
        if self._folder is not None:
            return self._folder
        return (state.user_state_path() or state.user_state()) / "probes"

    def _folder_made(self, folder: Path) -> Path:
        """The folder, made where it is missing, inside a state directory that is this user's alone."""
        if self._folder is None:
            state.user_state()
        with state.failures(folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder

    def _read(self, path: Path) -> bytes:
        with os.fdopen(files.open_plain(path, os.O_RDONLY), "rb") as file:
            found = os.fstat(file.fileno())
            if sys.platform != "win32" and (found.st_uid != os.geteuid() or found.st_mode & 0o022):
                return b""
            return file.read(_MOST_BYTES)

    @contextlib.contextmanager
    def _locked(self, path: Path) -> Iterator[None]:
        """Keep other processes from reading and writing in between; the lock goes with its holder."""
        with locks.lock_file(path.with_suffix(".lock"), _WAIT_S) as held:
            if not held:
                raise TimeoutError(errno.ETIMEDOUT, "another process keeps it locked", str(path))
            yield

    def _tidy(self) -> None:
        for path in self._place().iterdir():
            with contextlib.suppress(OSError):
                found = path.lstat()
                old = stat.S_ISREG(found.st_mode) and self._clock() - found.st_mtime > 4 * LIFETIME_S
                if old and not (found.st_mtime >= _booted() and b'"leaked"' in self._read(path)):
                    path.unlink()


def _booted() -> float:
    """When this system has started, in seconds since the epoch; 0 where that is not told."""
    if sys.platform != "linux":
        return 0.0
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
