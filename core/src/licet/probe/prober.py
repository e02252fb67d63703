"""Runs attacks against backends, each with its twin, and writes what they showed.

Rules this module keeps:

- a plan of the prober is sealed as the runtime's are, and a backend is called by `backend.execute` alone;
- held: the program saw one exact wall, its allowed act worked, no target shows a blow, its twin got through;
- leaked: the goal was reached, whatever the program says; everything else is inconclusive, and tried twice;
- every wait has an end: a backend that ignores its deadline and its cancellation is left behind, and told.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from licet.backend import Backend, Descriptor, Outcome, Termination, execute
from licet.output import bounded
from licet.probe import apart, bare, traces
from licet.probe.apart import SLACK
from licet.probe.attack import Attack, Proof, Scenario
from licet.probe.fingerprint import fingerprint
from licet.probe.order import Order
from licet.probe.results import ProbeOutcome, ProbeResult, Progress
from licet.probe.scene import Scene, Targets
from licet.probe.trial import Trial, got_through
from licet.request import Action
from licet.requirements import openable

AT_ONCE = 8
_START_S = 30.0
_LEAVE_S = 2.0
_OUTLIVE_S = 1.0
_SAMPLE_S = 0.01


@dataclass(frozen=True, slots=True)
class _Twin:
    got_through: bool
    observed: str


class Prober:
    """Probes in one scene; the result of a twin serves all backends."""

    def __init__(self, scene: Scene, *, at_once: int = AT_ONCE) -> None:
        self._scene = scene
        self._at_once = at_once
        self._slots = asyncio.Semaphore(at_once)
        self._turn = asyncio.Lock()
        self._twins: dict[tuple[str, str], asyncio.Task[_Twin]] = {}

    async def probe_all(
        self, wanted: Iterable[tuple[Backend, Attack]], progress: Progress = lambda result: None
    ) -> tuple[ProbeResult, ...]:
        """Run several attacks at once; `progress` hears of each result as it comes.

        Those that have to be alone come first, then those that take longest. The results are in the order of
        what was `wanted`.
        """

        async def one(backend: Backend, attack: Attack) -> ProbeResult:
            async with self._slot(attack):
                result = await self.probe(backend, attack)
            progress(result)
            return result

        pairs = list(wanted)
        order = sorted(range(len(pairs)), key=lambda n: (not pairs[n][1].alone, not pairs[n][1].host_apart))
        tasks = {number: asyncio.create_task(one(*pairs[number])) for number in order}
        try:
            await asyncio.gather(*tasks.values())
            return tuple(tasks[number].result() for number in range(len(pairs)))
        finally:
            running = [*tasks.values(), *self._twins.values()]
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def probe(self, backend: Backend, attack: Attack) -> ProbeResult:
        """Run one attack against one backend.

        A second time if the first decides nothing, or if a wall was seen, but late: the machine may be busy.
        """
        began = time.monotonic()
        descriptor = backend.describe()
        twin = self._twin(attack)
        for last in (False, True):
            trial, text = await self._try(backend, descriptor, attack)
            outcome, reason = judge(attack, trial, text, descriptor, await asyncio.shield(twin))
            leaked = outcome is ProbeOutcome.leaked
            late = leaked and Proof.overstayed in attack.proofs and attack.holds(trial.observed, descriptor)
            if last or not (late or outcome is ProbeOutcome.inconclusive):
                break
        return ProbeResult(
            backend=descriptor.name,
            control=attack.control,
            variant=attack.variant,
            outcome=outcome,
            attempted=attack.goal,
            observed=bounded(trial.observed, 200),
            twin=_tell(twin.result()),
            reason=reason,
            when=time.time(),
            duration=time.monotonic() - began,
            fingerprint=fingerprint(descriptor),
        )

    @asynccontextmanager
    async def _slot(self, attack: Attack) -> AsyncIterator[None]:
        """One of the places for attacks at once; all of them for one that has to be alone."""
        count = self._at_once if attack.alone else 1
        async with self._turn:
            for _ in range(count):
                await self._slots.acquire()
        try:
            yield
        finally:
            for _ in range(count):
                self._slots.release()

    def _twin(self, attack: Attack) -> asyncio.Task[_Twin]:
        if attack.key not in self._twins:
            self._twins[attack.key] = asyncio.create_task(self._try_twin(attack))
        return self._twins[attack.key]

    async def _try_twin(self, attack: Attack) -> _Twin:
        """Run the twin, a second time if it fails: then a busy machine may be to blame."""
        twin = _Twin(False, "")
        for _ in range(2):
            try:
                twin = await self._run_twin(attack)
            except OSError as problem:  # the host is short of something
                twin = _Twin(False, str(problem))
            if twin.got_through:
                break
        return twin

    async def _run_twin(self, attack: Attack) -> _Twin:
        async with self._scene.targets() as targets:
            text, program = targets.fill(attack.text), targets.fill(bare.text(attack))
            trial = await self._scene.thread(bare.run, attack, targets, program)
            shown = got_through(attack, trial, text, attack.twin_shows)
            return _Twin(shown and trial.answered, trial.observed)

    async def _try(self, backend: Backend, descriptor: Descriptor, attack: Attack) -> tuple[Trial, str]:
        """Run an attack once, against targets of its own; return its text as well."""
        try:
            async with self._scene.targets() as targets:
                text = targets.fill(attack.text)
                return await self._run(backend, descriptor.opens, attack, targets), text
        except OSError as problem:  # the host is short of something
            return Trial(f"not tried: {problem}"), ""

    async def _run(
        self, backend: Backend, opens: frozenset[Action], attack: Attack, targets: Targets
    ) -> Trial:
        order = _order(attack, targets, attack.program(opens), opens)
        if attack.scenario is Scenario.after_prior:
            prior = _order(attack, targets, attack.prior, opens)
            await _Here(self._scene, backend, attack, prior, targets).trial()
        if attack.host_apart:
            return await self._scene.thread(apart.run, backend, attack, order, targets)
        return await _Here(self._scene, backend, attack, order, targets).trial()


def judge(
    attack: Attack, trial: Trial, text: str, descriptor: Descriptor, twin: _Twin
) -> tuple[ProbeOutcome, str]:
    """Say what a trial showed, and why."""
    if got_through(attack, trial, text, attack.patience + SLACK):
        return ProbeOutcome.leaked, "the attack got through"
    if not trial.answered:
        return ProbeOutcome.inconclusive, "what is allowed did not work either"
    if not attack.holds(trial.observed, descriptor):
        return ProbeOutcome.inconclusive, "none of the exact signs of a wall was seen"
    if Proof.alive in attack.proofs and trial.ready and not trial.sighted:
        return ProbeOutcome.inconclusive, "this host can't see the processes of the run"
    if not twin.got_through:
        return ProbeOutcome.inconclusive, "the attack fails without walls too"
    return ProbeOutcome.held, "an exact sign of a wall was seen, and what is allowed worked"


def _tell(twin: _Twin) -> str:
    return "got through" if twin.got_through else f"failed: {bounded(twin.observed, 200)}"


def _order(attack: Attack, targets: Targets, program: str, opens: frozenset[Action]) -> Order:
    opened = openable(attack.opens, opens)
    return Order(
        code=targets.fill(program),
        environment={traces.VARIABLE: targets.token},
        workdir=str(targets.work),
        limits={"wall_time": attack.wall_time, **attack.limits},
        opened=replace(
            opened,
            read=tuple(map(targets.fill, opened.read)),
            write=tuple(map(targets.fill, opened.write)),
            network=tuple(map(targets.fill, opened.network)),
        ),
    )


class _Here:
    """One run of an attack whose host is this process."""

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
        self._sighted = False
        self._growth = 0
        self._ear = targets.ear(
            opened=order.opened,
            output=attack.limits.get("output", 1 << 20),
            on_first=lambda: self._signal(self._heard),
            on_ready=self._on_ready,
        )

    async def trial(self) -> Trial:
        """Run it to its end, or leave it behind when its time is up."""
        plan = self._order.plan(self._backend.describe())
        sampling = asyncio.create_task(self._sample(traces.resident())) if self._attack.alone else None
        run = asyncio.create_task(execute(self._backend, plan, self._ear))
        try:
            began = await self._begin(run)
            patience = max(self._attack.patience, self._attack.wall_time) + SLACK + 0.5
            await asyncio.wait([run], timeout=patience)
            took = time.monotonic() - began
        finally:
            run.cancel()
            await asyncio.wait([run], timeout=_LEAVE_S)
            if sampling is not None:
                sampling.cancel()
        alive = Proof.alive in self._attack.proofs and await self._scene.thread(
            traces.outlived, self._targets.token, _OUTLIVE_S
        )
        return Trial(
            observed=self._ear.observed(_ended(run)),
            answered=self._ear.answered,
            output=self._ear.output,
            took=took,
            delivered=self._ear.delivered,
            growth=self._growth,
            ready=self._ear.ready,
            alive=alive,
            sighted=self._sighted,
            struck=self._targets.struck(),
        )

    async def _begin(self, run: asyncio.Task[Outcome]) -> float:
        """Wait for the program; return since when its time runs: since it was heard, or cancelled."""
        cancelled = self._attack.scenario is Scenario.cancelled
        event = self._ready if cancelled else self._heard
        waiting = asyncio.create_task(event.wait())
        await asyncio.wait([run, waiting], timeout=_START_S, return_when=asyncio.FIRST_COMPLETED)
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
        return f"raised {type(problem).__name__}: {problem}"
    outcome = run.result()
    if outcome.exit_code is None:
        return outcome.termination.value
    return f"{outcome.termination.value} {outcome.exit_code}"
