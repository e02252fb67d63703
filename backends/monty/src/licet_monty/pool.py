"""Pools of warm workers, one for each tenant and policy class.

Rules this module keeps:

- workers are started on threads that last as long as their pool: the kernel kills a walled worker with the
  thread that started it;
- a worker never serves two tenants, nor two policy classes, and no more than `MOST_CHECKOUTS` runs;
- a pool never has more workers than the machine has processors, and waiting for one is bounded;
- in a process that was forked off a user of Monty none is started, since it would wait for ever;
- at most `MOST_POOLS` pools stay: beyond that, those that were not used for longest are closed when idle.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

from licet.errors import LaunchFailed

from licet_monty.bounds import Bounds
from licet_monty.slots import Slots
from licet_monty.walls import Entrance
from licet_monty.worker import Worker

if TYPE_CHECKING:
    from pydantic_monty import Monty

MOST_POOLS = 8
MOST_CHECKOUTS = 100
QUEUE_S = 300.0
_CHECKOUT_S = 5.0  # never waited for: a slot is held before
_STUCK_S = 0.25  # how long the interpreter may overrun its time limit inside one native operation

Key = tuple[str | None, str, int]
"""Tenant, policy class, and how many tools deep the run is (see `bridge`)."""

_home: int | None = None
"""The process in which Monty was started first: its threads serve no other, and a fork does not copy them."""


class Pool:
    """The workers of one tenant and policy class; they start with the first checkout."""

    def __init__(self, entrance: Entrance, workers: int) -> None:
        self.slots = Slots(workers)
        self.users = 0
        self.monty: Monty | None = None
        self._entrance = entrance
        self._workers = workers
        self._guard = threading.Lock()

    def checkout(self, bounds: Bounds, seed: bytes) -> Worker:
        """Take a worker, its generator started from `seed`; blocks while one starts.

        Raises:
            LaunchFailed: none could be started, or none as it was described.
        """
        self._entrance.check()
        return Worker(self.start(), bounds, seed, self._entrance)

    def close(self) -> None:
        """End all workers; none is checked out any more."""
        with self._guard:
            monty, self.monty = self.monty, None
        if monty is not None:
            monty.__exit__(None, None, None)

    @property
    def started(self) -> bool:
        """Whether there is a warm worker, or was one."""
        return self.monty is not None

    def start(self) -> Monty:
        """Start the first worker, if that has not happened; blocks.

        Raises:
            LaunchFailed: it could not be started.
        """
        with self._guard:
            if self.monty is None:
                self.monty = self._spawn()
            return self.monty

    def _spawn(self) -> Monty:
        global _home
        _home = _home or os.getpid()
        if _home != os.getpid():
            raise LaunchFailed(
                "Monty was used before this process was forked off, and can't be used in it",
                advice="start processes with `spawn` or `forkserver`, or use Monty only after the fork",
            )
        path = self._entrance.path()
        try:
            from pydantic_monty import Monty  # 50 ms: paid by whoever opens a sandbox, by nobody else

            monty = Monty(
                binary_path=path,
                min_processes=1,
                max_processes=self._workers,
                checkout_timeout=_CHECKOUT_S,
                max_checkouts_per_worker=MOST_CHECKOUTS,
                feed_duration_limit_grace=_STUCK_S,
                turn_duration_limit_grace=_STUCK_S,
            )
            return monty.__enter__()
        except (ImportError, RuntimeError, OSError) as problem:
            raise LaunchFailed(
                f"Monty could not be started: {self._entrance.told(problem)}",
                advice="install `licet-monty` anew; it brings the interpreter that it needs",
            ) from None


class Pools:
    """All pools of a process, the one used last at the end."""

    def __init__(self, entrance: Entrance, workers: int | None = None) -> None:
        self._entrance = entrance
        self._workers = workers or os.cpu_count() or 1
        self._pools: OrderedDict[Key, Pool] = OrderedDict()
        self._guard = threading.Lock()

    def enter(self, key: Key) -> Pool:
        """Return the pool of `key`, which stays open until `leave`."""
        with self._guard:
            pool = self._pools.get(key)
            if pool is None:
                pool = self._pools[key] = Pool(self._entrance, self._workers)
            self._pools.move_to_end(key)
            pool.users += 1
            return pool

    def leave(self, pool: Pool) -> list[Pool]:
        """End one use of `pool`; return the pools that the caller has to close now."""
        with self._guard:
            pool.users -= 1
            surplus = len(self._pools) - MOST_POOLS
            idle = [key for key, candidate in self._pools.items() if not candidate.users]
            return [self._pools.pop(key) for key in idle[: max(surplus, 0)]]

    def drain(self) -> list[Pool]:
        """Forget and return all pools."""
        with self._guard:
            pools = list(self._pools.values())
            self._pools.clear()
            return pools
