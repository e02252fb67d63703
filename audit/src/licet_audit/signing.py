"""The thread that has the checkpoints of a log made.

Rules this module keeps:

- it is a thread of its own, so that appending never waits for a checkpoint;
- a checkpoint that fails is told once, as a warning, and fails no append: its records are durable;
- it sleeps until something is due, and keeps no interpreter alive.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from typing import TYPE_CHECKING

from licet.errors import AuditUnavailable
from licet.state import StateDirectory

from licet_audit.schedule import Schedule

if TYPE_CHECKING:
    from licet_audit.checkpointer import Notary


class Signing:
    """Makes checkpoints of one log as its `Schedule` says; the thread begins with the first record."""

    def __init__(self, state: StateDirectory) -> None:
        self._state = state
        self._schedule = Schedule(time.monotonic())
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._appended = 0
        self._ending = False
        self._notary: Notary | None = None
        self._told = False

    def appended(self, records: int) -> None:
        """Note that this writer has made so many records durable, all in all."""
        new, self._appended = records - self._appended, records
        if not new:
            return
        with self._changed:
            if self._schedule.appended(new, time.monotonic()):
                self._changed.notify()
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="licet-checkpoints", daemon=True)
            self._thread.start()

    def finish(self) -> None:
        """Have the rest signed, and end the thread."""
        if self._thread is None:
            return
        with self._changed:
            self._ending = True
            self._changed.notify()
        self._thread.join()

    def _work(self) -> None:
        with contextlib.suppress(Exception):  # imports take their time, best while nothing is due
            self._make_notary()
        ending = False
        while not ending:
            with self._changed:
                while not self._ending and (wait := self._schedule.wait(time.monotonic())) > 0:
                    self._changed.wait(wait)
                ending = self._ending
                due = self._schedule.begin(time.monotonic())
            if due or not ending:
                self._sign(due)

    def _sign(self, due: int) -> None:
        try:
            self._make_notary().checkpoint(renew=not due)
        except Exception as problem:
            with self._changed:
                self._schedule.failed(due)
            self._tell(problem)
        else:
            self._told = False

    def _make_notary(self) -> Notary:
        if self._notary is None:
            from licet_audit.checkpointer import Notary

            self._notary = Notary(self._state)
        return self._notary

    def _tell(self, problem: Exception) -> None:
        if self._told:
            return
        self._told = True
        kind = "" if isinstance(problem, AuditUnavailable) else f"{type(problem).__name__}: "
        logging.getLogger("licet").warning("the log gets no checkpoint: %s%s", kind, problem)
