"""The attacks against the real backends, and against backends that lie: claims hold, lies are caught."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from collections.abc import Coroutine
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from licet.backend import Backend
from licet.contract import Control, Evidence, Level
from licet.evidence import attest
from licet.probe import Report, verify
from licet.probe.attack import Attack
from licet.probe.attacks import here
from licet.probe.results import ProbeOutcome, Receipts
from licet_controlled_process.backend import ControlledProcess
from licet_monty.backend import MontyBackend


def _module(name: str) -> ModuleType:
    """A module of this folder, by a name under which a process of its own finds it by its file."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parent / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


liars, walls = _module("liars"), _module("walls")

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
    proved = attest(backend.describe(), Receipts.of(report.results)).sandbox_enforcement_contract
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


@pytest.fixture(scope="module")
def bare() -> Report:
    """The quick attacks on a backend that claims everything and enforces nothing."""
    return run(_verify([liars.Bare()], tuple(attack for attack in here() if attack.quick)))


@pytest.mark.soak
@pytest.mark.parametrize("control", list(Control))
def test_a_backend_without_any_protection_is_caught(bare: Report, control: Control) -> None:
    found = {r.variant: r.outcome.value for r in bare.results if r.control is control}
    assert found
    assert set(found.values()) == {"leaked"}, found


@pytest.mark.soak
def test_each_claim_of_a_backend_without_walls_is_refuted(bare: Report) -> None:
    told = attest(liars.Bare().describe(), Receipts.of(bare.results)).sandbox_enforcement_contract
    assert {claim.level for _, claim in told.items()} == {Level.not_enforced}
    assert all(claim.gaps[-1].startswith("refuted here: attack `") for _, claim in told.items())
