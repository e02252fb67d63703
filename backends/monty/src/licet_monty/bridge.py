"""From the thread that drives a run to the event loop that wants it.

Rules this module keeps:

- a coroutine of the host always runs on the caller's loop, in the caller's context (its current span);
- any number may be under way, each under a key; what ends is taken by the driver in the order of ending;
- the driver never waits beyond the run's end: `interrupt` wakes it;
- what runs for a run knows how deep it is: runs of one depth wait for the next one's, never for each other;
- `close` cancels what is still running on the loop and waits for it, so that nothing outlives the run.
"""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
import time
from collections.abc import Callable, Collection, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar, cast

T = TypeVar("T")
JOIN_S = 5.0
_ASKED = -1

depth: contextvars.ContextVar[int] = contextvars.ContextVar("licet_monty_depth", default=0)
"""How many tools deep this code is: a tool may start a run, whose code calls a tool, and so on."""


class Interrupted(Exception):
    """The run ended while the driver waited for the host."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """What came of a coroutine."""

    value: Any = None
    problem: BaseException | None = None


class Bridge:
    """Runs coroutines on one loop for one other thread; made on the loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self._context.run(depth.set, depth.get() + 1)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._arrivals: queue.SimpleQueue[tuple[int, _Answer] | None] = queue.SimpleQueue()
        self._arrived: dict[int, _Answer] = {}
        self._ended = False

    def begin(self, key: int, make: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        """Let `make()` run on the loop; called on the driver's thread, as `first`, `take` and `ask` are.

        Raises:
            Interrupted: the run ended.
        """
        if self._ended:
            raise Interrupted
        try:
            self._loop.call_soon_threadsafe(self._start, key, make, context=self._context)
        except RuntimeError:  # the loop was closed under the run
            raise Interrupted from None

    def first(self, keys: Collection[int], until: float | None = None) -> int | None:
        """Wait for one of `keys` to end, at most `until` on the monotonic clock; return it, None if none did.

        Raises:
            Interrupted: the run ended first.
        """
        while True:
            for key in self._arrived:
                if key in keys:
                    return key
            try:
                left = (
                    None if until is None else min(max(until - time.monotonic(), 0.0), threading.TIMEOUT_MAX)
                )
                arrival = self._arrivals.get(timeout=left)
            except queue.Empty:
                return None
            if arrival is None or self._ended:
                raise Interrupted
            self._arrived[arrival[0]] = arrival[1]

    def take(self, key: int) -> Any:
        """Return the result of what ended under `key`, or raise what it raised.

        Raises:
            Interrupted: the run ended, and this with it.
            RuntimeError: it was cancelled by somebody else.
        """
        answer = self._arrived.pop(key)
        if answer.problem is None:
            return answer.value
        if self._ended:
            raise Interrupted
        raise answer.problem

    def ask(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run `make()` on the loop and return its result.

        Raises:
            Interrupted: the run ended first.
        """
        self.begin(_ASKED, make)
        self.first((_ASKED,))
        return cast("T", self.take(_ASKED))

    def interrupt(self) -> None:
        """Wake the driver if it waits, and refuse what it would still ask; from any thread."""
        self._ended = True
        self._arrivals.put(None)

    async def close(self) -> None:
        """Cancel what is still running and wait for it, at most `JOIN_S` seconds."""
        self.interrupt()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=JOIN_S)

    def _start(self, key: int, make: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        if self._ended:
            return
        self._tasks.add(self._loop.create_task(self._perform(key, make)))

    async def _perform(self, key: int, make: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        """Tell the driver at once; callbacks of the task would cost another turn of the loop."""
        try:
            answer = _Answer(await make())
        except asyncio.CancelledError:
            self._arrivals.put((key, _Answer(problem=RuntimeError("a call of the host was cancelled"))))
            raise
        except BaseException as problem:
            answer = _Answer(problem=problem)
        finally:
            self._tasks.discard(cast("asyncio.Task[Any]", asyncio.current_task()))
        self._arrivals.put((key, answer))
