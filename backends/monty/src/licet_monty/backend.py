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

from licet.backend import Backend, Descriptor, Host, Outcome, Termination
from licet.errors import LaunchFailed
from licet.plan import ExecutionPlan
from licet.request import Action
from licet.supervise.walls import Walls, look
from licet.type_checker import TypeFinding
from licet.writes import walking

from licet_monty import binary as binaries
from licet_monty.bridge import Bridge, depth
from licet_monty.claims import contract
from licet_monty.engine import Engine
from licet_monty.language import LANGUAGE
from licet_monty.lease import Lease
from licet_monty.pool import QUEUE_S, Pool
from licet_monty.walls import Entrance

if TYPE_CHECKING:
    from licet_monty.run import Run

OPENED: tuple[Action, ...] = (
    *(("read",) if walking.CAN_READ else ()),
    *(("write",) if walking.CAN_WRITE else ()),
)
"""What can be opened on this system: files are walked to by descriptors, or not at all."""

_COST_MS = 1.0
_CLOSE_S = 10.0
_DEEPEST = 4


class MontyBackend:
    """Runs code in Monty; `binary` names another interpreter binary, `workers` the most of one pool.

    `walls` are those of the kernel round each worker; all that can stand here if none are named.
    """

    def __init__(
        self, binary: Path | None = None, workers: int | None = None, walls: Walls | None = None
    ) -> None:
        self._binary = binary
        self._workers = workers
        self._walls = look() if walls is None else walls
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
                sandbox_enforcement_contract=contract(binaries.digest(self._binary), self._walls),
                language=LANGUAGE,
                opens=frozenset({"tool", *OPENED}),
                mounts=walking.CAN_READ,
                cost=_COST_MS,
                unavailable=binaries.why_unavailable(self._binary),
                governs=frozenset({"clock", "random"}),
                suspends=True,
                configuration=binaries.state(self._binary),
            )
        return self._descriptor

    async def open(self, plan: ExecutionPlan, host: Host) -> MontySandbox:
        """Make a sandbox for runs like `plan`, on a worker that no other tenant or policy class uses.

        A run that a tool starts has a worker of a pool of its own: its caller holds one while it waits.

        Raises:
            LaunchFailed: no worker could be started, none became free in time, or too many runs of tools are
                under way in each other.
        """
        engine = self._running()
        if depth.get() > _DEEPEST:
            raise LaunchFailed(
                f"this run was started by a tool, {depth.get()} tools deep",
                advice=f"let at most {_DEEPEST} runs start each other by their tools",
            )
        sharing = plan.policy_class if plan.warm else plan.run_id
        pool = engine.pools.enter((plan.tenant, sharing, depth.get()))
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

    async def check_types(self, code: str, stubs: str) -> tuple[TypeFinding, ...]:
        """What the type checker of Monty objects to in `code`, whose surroundings `stubs` declare.

        Raises:
            LaunchFailed: no worker could be started.
            TypesUnchecked: the checker gave up.
        """
        from licet_monty.checker import check  # no run needs it

        engine = self._running()
        checking = engine.threads.call(lambda: check(engine.entrance, code, stubs))
        try:
            return await checking.result()
        finally:
            await asyncio.shield(checking.ended())  # its worker ends with it, and that soon

    async def close(self) -> None:
        """End every pool, worker and thread; a sandbox opened later starts anew."""
        with self._guard:
            engine, self._engine = self._engine, None
        if engine is not None and engine.pid == os.getpid():
            await asyncio.to_thread(engine.close)

    def behind(self) -> Backend:
        """The walls of the kernel round a worker, without the language inside; see `Layered`."""
        from licet_monty.behind import BehindMonty  # for attacks alone

        return BehindMonty(self._binary, self._walls)

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
                entrance = Entrance(self._binary, binaries.digest(self._binary), self._walls)
                self._engine = Engine(entrance, self._workers)
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
            SuspensionVoid: the plan's resumption is no run that was suspended by this; nothing more ran.
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
