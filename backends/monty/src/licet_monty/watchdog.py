"""Deadlines that hold whatever the event loop does.

Rules this module keeps:

- one thread watches all runs of a process, and calls back at each deadline that is armed;
- arming and disarming cost a lock, and wake the thread only for a deadline earlier than all others.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

Check = Callable[[], float | None]
"""Called at a deadline; returns the next one, or None. It returns soon and raises nothing."""


class Watchdog:
    """Calls back at deadlines of the monotonic clock; the number of armed ones is small."""

    def __init__(self) -> None:
        self._armed: dict[int, tuple[float, Check]] = {}
        self._next = math.inf
        self._serial = 0
        self._guard = threading.Lock()
        self._changed = threading.Condition(self._guard)
        self._thread: threading.Thread | None = None
        self._ended = False

    def arm(self, deadline: float, check: Check) -> int:
        """Call `check` at `deadline`; return what disarms it."""
        with self._guard:
            self._serial += 1
            self._armed[self._serial] = (deadline, check)
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="licet-monty-watchdog", daemon=True)
                self._thread.start()
            elif deadline < self._next:
                self._changed.notify()
            return self._serial

    def disarm(self, *tokens: int) -> None:
        """Forget deadlines; harmless if they have passed."""
        with self._guard:
            for token in tokens:
                self._armed.pop(token, None)

    def close(self) -> None:
        """End the thread; no deadline is armed any more."""
        with self._changed:
            self._ended = True
            self._changed.notify()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _watch(self) -> None:
        while not self._ended:
            for token, check in self._due():
                again = check()
                with self._guard:
                    if again is not None and token in self._armed:
                        self._armed[token] = (again, check)
                    else:
                        self._armed.pop(token, None)

    def _due(self) -> list[tuple[int, Check]]:
        """Return what is due; if nothing is, wait until something may be."""
        with self._changed:
            now = time.monotonic()
            due = [(token, check) for token, (deadline, check) in self._armed.items() if deadline <= now]
            if not due and not self._ended:
                self._next = min((deadline for deadline, _ in self._armed.values()), default=math.inf)
                self._changed.wait(None if self._next == math.inf else self._next - now)
            return due
