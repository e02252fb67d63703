"""What receipts say of a claim. Pure.

Rules this module keeps:

- a claim of nothing is never raised by a result, however well the attack was held;
- a claim is proved if all its quick attacks held, and no other known result on it says otherwise;
- a claim of `partial` may leave open what its attack marks as beyond it;
- what was inconclusive, or was never tried, is not proved; what was inconclusive too long ago is missing,
  whether its attack is quick or not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from licet.backend import Descriptor
from licet.contract import Control, Enforcement, Level
from licet.probe.attack import Attack
from licet.probe.results import ProbeOutcome, ProbeResult, Receipts


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known of one claim; `beyond` are results that it does not cover."""

    claim: Enforcement
    held: tuple[ProbeResult, ...] = ()
    leaked: tuple[ProbeResult, ...] = ()
    inconclusive: tuple[ProbeResult, ...] = ()
    missing: tuple[Attack, ...] = ()
    beyond: tuple[ProbeResult, ...] = field(default=())

    @property
    def proved(self) -> bool:
        """Whether the claim withstood all that it has to."""
        return bool(self.held) and not (self.leaked or self.inconclusive or self.missing)


def claims(claim: Enforcement) -> bool:
    """Whether a claim says that anything is enforced now."""
    return claim.level in (Level.partial, Level.enforced, Level.not_applicable)


def covers(claim: Enforcement, attack: Attack) -> bool:
    """Whether a claim has to withstand an attack."""
    return claims(claim) and not (claim.level is Level.partial and attack.partial_may_leak)


def due(attack: Attack, backend: str, receipts: Receipts) -> bool:
    """Whether an attack has to be run before a claim of `backend` that it is on can be proved."""
    named = backend, attack.control, attack.variant
    return receipts.get(*named) is None and (attack.quick or receipts.is_overdue(*named))


def standing(
    descriptor: Descriptor, control: Control, attacks: Iterable[Attack], receipts: Receipts
) -> Standing:
    """Sort the results on one control; `attacks` are those on it that mean something here."""
    claim = descriptor.sandbox_enforcement_contract[control]
    sorted_results: dict[ProbeOutcome, list[ProbeResult]] = {outcome: [] for outcome in ProbeOutcome}
    missing: list[Attack] = []
    beyond: list[ProbeResult] = []
    for attack in attacks:
        result = receipts.get(descriptor.name, control, attack.variant)
        if not covers(claim, attack):
            beyond += [] if result is None else [result]
        elif result is not None:
            sorted_results[result.outcome].append(result)
        elif due(attack, descriptor.name, receipts):
            missing.append(attack)
    return Standing(
        claim,
        held=tuple(sorted_results[ProbeOutcome.held]),
        leaked=tuple(sorted_results[ProbeOutcome.leaked]),
        inconclusive=tuple(sorted_results[ProbeOutcome.inconclusive]),
        missing=tuple(missing),
        beyond=tuple(beyond),
    )
