"""What the claims of backends are worth on this host: receipts applied to contracts.

Rules this module keeps:

- `attest` and `missing` are pure: a claim rises to `probed` by receipts alone, and never rises in level;
- a claim that an attack refuted becomes `not_enforced`, with the attack and its date as its gap;
- `Attestor.ensure` makes what is missing, once a process, and keeps it; whoever else needs the same waits for
  it instead of attacking a second time.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import lru_cache

from licet.backend import Backend, Descriptor
from licet.contract import Control, Enforcement, Evidence, Level, SandboxEnforcementContract
from licet.errors import AuditUnavailable
from licet.probe.attack import Attack
from licet.probe.attacks import here
from licet.probe.fingerprint import fingerprint
from licet.probe.results import LIFETIME_S, NO_RECEIPTS, ProbeResult, Progress, Receipts
from licet.probe.standing import Standing, claims, covers, standing
from licet.probe.store import ReceiptStore


@lru_cache(maxsize=256)
def attest(
    descriptor: Descriptor, receipts: Receipts, attacks: tuple[Attack, ...] | None = None
) -> Descriptor:
    """`descriptor` with each claim as strong as its receipts; the same object for the same arguments.

    A claim whose attacks all held gets evidence `probed`. One that was refuted becomes `not_enforced`. What
    was inconclusive stays `declared`, and its gap says so; what was never tried stays as it is.
    """
    contract = descriptor.sandbox_enforcement_contract
    chosen = here() if attacks is None else attacks
    weighed = {
        control.value: _weigh(standing(descriptor, control, on_one, receipts))
        for control, on_one in ((c, [a for a in chosen if a.control is c]) for c in Control)
    }
    if all(contract[Control(name)] is claim for name, claim in weighed.items()):
        return descriptor
    return replace(descriptor, sandbox_enforcement_contract=SandboxEnforcementContract(**weighed))


def _weigh(known: Standing) -> Enforcement:
    claim = known.claim
    if not claims(claim):
        return claim
    if known.leaked:
        told = tuple(f"refuted here: {_told(result)}" for result in known.leaked)
        return replace(claim, level=Level.not_enforced, gaps=(*claim.gaps, *told))
    if known.inconclusive:
        told = tuple(f"not proved here: {_told(result)}: {result.reason}" for result in known.inconclusive)
        return replace(claim, gaps=(*claim.gaps, *told))
    if known.proved:
        return replace(claim, evidence=Evidence.probed)
    return claim


def _told(result: ProbeResult) -> str:
    return f"attack `{result.variant}` on {result.date}"


def missing(
    descriptor: Descriptor,
    controls: Iterable[Control],
    receipts: Receipts,
    attacks: tuple[Attack, ...] | None = None,
) -> tuple[Attack, ...]:
    """The quick attacks on claims to `controls` that have no receipt yet."""
    contract, wanted = descriptor.sandbox_enforcement_contract, set(controls)
    return tuple(
        attack
        for attack in (here() if attacks is None else attacks)
        if attack.quick
        and attack.control in wanted
        and covers(contract[attack.control], attack)
        and receipts.get(descriptor.name, attack.control, attack.variant) is None
    )


class Attestor:
    """The receipts of one process, and what it takes to make those that are missing; for any loop and thread.

    `lifetime` is how long a receipt counts, in seconds. `attacks` replace those that are built in.
    """

    def __init__(
        self,
        store: ReceiptStore | None = None,
        *,
        lifetime: float = LIFETIME_S,
        attacks: tuple[Attack, ...] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store or ReceiptStore()
        self._lifetime = lifetime
        self._attacks = attacks
        self._clock = clock
        self._guard = threading.Lock()
        self._known: dict[tuple[Descriptor, int], str] = {}
        self._receipts = NO_RECEIPTS
        self._fresh = (0.0, 0.0)
        self._under_way: Future[None] | None = None

    def receipts(self, descriptors: Iterable[Descriptor]) -> Receipts:
        """The receipts that count now; the same object for as long as nothing changes. Attacks nothing."""
        user = os.geteuid() if hasattr(os, "geteuid") else 0
        for descriptor in descriptors:
            if (descriptor, user) not in self._known:
                self._load(descriptor, user)
        now = self._clock()
        if not self._fresh[0] <= now < self._fresh[1]:
            with self._guard:
                self._count(self._receipts.at(now, self._lifetime))
        return self._receipts

    def _load(self, descriptor: Descriptor, user: int) -> None:
        bound_to = fingerprint(descriptor)
        stored = self._store.load(bound_to)
        with self._guard:
            self._known[descriptor, user] = bound_to
            self._count(Receipts.of((*self._receipts, *stored)).at(self._clock(), self._lifetime))

    def _count(self, receipts: Receipts) -> None:
        """Count these from now on, until the first of them is too old."""
        if set(receipts.results.values()) != set(self._receipts.results.values()):
            self._receipts = receipts
        self._fresh = self._receipts.span(self._lifetime)

    def attested(self, descriptor: Descriptor) -> Descriptor:
        """`descriptor` as the receipts of this host have it."""
        return attest(descriptor, self.receipts((descriptor,)), self._attacks)

    async def ensure(
        self,
        backends: Sequence[Backend],
        needed: Mapping[str, Collection[Control]],
        progress: Progress = lambda result: None,
    ) -> Receipts:
        """Make the receipts that are missing for the controls `needed` of each backend, by its name.

        Backends that can't run here are left out. What is made is kept on disk if that can be written, and in
        this process in any case.
        """
        usable = [backend for backend in backends if backend.describe().unavailable is None]
        while lacking := self._lacking(usable, needed):
            mine: Future[None] = Future()
            with self._guard:
                first = self._under_way or mine
                self._under_way = first
            if first is not mine:
                await asyncio.shield(asyncio.wrap_future(first))
                continue
            try:
                await self._attack(lacking, progress)
                break
            finally:
                with self._guard:
                    self._under_way = None
                mine.set_result(None)
        return self.receipts(backend.describe() for backend in backends)

    def _lacking(
        self, backends: Sequence[Backend], needed: Mapping[str, Collection[Control]]
    ) -> list[tuple[Backend, Attack]]:
        receipts = self.receipts(backend.describe() for backend in backends)
        return [
            (backend, attack)
            for backend in backends
            for attack in missing(
                backend.describe(), needed.get(backend.describe().name, ()), receipts, self._attacks
            )
        ]

    async def _attack(self, wanted: Iterable[tuple[Backend, Attack]], progress: Progress) -> None:
        # imported by whoever attacks: a run that has its receipts does without
        from licet.probe.prober import Prober
        from licet.probe.scene import Scene

        async with Scene() as scene:
            self.keep(await Prober(scene).probe_all(wanted, progress))

    def keep(self, results: Iterable[ProbeResult]) -> None:
        """Count new results from now on."""
        results = tuple(results)
        with contextlib.suppress(
            AuditUnavailable
        ):  # a state directory that can't be written costs time alone
            self._store.add(results)
        with self._guard:
            self._count(Receipts.of((*self._receipts, *results)))
