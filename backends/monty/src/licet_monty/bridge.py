"""From the thread that drives a run to the event loop that wants it.

Rules this module keeps:

- a coroutine of the host always runs on the caller's loop, in the caller's context (its current span);
- the driver never waits beyond the run's end: `interrupt` wakes it;
- `close` cancels what is still running on the loop and waits for it, so that nothing outlives the run.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import contextvars
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
JOIN_S = 5.0


class Interrupted(Exception):
    """The run ended while the driver waited for the host."""


class Bridge:
    """Runs coroutines on one loop for one other thread; made on the loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._guard = threading.Lock()
        self._waiting: concurrent.futures.Future[Any] | None = None
        self._ended = False

    def ask(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run `make()` on the loop and return its result; called on the driver's thread.

        Raises:
            Interrupted: the run ended first.
        """
        answer: concurrent.futures.Future[T] = concurrent.futures.Future()
        with self._guard:
            if self._ended:
                raise Interrupted
            self._waiting = answer
        try:
            self._loop.call_soon_threadsafe(self._start, make, answer, context=self._context)
        except RuntimeError:  # the loop was closed under the run
            raise Interrupted from None
        try:
            return answer.result()
        except concurrent.futures.CancelledError:
            raise Interrupted from None
        finally:
            with self._guard:
                self._waiting = None

    def interrupt(self) -> None:
        """Wake the driver if it waits, and refuse what it would still ask; from any thread."""
        with self._guard:
            self._ended = True
            if self._waiting is not None:
                self._waiting.cancel()

    async def close(self) -> None:
        """Cancel what is still running and wait for it, at most `JOIN_S` seconds."""
        self.interrupt()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=JOIN_S)

    def _start(
        self, make: Callable[[], Coroutine[Any, Any, T]], answer: concurrent.futures.Future[T]
    ) -> None:
        if answer.done():
            return
        task = self._loop.create_task(make())
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._finish(done, answer))

    def _finish(self, task: asyncio.Task[T], answer: concurrent.futures.Future[T]) -> None:
        self._tasks.discard(task)
        problem = None if task.cancelled() else task.exception()
        with contextlib.suppress(concurrent.futures.InvalidStateError):  # interrupted meanwhile
            if task.cancelled():
                answer.cancel()
            elif problem is not None:
                answer.set_exception(problem)
            else:
                answer.set_result(task.result())
