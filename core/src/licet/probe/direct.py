"""One run of an attack whose host is this process.

Rules this module keeps: a run that is not over when its time is up is cancelled, then left behind; how long
it took is measured where it ends, and not where that is noticed.
"""

from __future__ import annotations

import asyncio
import contextlib
import time

from licet.backend import Backend, Outcome, Termination, execute
from licet.probe import traces
from licet.probe.attack import Attack, Proof, Scenario
from licet.probe.order import Order
from licet.probe.scene import Scene
from licet.probe.targets import Targets
from licet.probe.trial import LEAVE_AFTER_S, OUTLIVE_S, START_S, Trial, ending, raised

_LEAVE_S = 2.0
_SAMPLE_S = 0.01


async def run(scene: Scene, backend: Backend, attack: Attack, order: Order, targets: Targets) -> Trial:
    """Run it to its end, or leave it behind when its time is up."""
    return await _Run(scene, backend, attack, order, targets).trial()


class _Run:
    def __init__(
        self, scene: Scene, backend: Backend, attack: Attack, order: Order, targets: Targets
    ) -> None:
        self._scene = scene
        self._backend = backend
        self._attack = attack
        self._order = order
        self._targets = targets
        self._loop = asyncio.get_running_loop()
        self._heard = asyncio.Event()
        self._ready = asyncio.Event()
        self._ended_at: float | None = None
        self._sighted = False
        self._growth = 0
        self._ear = targets.ear(
            opened=order.opened,
            output=attack.limits.get("output", 1 << 20),
            on_first=lambda: self._signal(self._heard),
            on_ready=self._on_ready,
        )

    async def trial(self) -> Trial:
        sampling = asyncio.create_task(self._sample(traces.resident())) if self._attack.alone else None
        run = asyncio.create_task(self._execute())
        try:
            began = await self._begin(run)
            await asyncio.wait(
                [run], timeout=max(self._attack.patience, self._attack.wall_time) + LEAVE_AFTER_S
            )
            took = (self._ended_at or time.monotonic()) - began
        finally:
            run.cancel()
            await asyncio.wait([run], timeout=_LEAVE_S)
            if sampling is not None:
                sampling.cancel()
        await asyncio.sleep(self._attack.aftermath)
        alive = Proof.alive in self._attack.proofs and await self._scene.thread(
            traces.outlived, self._targets.token, OUTLIVE_S
        )
        return await self._scene.thread(
            self._ear.trial,
            self._attack,
            self._targets.struck,
            _ended(run),
            took=took,
            growth=self._growth,
            alive=alive,
            sighted=self._sighted,
        )

    async def _execute(self) -> Outcome:
        try:
            return await execute(self._backend, self._order.plan(self._backend.describe()), self._ear)
        finally:
            self._ended_at = time.monotonic()

    async def _begin(self, run: asyncio.Task[Outcome]) -> float:
        """Wait for the program; return since when its time runs: since it was heard, or cancelled."""
        cancelled = self._attack.scenario is Scenario.cancelled
        event = self._ready if cancelled else self._heard
        waiting = asyncio.create_task(event.wait())
        await asyncio.wait([run, waiting], timeout=START_S, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if not cancelled or not self._ready.is_set():
            return self._ear.began or time.monotonic()
        run.cancel()
        return time.monotonic()

    def _on_ready(self) -> None:
        if Proof.alive in self._attack.proofs:
            self._sighted = bool(traces.living(self._targets.token))
        self._signal(self._ready)

    def _signal(self, event: asyncio.Event) -> None:
        """Set an event of the loop from whatever thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: the run was left behind
            self._loop.call_soon_threadsafe(event.set)

    async def _sample(self, start: int) -> None:
        """Watch by how much the memory of this process grows."""
        while True:
            self._growth = max(self._growth, traces.resident() - start)
            await asyncio.sleep(_SAMPLE_S)


def _ended(run: asyncio.Task[Outcome]) -> str:
    if not run.done():
        return "left behind"
    if run.cancelled():
        return Termination.cancelled.value
    problem = run.exception()
    if problem is not None:
        return raised(problem)
    return ending(run.result())
