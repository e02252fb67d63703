"""All that one process holds: pools, threads, the watchdog, and the runs under way.

Rules this module keeps:

- an engine belongs to the process that made it; a child that was forked off never touches, nor drops, what it
  inherited: the workers and their pipes are the parent's, and dropping them would wait for ever;
- when the interpreter exits, runs under way are ended and workers stopped first, so that no thread is left
  inside Monty, which would abort the process;
- closing leaves no process and no thread.
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from typing import Protocol

from licet.backend import Termination
from licet.threads import Threads

from licet_monty.bounds import Bounds
from licet_monty.pool import Pool, Pools
from licet_monty.walls import Entrance
from licet_monty.watchdog import Watchdog
from licet_monty.worker import Worker

_JOIN_S = 5.0


class Stoppable(Protocol):
    """A run under way."""

    def stop(self, cause: Termination) -> None:
        """End the run for this cause."""
        ...


class Engine:
    """What the runs of one backend share in one process."""

    def __init__(self, entrance: Entrance, workers: int | None = None) -> None:
        self.pid = os.getpid()
        self.entrance = entrance
        self.pools = Pools(entrance, workers)
        self.threads = Threads("licet-monty")
        self.watchdog = Watchdog()
        self._runs: set[Stoppable] = set()
        self._workers: set[Worker] = set()
        self._guard = threading.Lock()
        _engines.add(self)

    def began(self, run: Stoppable) -> None:
        """Note a run under way."""
        with self._guard:
            self._runs.add(run)

    def ended(self, run: Stoppable) -> None:
        """Note that a run is over."""
        with self._guard:
            self._runs.discard(run)

    def checkout(self, pool: Pool, bounds: Bounds, seed: bytes) -> Worker:
        """Take a worker of `pool`, whose slot is held, its generator started from `seed`; blocks.

        Raises:
            LaunchFailed: none could be started.
        """
        worker = pool.checkout(bounds, seed)
        with self._guard:
            self._workers.add(worker)
        return worker

    def give_back(self, pool: Pool, worker: Worker | None) -> None:
        """Hand a worker and its slot back; blocks a little."""
        try:
            if worker is not None:
                worker.close()
        finally:
            if worker is not None:
                with self._guard:
                    self._workers.discard(worker)
            pool.slots.release()
            self.leave(pool)

    def leave(self, pool: Pool) -> None:
        """End one use of `pool`, and close the pools that are one too many."""
        for surplus in self.pools.leave(pool):
            self.threads.submit(surplus.close)

    def close(self) -> None:
        """End runs, workers and threads; blocks."""
        with self._guard:
            runs = tuple(self._runs)
        for run in runs:
            run.stop(Termination.cancelled)
        self.threads.close(_JOIN_S)
        with self._guard:
            workers = tuple(self._workers)
        for worker in workers:
            worker.kill()
        for pool in self.pools.drain():
            pool.close()
        self.watchdog.close()

    def abandon(self) -> None:
        """In a forked child: keep what was inherited from ever being dropped."""
        inherited = [worker.session for worker in self._workers]
        inherited += [pool.monty for pool in self.pools.drain() if pool.monty is not None]  # type: ignore[misc]
        if inherited:
            import ctypes

            for held in inherited:
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(held))


_engines: weakref.WeakSet[Engine] = weakref.WeakSet()


def _at_exit() -> None:
    for engine in tuple(_engines):
        if engine.pid == os.getpid():
            engine.close()


def _after_fork() -> None:
    for engine in tuple(_engines):
        engine.abandon()


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
