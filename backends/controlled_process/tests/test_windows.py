"""What the backend claims and tells on Windows, for real or under Wine, which forgets the limits it takes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
from licet.backend import GuestError, Termination
from licet.contract import Control, Evidence, Level

if sys.platform != "win32":
    pytest.skip("needs Windows; `.ci/wine` runs it under Wine", allow_module_level=True)

from licet.supervise.windows.job import kept_limits

Run = Callable[..., Any]
LIMITS = {Control.memory_limit: kept_limits().memory, Control.cpu_time_limit: kept_limits().cpu_time}


def test_the_contract_claims_what_this_host_keeps(tools: Any) -> None:
    described = tools.backend.describe()
    contract = described.sandbox_enforcement_contract
    assert described.unavailable is None
    assert {control for control, claim in contract.items() if claim.level is Level.enforced} == {
        Control.stdout_limit,
        Control.stderr_limit,
        Control.working_directory,
    }
    for control, kept in LIMITS.items():
        wanted = (
            (Level.not_enforced, Evidence.declared) if kept is None else (Level.partial, Evidence.read_back)
        )
        assert (contract[control].level, contract[control].evidence) == wanted
    for control in (Control.timeout, Control.process_tree_cleanup, Control.orphan_cleanup):
        assert contract[control].level is Level.partial
        assert any("can open its supervisor" in gap for gap in contract[control].gaps)


def test_a_limit_that_this_host_forgets_is_told_by_the_run(run: Run) -> None:
    outcome = run("1", limits={"memory": 1 << 30, "cpu_time": 30.0}).outcome
    forgotten = [control for control, kept in LIMITS.items() if kept is None]
    assert (outcome.value, outcome.observed["process_tree_cleanup"]) == (1, "no descendant left")
    for control in LIMITS:
        told = outcome.observed.get(control.value)
        assert told == ("not kept: the host took the limit and forgot it" if control in forgotten else None)
    if len(forgotten) == 2:
        assert outcome.detail == "this host kept no limit of cpu_time and memory"


def test_a_crash_is_named_and_keeps_the_output(run: Run) -> None:
    end = "ctypes.windll.kernel32.TerminateProcess(ctypes.c_void_p(-1), 0xC0000005)"
    ran = run(f"import ctypes\nprint('a')\n{end}")
    assert ran.stdout == "a\n"
    assert (ran.outcome.termination, ran.outcome.exit_code) == (Termination.exited, 0xC0000005)
    assert ran.outcome.error == GuestError("ACCESS_VIOLATION", "the code was ended by status 0xC0000005")
