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
from typing import Generic, TypeVar, cast

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

    def call(self, work: Callable[[], T], orphaned: Callable[[], None] = lambda: None) -> Job[T]:
        """Do `work` on some thread; return the job, whose result is awaited on the running loop.

        `orphaned` is called after the work if that loop was closed meanwhile and nobody is left to clean up.
        """
        job = Job(work, orphaned)
        self.submit(job.run)
        return job

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


class Job(Generic[T]):
    """Work on another thread that somebody on the loop where it was made waits for."""

    def __init__(self, work: Callable[[], T], orphaned: Callable[[], None]) -> None:
        self._work = work
        self._orphaned = orphaned
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[None] | None = None
        self._value: T | None = None
        self._problem: BaseException | None = None
        self._ended = False

    def run(self) -> None:
        """Do the work, and tell the loop."""
        try:
            self._value = self._work()
        except BaseException as problem:  # handed to whoever awaits
            self._problem = problem
        try:
            self._loop.call_soon_threadsafe(self._tell)
        except RuntimeError:  # the loop is closed
            self._orphaned()

    def _tell(self) -> None:
        self._ended = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def ended(self) -> None:
        """Wait for the end, whatever came of it; the wait can be cancelled and repeated."""
        if not self._ended:
            self._waiter = self._loop.create_future()
            await self._waiter

    async def result(self) -> T:
        """Wait for the end and return, or raise, what came of it."""
        await self.ended()
        if self._problem is not None:
            raise self._problem
        return cast("T", self._value)
