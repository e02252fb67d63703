"""Attacks that are made for evidence, in the trail: what is about to be tried, and what came of it.

Rules this module keeps:

- an attack is an effect: its `before` record is durable before it begins, and a receipt counts only once its
  `after` record is, unless policy says `best_effort`: then the gap is recorded, as for every effect;
- a claim that an attack refutes is told at once, whether or not anybody asked for it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from licet import bodies
from licet.backend import Descriptor
from licet.evidence import Witness
from licet.probe.attack import Attack
from licet.probe.results import ProbeOutcome, ProbeResult, Progress
from licet.probe.standing import covers
from licet.trail import Trail

_log = logging.getLogger("licet")


class TrailWitness(Witness):
    """Records attacks in `trail`, and hands each result to `progress` as it comes."""

    def __init__(self, trail: Trail, progress: Progress) -> None:
        self._trail = trail
        self._progress = progress
        self._attacks: dict[tuple[str, str], Attack] = {}

    async def before(self, backend: Descriptor, attacks: Sequence[Attack]) -> None:
        """Record what is about to be tried.

        Raises:
            AuditUnavailable: it is not durable.
        """
        self._attacks |= {attack.key: attack for attack in attacks}
        self._trail.step("probe", bodies.attacks(backend, attacks), phase="before")
        await self._trail.commit()

    def result(self, result: ProbeResult) -> None:
        """Hand a result on."""
        self._progress(result)

    async def after(self, backend: Descriptor, results: Sequence[ProbeResult]) -> None:
        """Record what came of it.

        Raises:
            AuditUnavailable: it is not durable.
        """
        weighed = [(result, self._is_claimed(backend, result)) for result in results]
        for result, claimed in weighed:
            if claimed and result.outcome is ProbeOutcome.leaked:
                _log.error(
                    "`%s` claims `%s`, and attack `%s` got through here: the claim counts for nothing",
                    *result.key,
                )
        self._trail.step("probe", bodies.receipts(backend, weighed), phase="after")
        await self._trail.commit()

    def _is_claimed(self, backend: Descriptor, result: ProbeResult) -> bool:
        claim = backend.sandbox_enforcement_contract[result.control]
        return covers(claim, self._attacks[result.control.value, result.variant])
