"""An event loop on a thread of its own, so that code without one can run coroutines."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
_CLEAN_UP_S = 30.0


class Portal:
    """Runs coroutines for other threads; the loop starts at first use and ends with `close`."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._guard = threading.Lock()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run to the end and return the result; an interrupt cancels it and waits for its clean-up."""
        loop = self._started()
        tasks: list[asyncio.Task[T]] = []
        done = threading.Event()

        def start() -> None:
            task = loop.create_task(coroutine)
            task.add_done_callback(lambda _: done.set())
            tasks.append(task)

        loop.call_soon_threadsafe(start)
        try:
            done.wait()
        except BaseException:
            loop.call_soon_threadsafe(lambda: tasks[0].cancel())
            done.wait(_CLEAN_UP_S)
            raise
        return tasks[0].result()

    def close(self) -> None:
        """Stop the loop and join its thread."""
        with self._guard:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._guard:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._loop.run_forever, name="licet-portal", daemon=True
                )
                self._thread.start()
            return self._loop
