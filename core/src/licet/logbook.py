"""Which log a runtime writes to: opened when it is first needed, and opened anew after it has failed.

Rules this module keeps:

- a log that has failed is closed and never written to again; the next run opens it anew;
- a log is given up only by somebody who saw this very log fail;
- what a `best_effort` trail lost is counted in the user's own state directory until a log has recorded it.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Callable
from pathlib import Path

from licet import files
from licet import state as states
from licet.errors import AuditUnavailable
from licet.record import AuditLog, UnavailableLog


class Logbook:
    """The log of one runtime; a `lent` one belongs to whoever lent it, and is never closed here."""

    def __init__(self, open_log: Callable[[], AuditLog], lent: AuditLog | None = None) -> None:
        self._open = open_log
        self._lent = lent
        self._log: AuditLog | None = None
        self._guard = threading.Lock()

    def current(self) -> AuditLog:
        """The log to write to; one that can't be opened fails at its first append."""
        if self._lent is not None:
            return self._lent
        with self._guard:
            if self._log is None:
                try:
                    self._log = self._open()
                except AuditUnavailable as problem:
                    return UnavailableLog(problem)
            return self._log

    async def give_up(self, log: AuditLog) -> None:
        """Close a log that has failed, unless that has happened."""
        with self._guard:
            if self._log is not log:
                return
            self._log = None
        await log.close()

    async def close(self) -> None:
        """Release the log; what was appended stays."""
        with self._guard:
            log, self._log = self._log, None
        if log is not None:
            await log.close()


class Gaps:
    """How many records a `best_effort` trail has lost that no log has recorded yet."""

    def __init__(self, state_path: Path | None = None) -> None:
        """Count for the state directory `state_path`; None counts in memory alone."""
        self._state_path = state_path
        self._missing: int | None = None if state_path else 0
        self._guard = threading.Lock()

    def lost(self, records: int) -> None:
        """Note that so many records are lost; kept on disk as far as there is one that takes it."""
        with self._guard:
            self._missing = self._read() + records
            self._keep(self._missing)

    def recorded(self, records: int) -> None:
        """Note that a log has recorded that so many are lost."""
        with self._guard:
            self._missing = max(self._read() - records, 0)
            self._keep(self._missing)

    @property
    def missing(self) -> int:
        """How many records are lost and not accounted for."""
        with self._guard:
            return self._read()

    def _read(self) -> int:
        if self._missing is None:
            self._missing = 0
            with contextlib.suppress(AuditUnavailable, OSError, ValueError):
                if (file := self._file()).exists():
                    self._missing = int(file.read_text("ascii"))
        return self._missing

    def _keep(self, missing: int) -> None:
        if self._state_path is None:
            return
        # the same disk may be what is full: then the count lives as long as this process
        with contextlib.suppress(AuditUnavailable, OSError):
            file = self._file()
            file.parent.mkdir(mode=0o700, exist_ok=True)
            file.unlink(missing_ok=True) if missing == 0 else files.replace(file, str(missing).encode())

    def _file(self) -> Path:
        name = hashlib.sha256(str(self._state_path).encode("utf-8", "surrogateescape")).hexdigest()[:32]
        return states.user_state() / "gaps" / name
