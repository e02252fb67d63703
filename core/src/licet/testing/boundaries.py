"""Tests of boundaries: none is stronger than what its code can see, and isolation is derived from them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection

import pytest

from licet.contract import Boundary, Control
from licet.probe.attacks import here
from licet.probe.results import ProbeOutcome
from licet.probe.standing import claims
from licet.testing.bench import Bench, lacks
from licet.testing.claims import probe

_OWN_KERNEL: frozenset[Boundary] = frozenset({"separate_kernel", "remote"})
_OWN_PROCESS: frozenset[Boundary] = frozenset({"supervisor", "kernel"})
_WHO = "import os\ntry:\n    found = os.getpid()\nexcept AttributeError:\n    found = None\nfound"


class Boundaries:
    """What stands between code and host, for every claim at once."""

    def test_a_kernel_of_its_own_is_another_one(self, bench: Bench) -> None:
        """Also where `separate_kernel` itself is not claimed: isolation is made of boundaries."""
        apart = _claimed(bench, _OWN_KERNEL)
        if not apart:
            return
        results = asyncio.run(probe(bench.backend, here(Control.separate_kernel)))
        if not results:
            pytest.skip("nothing on this machine tells one kernel from another: that needs Linux")
        for result in results:
            if result.outcome is not ProbeOutcome.held:
                told = f"{result.attempted}: {result.observed}: {result.reason}"
                _fail(bench, apart, told, "`language`, `supervisor` or `kernel`, whichever is there")

    def test_a_process_of_its_own_is_another_one(self, bench: Bench) -> None:
        apart = _claimed(bench, _OWN_PROCESS)
        if not apart or lacks(bench.descriptor.language, _WHO):
            return
        if asyncio.run(bench.execute(_WHO)).outcome.value == os.getpid():
            _fail(bench, apart, "the code runs in the process of its host", "`language`, if that is a wall")


def _claimed(bench: Bench, boundaries: Collection[str]) -> list[str]:
    contract = bench.descriptor.sandbox_enforcement_contract
    return [
        f"{control} ({claim.boundary})"
        for control, claim in contract.items()
        if claims(claim) and claim.boundary in boundaries
    ]


def _fail(bench: Bench, claimed: list[str], observed: str, advice: str) -> None:
    contract = bench.descriptor.sandbox_enforcement_contract
    pytest.fail(
        f"`{bench.descriptor.name}` claims a boundary that is not there\n"
        f"  claimed   {', '.join(claimed)}; so its isolation is `{contract.isolation}`\n"
        f"  observed  {observed}\n"
        f"  you can   name the boundary that holds: {advice}",
        pytrace=False,
    )
