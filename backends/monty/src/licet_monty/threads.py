"""Threads that are kept and reused, for work that blocks.

Rules this module keeps:

- a job goes to an idle thread if there is one, else to a new one: a job never waits for another;
  whoever submits jobs bounds their number;
- the threads are daemons, so that a run never delays the interpreter's exit; whoever owns them ends what
  they wait for before that (a thread inside foreign code at the exit would abort the process).
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

T = TypeVar("T")


class Threads:
    """A set of reusable daemon threads that grows as needed."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._idle = 0
        self._guard = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._closed = False

    def submit(self, job: Callable[[], None]) -> None:
        """Run `job`, which raises nothing, on some thread; on this one after `close`."""
        if self._closed:
            job()
            return
        with self._guard:
            is_waiting = self._idle > 0
            if is_waiting:
                self._idle -= 1
        if not is_waiting:
            self._start()
        self._jobs.put(job)

    def call(self, job: Callable[[], T], orphaned: Callable[[], None] = lambda: None) -> asyncio.Future[T]:
        """Run `job` on some thread; return a future of the running loop for its result.

        `orphaned` is called after the job if that loop was closed meanwhile and nobody is left to clean up.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def run() -> None:
            try:
                settle: Callable[[], None] = partial(_succeed, future, job())
            except BaseException as problem:  # handed to whoever awaits
                settle = partial(_fail, future, problem)
            try:
                loop.call_soon_threadsafe(settle)
            except RuntimeError:  # the loop is closed
                orphaned()

        self.submit(run)
        return future

    def close(self, timeout: float) -> bool:
        """End idle threads, and wait up to `timeout` seconds a thread for busy ones; True if all ended."""
        with self._guard:
            self._closed = True
            threads = tuple(self._threads)
        for _ in threads:
            self._jobs.put(None)
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join(timeout)
        return not any(thread.is_alive() for thread in threads)

    def _start(self) -> None:
        thread = threading.Thread(target=self._work, name=self._name, daemon=True)
        with self._guard:
            self._threads.append(thread)
        thread.start()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
            del job
            with self._guard:
                self._idle += 1


def _succeed(future: asyncio.Future[T], result: T) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[T], problem: BaseException) -> None:
    if not future.done():
        future.set_exception(problem)
