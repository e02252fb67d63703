"""The runs that are under way on a runtime, in whatever event loops they are.

Rules this module keeps:

- once `end` was called no run begins any more;
- `end` returns when every run has recorded its end, or after `_PATIENCE_S`.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Iterator

from licet.errors import RuntimeClosed

_PATIENCE_S = 30.0


class Running:
    """Counts runs in, and can end them all."""

    def __init__(self) -> None:
        self._tasks: dict[asyncio.Task[object], asyncio.AbstractEventLoop] = {}
        self._closed = False
        self._none_left = threading.Condition()

    @contextlib.contextmanager
    def one(self) -> Iterator[None]:
        """Around one run, on its loop.

        Raises:
            RuntimeClosed: the runtime was closed.
        """
        task = asyncio.current_task()
        assert task is not None
        with self._none_left:
            if self._closed:
                raise RuntimeClosed("this runtime is closed", advice="make another one")
            self._tasks[task] = asyncio.get_running_loop()
        try:
            yield
        finally:
            with self._none_left:
                self._tasks.pop(task, None)
                self._none_left.notify_all()

    async def end(self) -> None:
        """Let no run begin, cancel those under way, and wait until they are recorded."""
        with self._none_left:
            self._closed = True
            tasks = dict(self._tasks)
        for task, loop in tasks.items():
            with contextlib.suppress(RuntimeError):  # that loop is closed, and its tasks are gone
                loop.call_soon_threadsafe(task.cancel)
        if tasks:
            await asyncio.to_thread(self._wait)

    def _wait(self) -> None:
        with self._none_left:
            self._none_left.wait_for(lambda: not self._tasks, _PATIENCE_S)


async def all_done(*endings: Awaitable[object]) -> None:
    """Wait for all of them side by side; only then raise what the first one raised that failed."""
    for outcome in await asyncio.gather(*endings, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome
