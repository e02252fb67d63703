"""What one sandbox holds of a pool: a slot from the start, a worker from its first run on.

Rules this module keeps:

- the slot and the worker go back exactly once, however the sandbox ends;
- a worker that must not be used again serves no second run of the sandbox either.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from licet.errors import BackendError

from licet_monty.bounds import Bounds
from licet_monty.engine import Engine
from licet_monty.pool import Pool
from licet_monty.prelude import Known
from licet_monty.worker import Worker

_SEED = 32  # bytes


class Lease:
    """One slot of `pool`, which is taken already, and the worker that it entitles to.

    `known` is what the session of that worker has been given.
    """

    def __init__(self, engine: Engine, pool: Pool) -> None:
        self._engine = engine
        self._pool = pool
        self.known = Known()
        self._worker: Worker | None = None
        self._ended = False
        self._guard = threading.Lock()

    def worker(self, bounds: Bounds, draw: Callable[[int], bytes]) -> Worker:
        """Return the worker, checked out now if this is the first run; blocks.

        Its generator starts from random bytes that `draw` gives.

        Raises:
            LaunchFailed: none could be started.
            BackendError: the sandbox was closed, or its worker must not be used again.
        """
        with self._guard:
            if self._worker is None and not self._ended:
                self._worker = self._engine.checkout(self._pool, bounds, draw(_SEED))
            if self._worker is None or self._worker.doomed:
                raise BackendError("this sandbox is spent: it was closed, or a limit ended its last run")
            return self._worker

    def end(self) -> None:
        """Give everything back, on another thread; safe to call twice."""
        if not self._ended:
            self._ended = True
            self._engine.threads.submit(self._give_back)

    def _give_back(self) -> None:
        with self._guard:
            worker, self._worker = self._worker, None
        self._engine.give_back(self._pool, worker)
