"""What the claims of backends are worth on this host: receipts applied to contracts.

Rules this module keeps:

- `offer` and `missing` are pure: a claim rises to `probed` by receipts alone, and never rises in level; the
  word of a backend is worth `declared`, whatever evidence it names;
- a claim that an attack refuted becomes `not_enforced`, with the attack and its date as its gap;
- `Attestor.ensure` makes what is missing, once a process, and keeps it; whoever else needs the same waits for
  it instead of attacking a second time.
"""

from __future__ import annotations

import asyncio
import contextlib
import operator
import os
import threading
import time
import weakref
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import lru_cache

from licet.backend import Backend, Descriptor
from licet.contract import Control, Enforcement, Evidence, Level, SandboxEnforcementContract
from licet.errors import AuditUnavailable
from licet.probe.attack import Attack
from licet.probe.attacks import here
from licet.probe.fingerprint import fingerprint
from licet.probe.results import (
    LIFETIME_S,
    NO_RECEIPTS,
    ProbeOutcome,
    ProbeResult,
    Receipts,
    digest,
)
from licet.probe.situation import Situation, situation
from licet.probe.standing import Standing, covers, due, standing
from licet.probe.store import ReceiptStore
from licet.select import Offer, Proof


@lru_cache(maxsize=256)
def offer(descriptor: Descriptor, receipts: Receipts, attacks: tuple[Attack, ...] | None = None) -> Offer:
    """`descriptor` with each claim as strong as its receipts; the same object for the same arguments.

    A claim whose attacks all held gets evidence `probed`. Every other is `declared`, whatever a backend says
    of itself: core has looked at nothing of it. One that was refuted becomes `not_enforced`. What was
    inconclusive stays as it was declared, and its gap says so; what was never tried stays as it is, and is
    `provable`.
    """
    chosen = here() if attacks is None else attacks
    known = {
        control: standing(descriptor, control, on_one, receipts)
        for control, on_one in ((c, [a for a in chosen if a.control is c]) for c in Control)
    }
    weighed = {control.value: _weigh(one) for control, one in known.items()}
    contract = SandboxEnforcementContract(**weighed)
    if contract != descriptor.sandbox_enforcement_contract:
        descriptor = replace(descriptor, sandbox_enforcement_contract=contract)
    return Offer(
        descriptor,
        proofs={control: _proof(one) for control, one in known.items() if one.proved},
        provable=frozenset(control for control, one in known.items() if _provable(one)),
        refuted={control: _refuted(one) for control, one in known.items() if one.leaked},
        unproved={control: _unproved(one) for control, one in known.items() if one.inconclusive},
    )


def _weigh(known: Standing) -> Enforcement:
    claim = known.claim
    if known.proved:
        return replace(claim, evidence=Evidence.probed)
    if claim.evidence is not Evidence.declared:
        claim = replace(claim, evidence=Evidence.declared)  # nobody vouches for a claim of his own
    if known.leaked:
        return replace(claim, level=Level.not_enforced, gaps=(*claim.gaps, _refuted(known)))
    if known.inconclusive:
        return replace(claim, gaps=(*claim.gaps, _unproved(known)))
    return claim


def _proof(known: Standing) -> Proof:
    return Proof(digest(known.held), min(result.when for result in known.held))


def _provable(known: Standing) -> bool:
    return bool(known.missing) and not (known.leaked or known.inconclusive)


def _refuted(known: Standing) -> str:
    return f"refuted here by {', '.join(map(_told, known.leaked))}"


def _unproved(known: Standing) -> str:
    told = (f"{_told(result)}: {result.reason}" for result in known.inconclusive)
    return f"not proved here by {', '.join(told)}"


def _told(result: ProbeResult) -> str:
    return f"attack `{result.variant}` on {result.date}"


def missing(
    descriptor: Descriptor,
    controls: Iterable[Control],
    receipts: Receipts,
    attacks: tuple[Attack, ...] | None = None,
) -> tuple[Attack, ...]:
    """The attacks on claims to `controls` that have to be run yet: quick ones, and what was undecided."""
    contract, wanted = descriptor.sandbox_enforcement_contract, set(controls)
    return tuple(
        attack
        for attack in (here() if attacks is None else attacks)
        if attack.control in wanted
        and covers(contract[attack.control], attack)
        and due(attack, descriptor.name, receipts)
    )


class Witness:
    """Whoever is told of attacks while evidence is made; this one keeps nothing."""

    async def before(self, backend: Descriptor, attacks: Sequence[Attack]) -> None:
        """These attacks are about to begin."""

    def result(self, result: ProbeResult) -> None:
        """One attack is over; from the loop of the attacks."""

    async def after(self, backend: Descriptor, results: Sequence[ProbeResult]) -> None:
        """All attacks are over."""


class _Known:
    """A backend as it was first described, what its receipts are bound to, and those that count."""

    def __init__(self, backend: Backend, descriptor: Descriptor, seen: Situation) -> None:
        self.backend = backend
        self.descriptor = descriptor
        self.bound_to = fingerprint(backend, descriptor, seen)
        self.receipts = NO_RECEIPTS
        self._fresh = (0.0, 0.0)

    def add(self, results: Iterable[ProbeResult], now: float, lifetime: float) -> None:
        """Count these as well, as far as they are bound to this very backend."""
        mine = (result for result in results if result.fingerprint == self.bound_to)
        self._count(self.receipts.updated(mine, now, lifetime), lifetime)

    def refresh(self, now: float, lifetime: float) -> None:
        """Count no more what is too old."""
        if not self._fresh[0] <= now < self._fresh[1]:
            self._count(self.receipts.at(now, lifetime), lifetime)

    def _count(self, receipts: Receipts, lifetime: float) -> None:
        before = self.receipts
        if (receipts.results, receipts.overdue) != (before.results, before.overdue):
            self.receipts = receipts
        self._fresh = self.receipts.span(lifetime)


