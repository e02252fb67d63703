"""Looking at a host from all sides, and what it comes to.

Rules this module keeps:

- every claim of every backend is attacked, unless its receipts still count, and all of it is recorded;
- nothing is well because nothing was tried: without a failed forbidden act there is no good verdict.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import StrEnum

from licet.backend import Termination
from licet.contract import Control
from licet.diagnosis.coverage import Coverage, coverage
from licet.diagnosis.facts import Fact, facts
from licet.diagnosis.machine import Machine, measure
from licet.diagnosis.ordeal import Ordeal, ordeal
from licet.diagnosis.unused import Unused, unused
from licet.errors import AuditUnavailable
from licet.report import Explanation
from licet.runtime import Runtime
from licet.select import Offer


class Verdict(StrEnum):
    """What a diagnosis comes to, gravest first."""

    exit_code: int
    """What `licet doctor` exits with."""

    trail_unavailable = "trail_unavailable"
    """The trail can't be written: nothing can run, and nothing was attacked."""
    got_through = "got_through"
    """A forbidden act reached its goal."""
    refuted = "refuted"
    """An attack got past what a backend claims."""
    nothing_holds = "nothing_holds"
    """No backend here can hold what the policy demands."""
    undecided = "undecided"
    """What is allowed did not work, or an act failed, but not at a wall, or its twin failed too."""
    holds = "holds"
    """A sandbox holds, and every forbidden act failed."""


for _verdict in Verdict:
    _verdict.exit_code = 1
Verdict.trail_unavailable.exit_code = AuditUnavailable.exit_code
Verdict.nothing_holds.exit_code = 5
Verdict.holds.exit_code = 0


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All that was found; `problem` is why the trail can't be written, and then there is no `ordeal`."""

    machine: Machine
    facts: tuple[Fact, ...]
    offers: tuple[Offer, ...]
    controls: tuple[Coverage, ...]
    unused: tuple[Unused, ...]
    explanation: Explanation
    ordeal: Ordeal | None
    problem: AuditUnavailable | None

    @property
    def refuted(self) -> tuple[tuple[str, Control, str], ...]:
        """Every refuted claim: backend, control, and what refuted it."""
        return tuple((name, one.control, why) for one in self.controls for name, why in one.refuted)

    @property
    def unheld(self) -> tuple[Control, ...]:
        """The controls that nobody holds here."""
        return tuple(one.control for one in self.controls if not one.holds)

    @property
    def verdict(self) -> Verdict:
        """What it comes to."""
        if self.ordeal is None:
            return Verdict.trail_unavailable
        if any(act.got_through for act in self.ordeal.acts):
            return Verdict.got_through
        if self.refuted:
            return Verdict.refuted
        if self.explanation.selection.chosen is None:
            return Verdict.nothing_holds
        shown = self.ordeal.answered and all(act.failed for act in self.ordeal.acts)
        return Verdict.holds if shown and self.ordeal.acts else Verdict.undecided


async def diagnose(runtime: Runtime) -> Diagnosis:
    """Prove what the backends of `runtime` claim, and try under its policy what is forbidden.

    Raises:
        RuntimeClosed: the runtime was closed.
    """
    machine = await asyncio.to_thread(measure)
    problem: AuditUnavailable | None = None
    try:
        offers = await runtime.prove()
    except AuditUnavailable as refusal:
        offers, problem = runtime.offers(), refusal
    tried = None if problem else await ordeal(runtime)
    if tried is not None and tried.allowed.termination is Termination.audit_unavailable:
        problem = AuditUnavailable(tried.allowed.summary, advice=tried.allowed.advice)
        tried = None
    plugins = runtime.plugins
    return Diagnosis(
        machine=machine,
        facts=facts(machine),
        offers=offers,
        controls=coverage(offers),
        unused=unused(
            runtime.settings.enabled,
            plugins.installed,
            plugins.problems,
            (offer.descriptor for offer in offers),
        ),
        explanation=runtime.decide("1"),
        ordeal=tried,
        problem=problem,
    )
