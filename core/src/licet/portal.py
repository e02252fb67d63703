"""An event loop on a thread of its own, so that code without one can run coroutines.

Rules this module keeps:

- whoever waits is woken, however the loop ends;
- a child that was forked off starts a loop of its own: the thread of its parent's is not there.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")
_CLEAN_UP_S = 30.0


class Portal:
    """Runs coroutines for other threads; the loop starts at first use and ends with `close`."""

    def __init__(self) -> None:
        self._loop: _Loop | None = None
        self._guard = threading.Lock()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run to the end and return the result; an interrupt cancels it and waits for its clean-up."""
        return self._started().run(coroutine)

    def close(self) -> None:
        """Cancel what is still running, stop the loop and join its thread."""
        with self._guard:
            loop, self._loop = self._loop, None
        if loop is not None and loop.pid == os.getpid():
            loop.close()

    def _started(self) -> _Loop:
        with self._guard:
            if self._loop is None or self._loop.pid != os.getpid() or not self._loop.alive:
                self._loop = _Loop()
            return self._loop


class _Loop:
    """One loop and its thread."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._waiting: set[_Call[Any]] = set()
        self._thread = threading.Thread(target=self._serve, name="licet-portal", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether the loop still serves."""
        return self._thread.is_alive()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        call = _Call(coroutine)
        self._waiting.add(call)
        try:
            self._loop.call_soon_threadsafe(call.start, self._loop)
            call.ended.wait()
        except BaseException:
            self._loop.call_soon_threadsafe(call.cancel)
            call.ended.wait(_CLEAN_UP_S)
            raise
        finally:
            self._waiting.discard(call)
        return call.result()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _serve(self) -> None:
        try:
            self._loop.run_forever()
        finally:
            # what was under way is cancelled and heard out, whatever ended the loop
            tasks = asyncio.all_tasks(self._loop)
            for task in tasks:
                task.cancel()
            if tasks:
                self._loop.run_until_complete(asyncio.wait(tasks, timeout=_CLEAN_UP_S))
            for call in tuple(self._waiting):
                call.ended.set()
            self._loop.close()


class _Call(Generic[T]):
    """One coroutine, and who waits for it."""

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self.ended = threading.Event()
        self._coroutine = coroutine
        self._task: asyncio.Task[T] | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._task = loop.create_task(self._coroutine)
        self._task.add_done_callback(lambda _: self.ended.set())

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def result(self) -> T:
        if self._task is None or not self._task.done():
            raise RuntimeError("the event loop behind `run_sync` ended before the run did")
        return self._task.result()
