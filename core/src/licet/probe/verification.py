"""All attacks against all backends, and what that says of their claims.

Rules this module keeps:

- every attack that means something here is run, on controls that a backend does not claim too;
- only an attack on a claim can refute it: a leak where nothing is claimed is expected, and told as such;
- numbers count attacks, and each is the number of results with that outcome.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from licet.backend import Backend, Descriptor
from licet.contract import Control, Enforcement
from licet.probe.attack import Attack
from licet.probe.attacks import here
from licet.probe.prober import Prober
from licet.probe.results import ProbeOutcome, ProbeResult, Progress, Receipts
from licet.probe.scene import Scene
from licet.probe.standing import Standing, covers, standing

Verdict = Literal["held", "leaked", "inconclusive", "unclaimed"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One attack on one backend: the claim it was on, and what it found.

    `verdict` is `unclaimed` where the claim does not cover the attack, whatever became of it.
    """

    claim: Enforcement
    verdict: Verdict
    result: ProbeResult

    def as_json(self) -> dict[str, Any]:
        """The receipt, its outcome for the claim, and what was measured."""
        return self.result.as_json() | {
            "outcome": self.verdict,
            "measured": self.result.outcome.value,
            "claimed": self.claim.level.value,
            "boundary": self.claim.boundary,
            "mechanism": self.claim.mechanism,
            "gaps": list(self.claim.gaps),
            "when": self.result.date,
        }


@dataclass(frozen=True, slots=True)
class Report:
    """What `verify` found: counts of attacks, each finding, and the standing of each control by backend."""

    findings: tuple[Finding, ...]
    standings: dict[str, dict[Control, Standing]]
    skipped: tuple[str, ...] = ()

    @property
    def results(self) -> tuple[ProbeResult, ...]:
        """The receipts."""
        return tuple(finding.result for finding in self.findings)

    @property
    def counts(self) -> Counter[str]:
        """How many findings have each verdict."""
        return Counter(finding.verdict for finding in self.findings)

    @property
    def held(self) -> int:
        """Attacks that a claim withstood."""
        return self.counts["held"]

    @property
    def leaked(self) -> int:
        """Attacks that refuted a claim."""
        return self.counts["leaked"]

    @property
    def inconclusive(self) -> int:
        """Attacks on a claim that decided nothing."""
        return self.counts["inconclusive"]

    @property
    def unclaimed(self) -> int:
        """Attacks on what nobody claims to withstand."""
        return self.counts["unclaimed"]

    def as_json(self) -> dict[str, Any]:
        """The form of `licet backends verify --json`."""
        return {
            "held": self.held,
            "leaked": self.leaked,
            "inconclusive": self.inconclusive,
            "unclaimed": self.unclaimed,
            "skipped": list(self.skipped),
            "results": [finding.as_json() for finding in self.findings],
        }


async def verify(
    backends: Sequence[Backend],
    progress: Progress = lambda result: None,
    *,
    attacks: Iterable[Attack] | None = None,
) -> Report:
    """Run all attacks against those `backends` that can run here; keeping the results is the caller's."""
    chosen = here() if attacks is None else tuple(attacks)
    usable = [backend for backend in backends if backend.describe().unavailable is None]
    descriptors = {backend.describe().name: backend.describe() for backend in usable}
    async with Scene() as scene:
        wanted = [(backend, attack) for attack in chosen for backend in usable]
        results = await Prober(scene).probe_all(wanted, progress)
    pairs = zip((attack for _, attack in wanted), results, strict=True)
    return Report(
        findings=tuple(_finding(descriptors[result.backend], attack, result) for attack, result in pairs),
        standings=standings(descriptors.values(), chosen, Receipts.of(results)),
        skipped=tuple(b.describe().name for b in backends if b.describe().unavailable is not None),
    )


def standings(
    descriptors: Iterable[Descriptor], attacks: Sequence[Attack], receipts: Receipts
) -> dict[str, dict[Control, Standing]]:
    """The standing of each control of each backend."""
    by_control = {control: [a for a in attacks if a.control is control] for control in Control}
    return {
        descriptor.name: {
            control: standing(descriptor, control, by_control[control], receipts) for control in Control
        }
        for descriptor in descriptors
    }


def _finding(descriptor: Descriptor, attack: Attack, result: ProbeResult) -> Finding:
    claim = descriptor.sandbox_enforcement_contract[attack.control]
    if not covers(claim, attack):
        return Finding(claim, "unclaimed", result)
    verdicts: dict[ProbeOutcome, Verdict] = {
        ProbeOutcome.held: "held",
        ProbeOutcome.leaked: "leaked",
        ProbeOutcome.inconclusive: "inconclusive",
    }
    return Finding(claim, verdicts[result.outcome], result)
