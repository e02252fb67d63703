"""Bounds on how long the steps of one task may take, with one timer for all of them.

Rules this module keeps:

- a step that takes too long is cancelled as `asyncio.timeout` would, and a cancellation by somebody else
  is passed on as such;
- the timer looks where the task is by then, and is not set anew for each step; so a step costs next to
  nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


class Overdue(Exception):
    """A step took too long, and was cancelled."""


class Deadlines:
    """Those of the current task; `close` it at the end. The timer looks every `pace` seconds, or earlier."""

    def __init__(self, pace: float) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._loop = asyncio.get_running_loop()
        self._pace = pace
        self._until = float("inf")
        self._expired = False
        self._timer = self._loop.call_later(pace, self._look)

    async def within(self, seconds: float, step: Awaitable[T]) -> T:
        """Wait for `step`, at most `seconds`.

        Raises:
            Overdue: it took longer.
        """
        others = self._task.cancelling()
        self._until = self._loop.time() + seconds
        if self._until < self._timer.when():
            self._timer.cancel()
            self._timer = self._loop.call_at(self._until, self._look)
        try:
            return await step
        except asyncio.CancelledError:
            if self._expired:
                self._expired = False
                if self._task.uncancel() <= others:
                    raise Overdue from None
            raise
        finally:
            self._until = float("inf")
            if self._expired:
                self._expired = False
                self._task.uncancel()

    def close(self) -> None:
        """Watch no more."""
        self._timer.cancel()

    def _look(self) -> None:
        left = self._until - self._loop.time()
        if left <= 0:
            self._expired, left = True, self._pace
            self._until = float("inf")
            self._task.cancel()
        self._timer = self._loop.call_later(min(left, self._pace), self._look)
