"""Calling a tool: async ones on this loop, others on a thread, and none for longer than it may take.

Rules this module keeps:

- a tool's coroutine is cancelled and waited for when nobody wants its answer any more; a thread can't be
  stopped, so a call on one is left to itself, and its late answer goes nowhere;
- what became of a call that was not waited for to its end is never called known;
- what a tool raises, whatever it is, is an answer; a Ctrl-C of the user is none.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import os
import threading
from typing import Any

from licet.backend import ToolCall
from licet.request import Tool
from licet.threads import Threads

JOIN_S = 3.0
"""How long a cancelled coroutine may take to end, in seconds."""


class Performance:
    """One call of a tool under way; made on the loop that waits for it."""

    def __init__(self, tool: Tool, call: ToolCall) -> None:
        self._tool = tool
        self._call = call
        self._on_thread = False
        self._task = asyncio.get_running_loop().create_task(self._perform())
        self._task.add_done_callback(_heard)

    @property
    def is_over(self) -> bool:
        """Whether the tool returned or raised, and was not cancelled."""
        return self._task.done() and not self._task.cancelled()

    @property
    def is_gone(self) -> bool:
        """Whether nothing of it runs any more."""
        return self._task.done() and not self._on_thread

    async def wait(self, patience: float | None) -> None:
        """Wait until it is over, at most `patience` seconds; being cancelled leaves it running."""
        await asyncio.wait((self._task,), timeout=patience)

    async def stop(self) -> None:
        """Cancel it, and wait a little until it is gone, if it can be stopped."""
        self._task.cancel()
        await asyncio.wait((self._task,), timeout=JOIN_S)

    def result(self) -> Any:
        """What the tool returned.

        Raises:
            BaseException: what the tool raised.
        """
        return self._task.result()

    async def _perform(self) -> Any:
        handler, call = self._tool.handler, self._call
        if self._tool.is_async:
            return await _guarded(handler(*call.args, **call.kwargs))
        value = await self._off_loop()
        return await _guarded(value) if inspect.isawaitable(value) else value

    async def _off_loop(self) -> Any:
        context, call = contextvars.copy_context(), self._call
        self._on_thread = True

        def work() -> Any:
            try:
                return context.run(self._tool.handler, *call.args, **call.kwargs)
            except (asyncio.CancelledError, KeyboardInterrupt, SystemExit, StopIteration) as problem:
                raise ToolExit(type(problem).__name__, str(problem)) from None
            finally:
                self._on_thread = False

        return await _threads().call(work).result()


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


def _heard(task: asyncio.Task[Any]) -> None:
    """Look at what a task raised that nobody waits for, so that nothing complains of it."""
    if not task.cancelled():
        task.exception()


_kept: tuple[int, Threads] | None = None


def _threads() -> Threads:
    """The threads of this process; those of the process that it was forked off are not here."""
    global _kept
    if _kept is None or _kept[0] != os.getpid():
        _kept = (os.getpid(), Threads("licet-tool"))
    return _kept[1]
