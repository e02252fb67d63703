"""For each control two backends that differ in its one protection: with it held, without it caught.

Most walls are the kernel's own, put up by the test (`kernel`), or the supervision of the controlled process
with one part taken out (`liars`). Only a second kernel is nowhere to be had: its wall is a pretence.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
from licet.backend import Backend
from licet.contract import Control, Level
from licet.evidence import offer
from licet.probe import Report, verify
from licet.probe.attack import Attack
from licet.probe.attacks import here
from licet.probe.conditions import Condition, present
from licet.probe.results import Receipts
from licet.supervise import can_confine_signals
from licet.supervise.walls import Wall, look
from licet_controlled_process.backend import ControlledProcess
from licet_monty.backend import MontyBackend

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux, whose walls are switched here")


def _module(name: str) -> ModuleType:
    """A module of this folder, by a name under which a process of its own finds it by its file."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parent / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


liars, walls = _module("liars"), _module("walls")


@dataclass(frozen=True)
class Pair:
    """The backend with the protection, the one without, and the quick attacks that tell them apart."""

    on: Callable[[], Backend]
    off: Callable[[], Backend]
    variants: tuple[str, ...]
    root: bool = False


PAIRS: dict[Control, Pair] = {
    Control.shell_execution: Pair(walls.NoPrograms, walls.Plain, ("spawn", "interpreter")),
    Control.timeout: Pair(ControlledProcess, liars.Untimed, ("busy",)),
    Control.cancellation: Pair(ControlledProcess, liars.Bare, ("busy",)),
    Control.stdout_limit: Pair(ControlledProcess, liars.Deafened, ("flood",)),
    Control.stderr_limit: Pair(ControlledProcess, liars.Deafened, ("flood",)),
    Control.environment_allowlist: Pair(ControlledProcess, liars.Inheriting, ("child",)),
    Control.working_directory: Pair(ControlledProcess, liars.Elsewhere, ("start",)),
    Control.process_tree_cleanup: Pair(ControlledProcess, walls.Plain, ("daemon", "deadline")),
    Control.process_count_limit: Pair(walls.FewProcesses, walls.Plain, ("fork",), root=True),
    Control.cpu_time_limit: Pair(ControlledProcess, liars.Unmetered, ("busy",)),
    Control.memory_limit: Pair(ControlledProcess, liars.Roomy, ("single",)),
    Control.filesystem_read_deny: Pair(walls.Files, walls.Plain, ("file", "elsewhere", "system", "symlink")),
    Control.filesystem_write_deny: Pair(
        walls.Files,
        walls.Plain,
        ("create", "change", "create_elsewhere", "change_elsewhere", "symlink"),
    ),
    Control.network_deny: Pair(
        walls.OwnNetwork, walls.Plain, ("tcp", "udp", "outside", "outside_udp"), root=True
    ),
    Control.network_filter: Pair(
        walls.Relayed, walls.Plain, ("other_port", "other_host", "outside", "udp"), root=True
    ),
    Control.unix_socket_deny: Pair(walls.NoSocketsOfTheHost, walls.Plain, ("pathname", "abstract")),
    Control.filesystem_bytes_limit: Pair(walls.SmallDisk, walls.Plain, ("one_file",), root=True),
    Control.orphan_cleanup: Pair(ControlledProcess, walls.Plain, ("talking", "silent")),
    Control.process_isolation: Pair(ControlledProcess, liars.Unconfined, ("signal",)),
    Control.privilege_drop: Pair(walls.NoNewPrivileges, walls.Plain, ("new_privileges", "capabilities")),
    Control.syscall_filter: Pair(walls.NoRiskyCalls, walls.Plain, ("io_uring", "namespaces")),
    Control.handle_isolation: Pair(walls.Plain, walls.Inheriting, ("inherited",)),
    Control.fresh_state: Pair(walls.Plain, liars.Bare, ("names",)),
    Control.separate_kernel: Pair(walls.AnotherKernel, walls.Plain, ("boot_id",), root=True),
}


_LANDLOCKED = frozenset(
    {
        Control.process_isolation,
        Control.filesystem_read_deny,
        Control.filesystem_write_deny,
    }
)


def test_every_control_is_switched_off_once() -> None:
    assert set(PAIRS) == set(Control)


def _outcomes(on: Backend, off: Backend, attacks: tuple[Attack, ...]) -> list[list[tuple[str, str, str]]]:
    """What became of each attack, and of its twin; of all on one backend, then of all on the other."""

    async def work() -> list[list[tuple[str, str, str]]]:
        try:
            report = await verify([on, off], attacks=attacks)
        finally:
            await on.close()
            await off.close()
        told = [(result.variant, result.outcome.value, result.twin) for result in report.results]
        return [told[0::2], told[1::2]]

    return asyncio.run(work())


def _told(attacks: tuple[Attack, ...]) -> list[list[tuple[str, str, str]]]:
    return [[(a.variant, outcome, "got through") for a in attacks] for outcome in ("held", "leaked")]


def _here(control: Control, variants: tuple[str, ...]) -> tuple[Attack, ...]:
    return tuple(attack for attack in here(control) if attack.variant in variants and attack.quick)


@cache
def _may_make_namespaces() -> bool:
    text = f"{walls.KERNEL}\n_unshare(_NEW_MOUNTS)\n_unshare(_NEW_NET)"
    tried = subprocess.run([sys.executable, "-I", "-S", "-c", text], capture_output=True, check=False)
    return os.geteuid() == 0 and tried.returncode == 0


