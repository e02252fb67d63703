"""Runs attacks against backends, each with its twin, and writes what they showed.

Rules this module keeps:

- a plan of the prober is sealed as the runtime's are, and a backend is called by `backend.execute` alone;
- held: the program saw one exact wall, its allowed act worked, no target shows a blow, its twin got through;
- a claim that the kernel stands behind the language holds only if the attack is held by both, each by itself;
- leaked: the goal was reached, whatever the program says; everything else is inconclusive;
- what is inconclusive, and what a busy machine may have let through, is tried again, alone; on a machine that
  does not keep pace, late is no leak; every other leak is final, whatever became of the twin;
- every wait has an end: a backend that ignores its deadline and its cancellation is left behind, and told.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from licet.backend import Backend, Descriptor, Layered
from licet.output import bounded
from licet.probe import apart, bare, direct, traces
from licet.probe.attack import Attack, Proof, Scenario
from licet.probe.fingerprint import fingerprint
from licet.probe.order import Order
from licet.probe.results import ProbeOutcome, ProbeResult, Progress
from licet.probe.scene import Scene
from licet.probe.standing import covers
from licet.probe.targets import Targets
from licet.probe.trial import NOT_RUN, SLACK, Trial, got_through
from licet.request import Action
from licet.requirements import openable

AT_ONCE = 8
BEHIND = "; behind the language "
"""Between what an attack saw in a language, and what it saw behind it."""

_TRIES = {ProbeOutcome.leaked: 2, ProbeOutcome.inconclusive: 3}
_TIMED = {Proof.overstayed, Proof.alive, Proof.flooded}


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
            result = await self.probe(backend, attack)
            progress(result)
            return result

        pairs = list(wanted)
        if any(attack.host_apart for _, attack in pairs):
            await self._scene.thread(self._scene.hosts.start)
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
        """Run one attack against one backend, and again if that leaves a doubt."""
        result, doubtful, tries = None, True, 0
        while result is None or (doubtful and tries < _TRIES[result.outcome]):
            async with self._slot(alone=attack.alone or tries > 0):
                result, doubtful = await self._probe(backend, attack)
            tries += 1
        return result

    async def _probe(self, backend: Backend, attack: Attack) -> tuple[ProbeResult, bool]:
        """Run an attack once; whether a second time might tell another thing, the machine being busy."""
        began = time.monotonic()
        descriptor = backend.describe()
        twin = self._twin(attack)
        told: list[str] = []
        layers = _layers(backend, attack)
        for layer in layers:
            described = layer.describe()
            trial, text = await self._try(layer, described, attack)
            shown = await asyncio.shield(twin)
            outcome, reason = judge(attack, trial, text, described, shown)
            told.append(bounded(trial.observed, 200))
            if outcome is not ProbeOutcome.held:
                break
        if len(layers) == 1 and outcome is ProbeOutcome.held and _unasked(attack, trial, descriptor):
            outcome, reason = ProbeOutcome.inconclusive, "the language refused it; the kernel was never asked"
        result = ProbeResult(
            backend=descriptor.name,
            control=attack.control,
            variant=attack.variant,
            outcome=outcome,
            attempted=attack.goal,
            observed=BEHIND.join(told),
            twin=_tell(shown),
            reason=f"behind the language: {reason}" if len(told) > 1 else reason,
            when=time.time(),
            duration=time.monotonic() - began,
            fingerprint=fingerprint(backend, descriptor),
        )
        certain = replace(trial, pressed=True)
        by_time = outcome is ProbeOutcome.leaked and (
            (trial.pressed and bool(_TIMED & {*attack.proofs}))
            or judge(attack, certain, text, described, shown)[0] is not outcome
        )
        return result, by_time or outcome is ProbeOutcome.inconclusive

    @asynccontextmanager
    async def _slot(self, *, alone: bool) -> AsyncIterator[None]:
        """One of the places for attacks at once; all of them for one that has to be alone."""
        count = self._at_once if alone else 1
        taken = 0
        try:
            async with self._turn:
                while taken < count:
                    await self._slots.acquire()
                    taken += 1
            yield
        finally:
            for _ in range(taken):
                self._slots.release()

    def _twin(self, attack: Attack) -> asyncio.Task[_Twin]:
        """The one run of the twin; another if that has failed: then a busy machine may be to blame."""
        known = self._twins.get(attack.key)
        if known is None or (known.done() and not known.result().got_through):
            known = self._twins[attack.key] = asyncio.create_task(self._try_twin(attack))
        return known

    async def _try_twin(self, attack: Attack) -> _Twin:
        try:
            return await self._run_twin(attack)
        except OSError as problem:  # the host is short of something
            return _Twin(False, str(problem))

    async def _run_twin(self, attack: Attack) -> _Twin:
        async with self._scene.targets() as targets:
            text, program = targets.fill(attack.text), targets.fill(bare.text(attack))
            trial = await self._scene.thread(bare.run, attack, targets, program)
            shown = got_through(attack, trial, text, attack.twin_shows)
            return _Twin(shown and trial.answered, trial.observed)

    async def _try(self, backend: Backend, descriptor: Descriptor, attack: Attack) -> tuple[Trial, str]:
        """Run an attack once, against targets of its own; return its text as well."""
        began = time.monotonic()
        secret = self._scene.hosts.secret if attack.host_apart else None
        try:
            async with self._scene.targets(secret) as targets:
                text = targets.fill(attack.text)
                trial = await self._run(backend, descriptor.opens, attack, targets)
        except OSError as problem:  # the host is short of something
            return Trial(f"not tried: {problem}"), ""
        return replace(trial, pressed=self._scene.pace.lost_since(began)), text

    async def _run(
        self, backend: Backend, opens: frozenset[Action], attack: Attack, targets: Targets
    ) -> Trial:
        order = _order(attack, targets, attack.program(opens), opens)
        if attack.scenario is Scenario.after_prior:
            prior = _order(attack, targets, attack.prior, opens)
            await direct.run(self._scene, backend, attack, prior, targets)
        if attack.host_apart:
            return await self._scene.thread(apart.run, self._scene.hosts, backend, attack, order, targets)
        return await direct.run(self._scene, backend, attack, order, targets)


def _layers(backend: Backend, attack: Attack) -> list[Backend]:
    """What an attack has to be held by: the backend, and what stands behind its language if it claims so."""
    claim = backend.describe().sandbox_enforcement_contract[attack.control]
    if claim.boundary == "kernel" and covers(claim, attack) and isinstance(backend, Layered):
        return [backend, backend.behind()]
    return [backend]


def _unasked(attack: Attack, trial: Trial, descriptor: Descriptor) -> bool:
    """Whether a wall of the kernel is claimed, and only the language was seen."""
    claim = descriptor.sandbox_enforcement_contract[attack.control]
    by_language = trial.observed in attack.inexpressible and trial.observed not in attack.held_by
    return claim.boundary == "kernel" and covers(claim, attack) and by_language


def judge(
    attack: Attack, trial: Trial, text: str, descriptor: Descriptor, twin: _Twin
) -> tuple[ProbeOutcome, str]:
    """Say what a trial showed, and why."""
    if got_through(attack, trial, text, attack.patience + SLACK):
        return ProbeOutcome.leaked, "the attack got through"
    if got_through(attack, replace(trial, pressed=False), text, attack.patience + SLACK):
        return ProbeOutcome.inconclusive, "late, on a machine too busy to tell why"
    if not trial.answered:
        failed = trial.observed.startswith(NOT_RUN)
        return ProbeOutcome.inconclusive, (
            f"it could not be run: {bounded(trial.observed, 200)}"
            if failed
            else "what is allowed did not work either"
        )
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

    def path(text: str) -> str:
        return os.path.normpath(targets.fill(text))

    return Order(
        code=targets.fill(program),
        environment={traces.VARIABLE: targets.token},
        workdir=str(targets.work),
        limits={"wall_time": attack.wall_time, **attack.limits},
        opened=replace(
            opened,
            read=tuple(map(path, opened.read)),
            write=tuple(map(path, opened.write)),
            network=tuple(map(targets.fill, opened.network)),
        ),
    )