class Attestor:
    """The receipts of one process, and what it takes to make those that are missing; for any loop and thread.

    A backend is described once: what it says of itself later changes nothing. Receipts count in the situation
    that they were made in: a process that has left it for another namespace needs others. `lifetime` is how
    long a receipt counts, in seconds. `attacks` replace those that are built in.
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
        self._described: dict[int, tuple[Backend, Descriptor]] = {}
        self._all_known: dict[tuple[int, Situation], _Known] = {}
        self._under_way: Future[None] | None = None
        self._offered: tuple[list[_Known | Receipts], tuple[Offer, ...]] = [], ()
        _attestors.add(self)

    def in_child(self) -> None:
        """After a fork: nobody here attacks, and nobody holds the lock."""
        self._guard = threading.Lock()
        self._under_way = None

    def _known(self, backend: Backend) -> _Known:
        seen = situation()
        key = id(backend), seen
        if (known := self._all_known.get(key)) is None:
            known = _Known(backend, self._descriptor(backend), seen)
            known.add(self._store.load(known.bound_to), self._clock(), self._lifetime)
            with self._guard:
                known = self._all_known.setdefault(key, known)
        with self._guard:
            known.refresh(self._clock(), self._lifetime)
        return known

    def _descriptor(self, backend: Backend) -> Descriptor:
        if (told := self._described.get(id(backend))) is None:
            # the backend is held, so that no other can have its id
            told = self._described.setdefault(id(backend), (backend, backend.describe()))
        return told[1]

    def receipts(self, backend: Backend) -> Receipts:
        """The receipts that count now; the same object for as long as nothing changes. Attacks nothing."""
        return self._known(backend).receipts

    def offers(self, backends: Iterable[Backend]) -> tuple[Offer, ...]:
        """`backends` as the receipts of this host have them; the same object as long as nothing changes.

        Attacks nothing.
        """
        found = [self._known(backend) for backend in backends]
        on_what = [*found, *[known.receipts for known in found]]
        before, offered = self._offered
        if len(before) != len(on_what) or not all(map(operator.is_, before, on_what)):
            offered = tuple([offer(known.descriptor, known.receipts, self._attacks) for known in found])
            self._offered = on_what, offered
        return offered

    async def ensure(
        self, backend: Backend, controls: Collection[Control], witness: Witness | None = None
    ) -> None:
        """Make the receipts that are missing on the claims of `backend` to `controls`.

        Whoever comes while somebody attacks waits for them. What is made is kept on disk if that can be
        written, and in this process in any case, once `witness` has it.

        Raises:
            AuditUnavailable: the witness could not record it; nothing of it counts.
        """
        while lacking := self._lacking(backend, controls):
            mine: Future[None] = Future()
            with self._guard:
                first = self._under_way or mine
                self._under_way = first
            if first is not mine:
                await asyncio.shield(asyncio.wrap_future(first))
                continue
            try:
                await self._attack(self._known(backend), lacking, witness or Witness())
                break
            finally:
                with self._guard:
                    self._under_way = None
                mine.set_result(None)

    def _lacking(self, backend: Backend, controls: Collection[Control]) -> tuple[Attack, ...]:
        known = self._known(backend)
        if known.descriptor.unavailable is not None:
            return ()
        return missing(known.descriptor, controls, known.receipts, self._attacks)

    async def _attack(self, known: _Known, attacks: tuple[Attack, ...], witness: Witness) -> None:
        # imported by whoever attacks: a run that has its receipts does without
        from licet.probe.prober import Prober
        from licet.probe.scene import Scene

        await witness.before(known.descriptor, attacks)
        async with Scene() as scene:
            pairs = [(known.backend, attack) for attack in attacks]
            made = await Prober(scene).probe_all(pairs, witness.result)
        results = [_bound(result, known.bound_to) for result in made]
        await witness.after(known.descriptor, results)
        self.keep(results)

    def keep(self, results: Iterable[ProbeResult]) -> None:
        """Count new results from now on."""
        results = tuple(results)
        # a state directory that can't be written costs time alone
        with contextlib.suppress(AuditUnavailable):
            self._store.add(results)
        with self._guard:
            for known in self._all_known.values():
                known.add(results, self._clock(), self._lifetime)


_attestors: weakref.WeakSet[Attestor] = weakref.WeakSet()


def _after_fork() -> None:
    for attestor in tuple(_attestors):
        attestor.in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _bound(result: ProbeResult, fingerprint: str) -> ProbeResult:
    """A result for what was to be attacked; one on a backend that describes itself anew proves nothing.

    A leak stays one: this very backend let it through, whatever it says of itself meanwhile.
    """
    if result.fingerprint == fingerprint:
        return result
    if result.outcome is not ProbeOutcome.held:
        return replace(result, fingerprint=fingerprint)
    reason = "the backend says something else of itself than before"
    return replace(result, outcome=ProbeOutcome.inconclusive, reason=reason, fingerprint=fingerprint)
