"""Calling a tool: async ones on this loop, others on a thread, and none for longer than it may take.

Rules this module keeps:

- a tool's coroutine is cancelled and waited for when nobody wants its answer any more; a thread can't be
  stopped, so a call on one is left to itself, and its late answer goes nowhere;
- what became of a call that was not waited for to its end is never called known;
- what a tool raises, whatever it is, is an answer; a Ctrl-C of the user is none.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import os
import threading
from collections.abc import Callable
from typing import Any

from licet.backend import ToolCall
from licet.request import Tool
from licet.threads import Threads

JOIN_S = 3.0
"""How long a cancelled coroutine may take to end, in seconds."""


class Performance:
    """One call of a tool under way; made on the loop that waits for it."""

    def __init__(self, tool: Tool, call: ToolCall, *, is_async: bool | None = None) -> None:
        """Begin. `is_async` is that of the tool, where somebody knows it already."""
        self._tool = tool
        self._call = call
        self._on_thread = False
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self._inner: asyncio.Task[Any] | None = None
        self._wake: Callable[[], None] | None = None
        self._answer: asyncio.Future[Any]
        if tool.is_async if is_async is None else is_async:
            self._answer = self._loop.create_task(self._perform())
        else:
            self._answer = self._loop.create_future()
            self._begin_on_thread()
        self._answer.add_done_callback(_heard)

    @property
    def is_over(self) -> bool:
        """Whether the tool returned or raised, and was not cancelled."""
        return self._answer.done() and not self._answer.cancelled()

    @property
    def is_gone(self) -> bool:
        """Whether nothing of it runs any more."""
        return self._answer.done() and not self._on_thread

    async def wait(self, patience: float | None) -> None:
        """Wait until it is over, at most `patience` seconds; being cancelled leaves it running."""
        if self._answer.done():
            return
        waiter: asyncio.Future[None] = self._loop.create_future()

        def wake(*_: object) -> None:
            if not waiter.done():
                waiter.set_result(None)

        self._answer.add_done_callback(wake)
        self._wake = wake
        timer = self._loop.call_later(patience, wake) if patience is not None else None
        try:
            await waiter
        finally:
            self._wake = None
            self._answer.remove_done_callback(wake)
            if timer is not None:
                timer.cancel()

    async def stop(self) -> None:
        """Cancel it, and wait a little until it is gone, if it can be stopped."""
        (self._inner or self._answer).cancel()
        await self.wait(JOIN_S)

    def result(self) -> Any:
        """What the tool returned.

        Raises:
            BaseException: what the tool raised.
        """
        return self._answer.result()

    async def _perform(self) -> Any:
        try:
            return await _guarded(self._tool.handler(*self._call.args, **self._call.kwargs))
        finally:
            self._wake_early()

    def _begin_on_thread(self) -> None:
        self._on_thread = True

        def work() -> None:
            value: Any = None
            problem: BaseException | None = None
            try:
                value = self._context.run(self._tool.handler, *self._call.args, **self._call.kwargs)
            except (asyncio.CancelledError, KeyboardInterrupt, SystemExit, StopIteration) as stop:
                problem = ToolExit(type(stop).__name__, str(stop))
            except BaseException as raised:
                problem = raised
            self._on_thread = False
            with contextlib.suppress(RuntimeError):  # that loop has ended, and with it whoever waited
                self._loop.call_soon_threadsafe(self._returned, value, problem)

        _threads().submit(work)

    def _returned(self, value: Any, problem: BaseException | None) -> None:
        """Take what came of the call on its thread; on the loop."""
        if self._answer.done():  # nobody waits for it any more
            if inspect.iscoroutine(value):
                value.close()
            return
        if problem is not None:
            self._answer.set_exception(problem)
        elif inspect.isawaitable(value):
            self._inner = self._loop.create_task(_guarded(value), context=self._context.copy())
            self._inner.add_done_callback(self._awaited)
            return
        else:
            self._answer.set_result(value)
        self._wake_early()

    def _awaited(self, inner: asyncio.Task[Any]) -> None:
        if inner.cancelled():
            self._answer.cancel()
        elif (problem := inner.exception()) is not None:
            self._answer.set_exception(problem)
        else:
            self._answer.set_result(inner.result())

    def _wake_early(self) -> None:
        """Wake who waits with the very step that ends the call; a callback would be a turn later."""
        if self._wake is not None:
            self._wake()


class ToolExit(Exception):
    """A tool raised what would end the process, or a coroutine; `kind` is the name of that."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


async def _guarded(answer: Any) -> Any:
    """Await a tool's answer; what would end the loop is turned into an exception like others."""
    try:
        return await answer
    except asyncio.CancelledError as problem:
        if (task := asyncio.current_task()) is None or task.cancelling():
            raise
        raise ToolExit("CancelledError", str(problem) or "the tool was cancelled") from None
    except SystemExit as problem:
        raise ToolExit("SystemExit", str(problem)) from None
    except KeyboardInterrupt as problem:
        if threading.current_thread() is threading.main_thread():
            raise
        raise ToolExit("KeyboardInterrupt", str(problem)) from None


def _heard(task: asyncio.Future[Any]) -> None:
    """Look at what a call raised that nobody waits for, so that nothing complains of it."""
    if not task.cancelled():
        task.exception()


_kept: tuple[int, Threads] | None = None


def _threads() -> Threads:
    """The threads of this process; those of the process that it was forked off are not here."""
    global _kept
    if _kept is None or _kept[0] != os.getpid():
        _kept = (os.getpid(), Threads("licet-tool"))
    return _kept[1]
