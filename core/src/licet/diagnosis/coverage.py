"""Which backend holds which control on this host, from offers alone. Pure.

Rules this module keeps:

- every control is listed, and one that nobody holds says so;
- a claim that was refuted holds nothing, and is never left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from licet.contract import Control, Enforcement
from licet.probe.standing import claims
from licet.select import Offer


@dataclass(frozen=True, slots=True)
class Hold:
    """One backend that holds a control: its `claim`, and since when that is proved here.

    `proved` is in seconds since the epoch, None if nothing proves it; `unproved` says which attack on it
    decided nothing.
    """

    backend: str
    claim: Enforcement
    proved: float | None = None
    unproved: str | None = None


@dataclass(frozen=True, slots=True)
class Coverage:
    """One control: who holds it here, and by backend what refuted the claim to it."""

    control: Control
    holds: tuple[Hold, ...]
    refuted: tuple[tuple[str, str], ...]


def coverage(offers: Sequence[Offer]) -> tuple[Coverage, ...]:
    """Each control; backends that can't run here hold nothing."""
    usable = [offer for offer in offers if offer.descriptor.unavailable is None]
    return tuple(
        Coverage(
            control,
            tuple(_holds(usable, control)),
            tuple((o.descriptor.name, o.refuted[control]) for o in usable if control in o.refuted),
        )
        for control in Control
    )


def _holds(offers: Iterable[Offer], control: Control) -> Iterable[Hold]:
    for offer in offers:
        claim = offer.descriptor.sandbox_enforcement_contract[control]
        if claims(claim):
            proof = offer.proofs.get(control)
            yield Hold(
                offer.descriptor.name, claim, proof.when if proof else None, offer.unproved.get(control)
            )
