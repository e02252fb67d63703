"""Every attack against the real backends: what they claim holds here, and what they do not claim is told."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any

import pytest
from licet.backend import Backend
from licet.contract import Control, Evidence, Level
from licet.evidence import offer
from licet.probe import Report, verify
from licet.probe.attack import Attack
from licet.probe.attacks import here
from licet.probe.results import ProbeOutcome, Receipts
from licet_controlled_process.backend import ControlledProcess
from licet_monty.backend import MontyBackend

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the attacks tried here are those on Linux")


def run(work: Coroutine[Any, Any, Report]) -> Report:
    return asyncio.run(work)


async def _verify(backends: list[Backend], attacks: tuple[Attack, ...]) -> Report:
    try:
        return await verify(backends, attacks=attacks)
    finally:
        for backend in backends:
            await backend.close()


@pytest.fixture(scope="module")
def report() -> Report:
    """Every attack on both backends."""
    return run(_verify([MontyBackend(), ControlledProcess()], here()))


def test_no_claim_is_refuted_here(report: Report) -> None:
    leaked = [
        f"{f.result.backend} {f.result.control}/{f.result.variant}"
        for f in report.findings
        if f.verdict == "leaked"
    ]
    assert leaked == []


def test_every_claim_is_decided_here(report: Report) -> None:
    undecided = [
        f"{f.result.backend} {f.result.control}/{f.result.variant}: {f.result.observed}: {f.result.reason}"
        for f in report.findings
        if f.verdict == "inconclusive"
    ]
    assert undecided == []


def test_every_twin_gets_through_here(report: Report) -> None:
    failed = {(str(r.control), r.variant, r.twin) for r in report.results if r.twin != "got through"}
    assert failed == set()


def test_every_control_was_attacked_and_counted(report: Report) -> None:
    assert {result.control for result in report.results} == set(Control)
    content = report.as_json()
    outcomes = [item["outcome"] for item in content["results"]]
    for name in ("held", "leaked", "inconclusive", "unclaimed"):
        assert content[name] == outcomes.count(name)
    assert len(report.results) == 2 * len(here())


@pytest.mark.parametrize(
    "backend", [MontyBackend(), ControlledProcess()], ids=["monty", "controlled_process"]
)
def test_every_claim_is_proved_by_what_was_found(report: Report, backend: Backend) -> None:
    declared = backend.describe().sandbox_enforcement_contract
    proved = offer(backend.describe(), Receipts.of(report.results)).descriptor.sandbox_enforcement_contract
    assert proved.levels == declared.levels
    for control, claim in proved.items():
        claimed = claim.level not in (Level.not_enforced, Level.planned)
        assert (control, claim.evidence) == (control, Evidence.probed if claimed else Evidence.declared)


def test_what_the_controlled_process_does_not_claim_does_leak(report: Report) -> None:
    """Unclaimed, and rightly so: these are what another backend is for."""
    leaks = {
        (result.control, result.variant)
        for result in report.results
        if result.backend == "controlled_process" and result.outcome is ProbeOutcome.leaked
    }
    open_ones = {control for control, _ in leaks}
    assert open_ones >= {
        Control.shell_execution,
        Control.filesystem_read_deny,
        Control.filesystem_write_deny,
        Control.network_deny,
        Control.network_filter,
        Control.unix_socket_deny,
        Control.process_count_limit,
        Control.filesystem_bytes_limit,
        Control.separate_kernel,
    }
