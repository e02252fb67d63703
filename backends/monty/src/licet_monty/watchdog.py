"""Deadlines that hold whatever the event loop does.

Rules this module keeps:

- one thread watches all runs of a process; it calls each one's `expire` at its deadline, at most once;
- arming and disarming cost a lock, and wake the thread only for a deadline earlier than all others.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable


class Watchdog:
    """Calls back at deadlines of the monotonic clock; the number of armed ones is small."""

    def __init__(self) -> None:
        self._armed: dict[int, tuple[float, Callable[[], None]]] = {}
        self._next = math.inf
        self._serial = 0
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._ended = False

    def arm(self, deadline: float, expire: Callable[[], None]) -> int:
        """Call `expire`, which returns soon and raises nothing, at `deadline`; return what disarms it."""
        with self._changed:
            self._serial += 1
            self._armed[self._serial] = (deadline, expire)
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="licet-monty-watchdog", daemon=True)
                self._thread.start()
            elif deadline < self._next:
                self._changed.notify()
            return self._serial

    def disarm(self, token: int) -> None:
        """Forget a deadline; harmless if it has passed."""
        with self._changed:
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
        while True:
            with self._changed:
                if self._ended:
                    return
                now = time.monotonic()
                due = [token for token, (deadline, _) in self._armed.items() if deadline <= now]
                expired = [self._armed.pop(token)[1] for token in due]
                if not expired:
                    self._next = min((deadline for deadline, _ in self._armed.values()), default=math.inf)
                    self._changed.wait(None if self._next == math.inf else self._next - now)
            for expire in expired:
                expire()
