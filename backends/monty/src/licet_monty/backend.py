"""The backend `monty`: sandboxes in which Monty runs code, each on a worker process of a warm pool.

Rules this module keeps:

- describing starts and imports nothing; Monty is imported by whoever opens the first sandbox;
- no event loop and no thread is held between calls: one instance serves any number of loops and threads;
- cancellation at any moment ends the worker, the thread and the tools of the run before it is passed on.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from licet.backend import Descriptor, Host, Outcome, Termination
from licet.errors import LaunchFailed
from licet.plan import ExecutionPlan

from licet_monty import binary as binaries
from licet_monty.bridge import Bridge
from licet_monty.claims import CONTRACT
from licet_monty.engine import Engine
from licet_monty.language import LANGUAGE
from licet_monty.lease import Lease
from licet_monty.pool import QUEUE_S, Pool

if TYPE_CHECKING:
    from licet_monty.run import Run

_COST_MS = 1.0
_CLOSE_S = 10.0


class MontyBackend:
    """Runs code in Monty; `binary` names another interpreter binary, `workers` the most of one pool."""

    def __init__(self, binary: Path | None = None, workers: int | None = None) -> None:
        self._binary = binary
        self._workers = workers
        self._descriptor: Descriptor | None = None
        self._engine: Engine | None = None
        self._guard = threading.Lock()

    def describe(self) -> Descriptor:
        """Describe Monty as it is installed here."""
        if self._descriptor is None:
            self._binary = self._binary or binaries.locate()
            self._descriptor = Descriptor(
                name="monty",
                version=f"{binaries.CLIENT} {binaries.version()}",
                sandbox_enforcement_contract=CONTRACT,
                language=LANGUAGE,
                # No tools yet: pydantic-monty builds their arguments in the host, and a set of shared tuples
                # would hold the interpreter lock there for hours. They open once arguments cross as text.
                opens=frozenset(),
                cost=_COST_MS,
                unavailable=binaries.why_unavailable(self._binary),
                governs=frozenset({"clock", "random"}),
                configuration=binaries.state(self._binary),
            )
        return self._descriptor

    async def open(self, plan: ExecutionPlan, host: Host) -> MontySandbox:
        """Make a sandbox for runs like `plan`, on a worker that no other tenant or policy class uses.

        Raises:
            LaunchFailed: no worker could be started, or none became free in time.
        """
        engine = self._running()
        pool = engine.pools.enter((plan.tenant, plan.policy_class))
        try:
            if not pool.slots.take():
                async with asyncio.timeout(QUEUE_S):
                    await pool.slots.acquire()
        except BaseException as problem:
            engine.leave(pool)
            if isinstance(problem, TimeoutError):
                raise _no_worker() from None
            raise
        sandbox = MontySandbox(engine, pool)
        try:
            if not pool.started:
                await engine.threads.call(pool.start).result()
        except BaseException:
            await sandbox.close()
            raise
        return sandbox

    async def close(self) -> None:
        """End every pool, worker and thread; a sandbox opened later starts anew."""
        with self._guard:
            engine, self._engine = self._engine, None
        if engine is not None and engine.pid == os.getpid():
            await asyncio.to_thread(engine.close)

    def _running(self) -> Engine:
        """The engine of this process; what a fork brought along is another's."""
        unavailable = self.describe().unavailable
        if unavailable is not None or self._binary is None:
            raise LaunchFailed(f"monty can't run here: {unavailable}", advice="install `licet-monty` anew")
        engine = self._engine
        if engine is not None and engine.pid == os.getpid():
            return engine
        with self._guard:
            if self._engine is None or self._engine.pid != os.getpid():
                self._engine = Engine(self._binary, self._workers)
            return self._engine


class MontySandbox:
    """A session of Monty on a worker of its own; names that a run binds stay for the next.

    It holds one slot of its pool; the worker is checked out by the first run, on the thread that drives it.
    """

    def __init__(self, engine: Engine, pool: Pool) -> None:
        self._engine = engine
        self._lease = Lease(engine, pool)

    async def run(self, plan: ExecutionPlan, host: Host) -> Outcome:
        """Run `plan.code`; on cancellation, kill the worker, join thread and tools, and re-raise.

        Raises:
            LaunchFailed: no worker could be started; nothing ran.
            BackendError: the sandbox was closed, or a limit ended its last run.
        """
        from licet_monty.run import Run  # imports Monty

        bridge = Bridge()
        run = Run(plan, host, self._lease, bridge)
        engine = self._engine
        engine.began(run)
        watches = [engine.watchdog.arm(when, check) for when, check in run.deadlines()]
        driving = engine.threads.call(run.drive, orphaned=lambda: self._abandon(run))
        try:
            return await driving.result()
        except asyncio.CancelledError:
            run.stop(Termination.cancelled)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_CLOSE_S):
                    await driving.ended()  # whatever came of it, the cancellation is what counts
            raise
        finally:
            engine.watchdog.disarm(*watches)
            engine.ended(run)
            await bridge.close()

    def _abandon(self, run: Run) -> None:
        """Give back what a run holds whose event loop was closed under it."""
        self._engine.ended(run)
        self._lease.end()

    async def close(self) -> None:
        """Give the worker back, or end it if its run did not end well; safe to call twice.

        A sound worker is handed back behind the caller's back: nobody has to wait for that.
        """
        self._lease.end()


def _no_worker() -> LaunchFailed:
    return LaunchFailed(
        f"no worker of monty became free within {QUEUE_S:.0f} s",
        advice="run fewer pieces of code at once, or give their limits a shorter wall_time",
    )
