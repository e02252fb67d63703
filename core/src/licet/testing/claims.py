"""Tests of every claim: the attacks that prove it here, and runs in which nothing shows that it is tested.

Rules this module keeps:

- what is attacked is what is claimed; a control that is not claimed is not counted;
- an attack that decides nothing does not pass: what was not shown is not so;
- a wall that stands only where it is looked at is none: ordinary runs meet it too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from licet.backend import Backend, Descriptor
from licet.contract import Control
from licet.plan import Opened
from licet.probe.attack import Attack, Proof, Scenario
from licet.probe.attacks import ATTACKS, here
from licet.probe.prober import Prober
from licet.probe.results import ProbeOutcome, ProbeResult
from licet.probe.scene import Scene
from licet.probe.standing import claims, covers
from licet.probe.targets import Targets
from licet.requirements import openable
from licet.testing.bench import Bench, Ran
from licet.testing.verdict import refusal, two_faced

AT_ONCE = 3
_VISIBLE = frozenset({Proof.struck, Proof.text})


def on_claims(descriptor: Descriptor) -> list[Attack]:
    """The attacks that mean something here and that a claim has to withstand."""
    contract = descriptor.sandbox_enforcement_contract
    return [attack for attack in here() if covers(contract[attack.control], attack)]


def seen_from_outside(attack: Attack) -> bool:
    """Whether the host alone can tell if an attack got through, in one run that nobody asked to tell."""
    return attack.scenario is Scenario.once and not attack.host_apart and set(attack.proofs) <= _VISIBLE


class Claims:
    """Each attack is a test, by the name `CONTROL/VARIANT`."""

    def test_a_claim_withstands(
        self, attack: Attack, probed: Mapping[tuple[str, str], ProbeResult], bench: Bench
    ) -> None:
        told = refusal(bench.descriptor, attack, probed[attack.key])
        if told is not None:
            pytest.fail(told, pytrace=False)

    def test_a_claim_holds_in_an_ordinary_run(
        self, ordinary: Attack, probed: Mapping[tuple[str, str], ProbeResult], bench: Bench
    ) -> None:
        """The act of an attack without its frame, in a plan that says nothing of probes."""
        known = probed.get(ordinary.key)
        if known is not None and known.outcome is not ProbeOutcome.held:
            pytest.skip("it does not hold when it is probed either")
        struck, ran, expected = asyncio.run(_in_an_ordinary_run(bench, ordinary))
        if struck is not None:
            pytest.fail(two_faced(bench.descriptor, ordinary, struck), pytrace=False)
        assert ran.outcome.value == expected, "the code did not run to its end"

    def test_every_claim_can_be_attacked_here(self, bench: Bench) -> None:
        contract = bench.descriptor.sandbox_enforcement_contract
        untried = [control for control in Control if claims(contract[control]) and not here(control)]
        if untried:
            needs = {str(need) for attack in ATTACKS if attack.control in untried for need in attack.needs}
            needed = ", ".join(sorted(needs))
            pytest.skip(
                f"no attack on {', '.join(untried)} means anything on this machine: they need {needed}"
            )


async def probe(backend: Backend, attacks: Sequence[Attack]) -> tuple[ProbeResult, ...]:
    """Run attacks, few at once, so that a busy machine does not look like a leak."""
    try:
        async with Scene() as scene:
            return await Prober(scene, at_once=AT_ONCE).probe_all((backend, attack) for attack in attacks)
    finally:
        await backend.close()


async def _in_an_ordinary_run(bench: Bench, attack: Attack) -> tuple[str | None, Ran, int]:
    """What got through, if anything; the run; and the value that only code which ran can know."""
    async with Scene() as scene, scene.targets() as targets:
        act = "\n".join(f"    {line}" for line in attack.act.strip().splitlines())
        code = f"try:\n{act}\nexcept Exception as problem:\n    pass\n{{FACTOR}} * {{OTHER_FACTOR}}"
        filled, text = targets.fill(code), targets.fill(attack.text)
        opened = _filled(openable(attack.opens, bench.descriptor.opens), targets)
        ran = await bench.execute(
            filled, opened=opened, workdir=str(targets.work), limits=dict(attack.limits)
        )
        printed = (ran.stdout + ran.stderr).decode("utf-8", "replace")
        if Proof.struck in attack.proofs and targets.struck():
            return "the target on the host was struck", ran, 0
        if Proof.text in attack.proofs and text in printed:
            return "what it looked for is in its output", ran, 0
        return None, ran, targets.factors[0] * targets.factors[1]


def _filled(opened: Opened, targets: Targets) -> Opened:
    return Opened(
        read=tuple(map(targets.fill, opened.read)),
        write=tuple(map(targets.fill, opened.write)),
        network=tuple(map(targets.fill, opened.network)),
        shell=opened.shell,
    )