@pytest.mark.parametrize("control", PAIRS, ids=str)
def test_a_protection_that_is_switched_off_is_caught(control: Control) -> None:
    pair = PAIRS[control]
    if pair.root and not _may_make_namespaces():
        pytest.skip("needs root that may make namespaces, to put up the wall that is switched off")
    if control in _LANDLOCKED and not can_confine_signals():
        pytest.skip("needs Landlock scopes (Linux 6.12)")
    attacks = _here(control, pair.variants)
    if not attacks:
        pytest.skip(f"needs a host on which the attacks {pair.variants} mean something")
    assert _outcomes(pair.on(), pair.off(), attacks) == _told(attacks)


@pytest.mark.skipif(
    not _may_make_namespaces() or shutil.which("ip") is None or Condition.address not in present(),
    reason="needs an address beside the loopback, `ip`, and root that may make namespaces",
)
def test_a_network_that_lacks_the_hosts_loopback_alone_is_caught() -> None:
    attacks = _here(Control.network_deny, ("tcp", "udp", "outside", "outside_udp"))
    found = [
        {variant: outcome for variant, outcome, _ in told}
        for told in _outcomes(walls.OwnNetwork(), walls.LeadingOut(), attacks)
    ]
    own = {"tcp": "held", "udp": "held"}
    assert found == [
        {**own, "outside": "held", "outside_udp": "held"},
        {**own, "outside": "leaked", "outside_udp": "leaked"},
    ]


@pytest.mark.skipif(
    not _may_make_namespaces() or not Path(tempfile.gettempdir()).resolve().is_relative_to("/tmp"),
    reason="needs root that may make namespaces, and temporary files in `/tmp`",
)
@pytest.mark.parametrize("control", [Control.filesystem_read_deny, Control.filesystem_write_deny], ids=str)
def test_a_sandbox_with_a_temporary_folder_of_its_own_and_no_other_wall_is_caught(control: Control) -> None:
    variants = ("file", "elsewhere", "create", "change", "create_elsewhere", "change_elsewhere")
    attacks = _here(control, variants)
    own, _ = _outcomes(walls.OwnTemporaryFolder(), walls.Plain(), attacks)
    assert {variant: outcome for variant, outcome, _ in own} == {
        attack.variant: "leaked" if attack.variant.endswith("elsewhere") else "held" for attack in attacks
    }


@pytest.mark.skipif(not can_confine_signals(), reason="needs Landlock of today (Linux 6.12)")
def test_a_filter_of_ports_alone_is_caught() -> None:
    """It lets each of the ports through to every host, and all of UDP."""
    attacks = _here(Control.network_filter, ("other_port", "other_host", "udp"))
    ports, _ = _outcomes(walls.Ports(), walls.Plain(), attacks)
    assert {variant: outcome for variant, outcome, _ in ports} == {
        "other_port": "held",
        "other_host": "leaked",
        "udp": "leaked",
    }


@pytest.mark.parametrize(
    ("on", "off", "control", "variant"),
    [
        (ControlledProcess, liars.Denying, Control.environment_allowlist, "child"),
        (MontyBackend, liars.OpenMonty, Control.filesystem_read_deny, "file"),
        (MontyBackend, liars.OpenMonty, Control.filesystem_write_deny, "create"),
        (ControlledProcess, liars.Unconfined, Control.process_tree_cleanup, "strikes_parent"),
    ],
)
def test_one_missing_part_of_a_backend_of_ours_is_caught(
    on: Callable[[], Backend], off: Callable[[], Backend], control: Control, variant: str
) -> None:
    if on is ControlledProcess and not can_confine_signals():
        pytest.skip("needs Landlock scopes (Linux 6.12)")
    attacks = tuple(attack for attack in here(control) if attack.variant == variant)
    assert _outcomes(on(), off(), attacks) == _told(attacks)


@pytest.mark.skipif(set(Wall) - look().standing != set(), reason="a wall behind Monty is missing here")
@pytest.mark.parametrize(
    ("control", "variants"),
    [
        (Control.shell_execution, ("spawn", "interpreter")),
        (Control.process_count_limit, ("fork",)),
        (Control.network_deny, ("tcp", "udp")),
        (Control.unix_socket_deny, ("pathname", "abstract")),
        (Control.filesystem_read_deny, ("file", "system")),
        (Control.filesystem_write_deny, ("create",)),
        (Control.process_isolation, ("signal",)),
        (Control.privilege_drop, ("capabilities",)),
        (Control.syscall_filter, ("io_uring", "namespaces")),
    ],
    ids=str,
)
def test_a_language_without_the_walls_that_it_claims_behind_it_is_caught(
    control: Control, variants: tuple[str, ...]
) -> None:
    attacks = _here(control, variants)
    if not attacks:
        pytest.skip(f"needs a host on which the attacks {variants} mean something")
    assert _outcomes(MontyBackend(), liars.UnwalledMonty(), attacks) == _told(attacks)


@pytest.fixture(scope="module")
def bare() -> Report:
    """The quick attacks on a backend that claims everything and enforces nothing."""
    return asyncio.run(verify([liars.Bare()], attacks=[attack for attack in here() if attack.quick]))


@pytest.mark.soak
@pytest.mark.parametrize("control", Control, ids=str)
def test_a_backend_without_any_protection_is_caught(bare: Report, control: Control) -> None:
    found = {r.variant: r.outcome.value for r in bare.results if r.control is control}
    assert found
    assert set(found.values()) == {"leaked"}, found


@pytest.mark.soak
def test_each_claim_of_a_backend_without_walls_is_refuted(bare: Report) -> None:
    told = offer(liars.Bare().describe(), Receipts.of(bare.results)).descriptor.sandbox_enforcement_contract
    assert {claim.level for _, claim in told.items()} == {Level.not_enforced}
    assert all(claim.gaps[-1].startswith("refuted here by ") for _, claim in told.items())
