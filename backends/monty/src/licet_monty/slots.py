"""A bound on how many may hold a worker at once, for waiters on any number of event loops.

Rules this module keeps:

- first come, first served; nobody overtakes a waiter;
- a waiter that gives up, or is cancelled, loses nothing for the others.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections import deque


class Slots:
    """`count` slots; `acquire` waits without holding a thread."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._waiting: deque[concurrent.futures.Future[None]] = deque()
        self._guard = threading.Lock()

    def take(self) -> bool:
        """Take a slot if one is free and nobody waits for it."""
        with self._guard:
            if not self._free or self._waiting:
                return False
            self._free -= 1
            return True

    async def acquire(self) -> None:
        """Take a slot; waits as long as the caller lets it."""
        with self._guard:
            if self._free and not self._waiting:
                self._free -= 1
                return
            ticket: concurrent.futures.Future[None] = concurrent.futures.Future()
            self._waiting.append(ticket)
        try:
            await asyncio.wrap_future(ticket)
        except BaseException:
            if not ticket.cancel() and not ticket.cancelled():
                self.release()  # it was granted in the very moment of giving up
            raise

    def release(self) -> None:
        """Give a slot back, to the first who still waits; from any thread."""
        with self._guard:
            while self._waiting:
                ticket = self._waiting.popleft()
                if ticket.set_running_or_notify_cancel():
                    ticket.set_result(None)
                    return
            self._free += 1
