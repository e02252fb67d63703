"""From the thread of a run to the event loop of its caller, and back.

Rules this module keeps:

- what a run asks for happens on the caller's loop, in the caller's context (its current span);
- any number may be under way; what comes of each is told in the run's own thread, in the order of ending;
- the run waits for its descriptors, and this is one of them: nothing here blocks it;
- nothing outlives the run: what is still under way is cancelled and waited for, and a result that comes too
  late is given to whoever releases it.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, TypeVar

T = TypeVar("T")

JOIN_S = 5.0
"""How many seconds what is cancelled has to be gone."""


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """What came of a coroutine: what it raised, or else its value."""

    value: T | None = None
    problem: BaseException | None = None


def _let_be(value: Any) -> None:
    """Nothing has to be released."""


class Courier:
    """Serves one run; made on the loop, closed there after the run."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self._tasks: set[asyncio.Task[None]] = set()
        self._arrived: deque[tuple[Callable[[Answer[Any]], object], Callable[[Any], object], Answer[Any]]]
        self._arrived = deque()
        self._ended = False
        self._reader, self._writer = os.pipe()
        for end in (self._reader, self._writer):
            os.set_blocking(end, False)

    def __enter__(self) -> Courier:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()
        self._release()
        for end in (self._reader, self._writer):
            os.close(end)

    def fileno(self) -> int:
        """The descriptor that is readable once there is something to `deliver`."""
        return self._reader

    def ask(
        self,
        make: Callable[[], Coroutine[Any, Any, T]],
        then: Callable[[Answer[T]], object],
        unwanted: Callable[[T], object] = _let_be,
    ) -> None:
        """Let `make()` run on the loop, and `then` get what comes of it; called in the thread of the run.

        A value that comes when the run has ended is given to `unwanted` instead, on the loop.
        """
        try:
            self._loop.call_soon_threadsafe(self._start, make, then, unwanted, context=self._context)
        except RuntimeError as problem:  # the loop was closed under the run
            self._arrive(then, unwanted, Answer(problem=problem))

    def deliver(self) -> None:
        """Tell what has come; called in the thread of the run."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._reader, 1 << 16)
        while self._arrived:
            then, _, answer = self._arrived.popleft()
            then(answer)

    async def end(self) -> None:
        """Cancel what is under way and wait for it, at most `JOIN_S` seconds; the run's thread has ended."""
        self._end()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=JOIN_S)

    def _end(self) -> None:
        self._ended = True
        if not self._loop.is_closed():
            for task in self._tasks:
                task.cancel()

    def _release(self) -> None:
        while self._arrived:
            _, unwanted, answer = self._arrived.popleft()
            if answer.problem is None:
                unwanted(answer.value)

    def _start(
        self,
        make: Callable[[], Coroutine[Any, Any, T]],
        then: Callable[[Answer[T]], object],
        unwanted: Callable[[T], object],
    ) -> None:
        if not self._ended:
            task = self._loop.create_task(self._perform(make, then, unwanted))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _perform(
        self,
        make: Callable[[], Coroutine[Any, Any, T]],
        then: Callable[[Answer[T]], object],
        unwanted: Callable[[T], object],
    ) -> None:
        """Tell the run at once; callbacks of the task would cost another turn of the loop."""
        answer: Answer[T]
        try:
            answer = Answer(await make())
        except asyncio.CancelledError:
            self._arrive(then, unwanted, Answer(problem=RuntimeError("what the run asked for was cancelled")))
            raise
        except BaseException as problem:
            answer = Answer(problem=problem)
        self._arrive(then, unwanted, answer)

    def _arrive(
        self, then: Callable[[Answer[T]], object], unwanted: Callable[[T], object], answer: Answer[T]
    ) -> None:
        self._arrived.append((then, unwanted, answer))
        if self._ended:
            self._release()
            return
        with contextlib.suppress(BlockingIOError):  # it is readable already
            os.write(self._writer, b"\0")
