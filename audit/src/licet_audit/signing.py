"""The thread that has the checkpoints of a log made.

Rules this module keeps:

- it is a thread of its own, so that appending never waits for a checkpoint;
- where another process has signed the records of this one, it need not; at the end it makes sure itself;
- a checkpoint that fails is told once, as a warning, and fails no append: its records are durable;
- it sleeps until something is due, and keeps no interpreter alive.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from typing import Literal

from licet import telemetry
from licet.errors import AuditUnavailable
from licet.state import StateDirectory

from licet_audit.notes import Head, Note
from licet_audit.schedule import Schedule


class Signing:
    """Makes checkpoints of one log as its `Schedule` says; the thread begins with the first record."""

    def __init__(self, state: StateDirectory) -> None:
        self._state = state
        self._schedule = Schedule(time.monotonic())
        self._guard = threading.Lock()
        self._changed = threading.Condition(self._guard)
        self.thread: threading.Thread | None = None
        self._appended = 0
        self._size = 0
        self._end: Literal["close", "leave"] | None = None
        self._told = False

    def appended(self, records: int, size: int) -> None:
        """Note how many records this writer has made durable, all in all, and how large the log is."""
        new, self._appended, self._size = records - self._appended, records, size
        if not new:
            return
        with self._guard:
            if self._schedule.appended(new, time.monotonic()):
                self._changed.notify()
        if self.thread is None:
            thread = threading.Thread(target=self._work, name="licet-checkpoints", daemon=True)
            try:
                thread.start()
            except RuntimeError as problem:  # no more threads are allowed; the next records try again
                self._tell(problem)
                return
            self.thread = thread

    def finish(self, *, sound: bool) -> None:
        """End the thread; of a log that is `sound`, it makes the last checkpoint before."""
        if self.thread is None:
            if sound and self._appended:
                self._end = "close"
                self._work()  # no thread could be started for it
            return
        with self._guard:
            self._end = "close" if sound else "leave"
            self._changed.notify()
        self.thread.join()

    def _work(self) -> None:
        from licet_audit.checkpointer import Notary

        notary = Notary(self._state)
        with contextlib.suppress(Exception):  # loading takes its time, best while nothing is due
            notary.prepare()
        while (due := self._wait()) is not None:
            covered = notary.covered()
            self._show_unsigned(covered)
            if not due or covered < self._size:
                self._sign(lambda: notary.checkpoint(renew=not due), due)
        if self._end == "close":
            self._show_unsigned(notary.covered())
            self._sign(notary.close, 0)

    def _wait(self) -> int | None:
        """Wait until something is due and return for how many records, 0 for a heartbeat; None at the end."""
        with self._guard:
            while self._end is None and (seconds := self._schedule.wait(time.monotonic())) > 0:
                self._changed.wait(seconds)
            return self._schedule.begin(time.monotonic()) if self._end is None else None

    def _sign(self, sign: Callable[[], Note], due: int) -> None:
        try:
            self._show_unsigned(Head.parse(sign().text).size)
        except Exception as problem:
            with self._guard:
                self._schedule.failed(due)
            self._tell(problem)
        else:
            self._told = False

    def _show_unsigned(self, covered: int) -> None:
        telemetry.show_unsigned(max(self._size - covered, 0))

    def _tell(self, problem: Exception) -> None:
        if self._told:
            return
        self._told = True
        kind = "" if isinstance(problem, AuditUnavailable) else f"{type(problem).__name__}: "
        logging.getLogger("licet").warning("the log gets no checkpoint: %s%s", kind, problem)
