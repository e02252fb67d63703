"""The attacks as data: complete, unambiguous, bounded, and unable to prove themselves."""

from __future__ import annotations

import ast
import re

import pytest
from licet.backend import Descriptor, Language
from licet.contract import Control, Enforcement, Level, SandboxEnforcementContract
from licet.probe.attack import Attack, Proof, Scenario
from licet.probe.attacks import ATTACKS, here
from licet.probe.conditions import Condition, present
from licet.probe.scene import _MAKERS

names = {attack: str(attack) for attack in ATTACKS}
every = pytest.mark.parametrize("attack", ATTACKS, ids=str)

PROMPTED = {
    Control.filesystem_read_deny: {"file", "symlink", "dotdot", "system", "other_flags", "listing"},
    Control.filesystem_write_deny: {"create", "change", "symlink", "hard_link", "delete"},
    Control.network_deny: {"tcp", "udp", "dns", "other_flags", "internals"},
    Control.unix_socket_deny: {"pathname", "abstract"},
    Control.environment_allowlist: {"child", "ancestors", "own_process"},
    Control.process_isolation: {"see", "signal", "trace"},
    Control.process_count_limit: {"fork"},
    Control.memory_limit: {"single", "tree"},
    Control.filesystem_bytes_limit: {"one_file", "many_files"},
    Control.syscall_filter: {"namespaces", "io_uring", "keyring"},
    Control.process_tree_cleanup: {"daemon", "pipe"},
    Control.orphan_cleanup: {"talking", "silent", "daemon"},
    Control.stdout_limit: {"flood_200mb"},
    Control.timeout: {"held_pipe", "stdin_wait"},
    Control.fresh_state: {"names", "modules", "environment", "files"},
}
"""What broke somebody else's sandbox, and so has to be tried."""


def test_every_control_has_a_quick_attack() -> None:
    assert {attack.control for attack in ATTACKS if attack.quick} == set(Control)


def test_every_claim_of_partial_has_something_to_withstand() -> None:
    assert {a.control for a in ATTACKS if a.quick and not a.partial_may_leak} == set(Control)


@pytest.mark.parametrize("control", PROMPTED, ids=str)
def test_what_broke_others_is_tried(control: Control) -> None:
    assert {attack.variant for attack in ATTACKS if attack.control is control} >= PROMPTED[control]


def test_no_two_attacks_share_a_name() -> None:
    assert len({attack.key for attack in ATTACKS}) == len(ATTACKS)


@every
def test_a_program_is_valid_python_with_known_placeholders(attack: Attack) -> None:
    text = "\n".join((attack.program(), attack.prior))
    used = set(re.findall(r"\{([A-Z][A-Z0-9_]*)\}", text + attack.text + "".join(attack.opens.read)))
    assert used <= set(_MAKERS)
    ast.parse(re.sub(r"\{([A-Z][A-Z0-9_]*)\}", "1", text))


@every
def test_a_program_does_not_hold_the_text_that_would_prove_it(attack: Attack) -> None:
    if Proof.text in attack.proofs:
        assert attack.text not in attack.program()


@every
def test_an_attack_can_both_fail_and_succeed(attack: Attack) -> None:
    assert attack.held_by
    assert attack.proofs
    if Proof.done in attack.proofs:
        assert "done" not in attack.held_by
    if attack.scenario in (Scenario.cancelled, Scenario.orphaned):
        assert "{SAY} ready" in attack.act


@every
def test_no_attack_accepts_just_any_error(attack: Attack) -> None:
    for observed in (*attack.held_by, *attack.inexpressible):
        word, _, rest = observed.partition(" ")
        if word[0].isupper() and word != "MemoryError":
            assert rest, f"{observed} says no more than a type"
    assert not {"Exception", "exited 1", "left behind", "backend_lost"} & set(attack.held_by)


@every
def test_a_total_leak_is_bounded(attack: Attack) -> None:
    sleeps = [float(n) for n in re.findall(r"sleep\((\d+(?:\.\d+)?)\)", attack.act)]
    ends = [float(n) for n in re.findall(r"monotonic\(\) \+ (\d+)", attack.act)]
    assert all(seconds <= 8 for seconds in sleeps)
    assert all(seconds <= 15 for seconds in ends)
    assert not re.search(r"while (True|1)", attack.act)


def test_only_what_means_something_here_is_run() -> None:
    conditions = present()
    assert set(here()) == {attack for attack in ATTACKS if attack.needs <= conditions}
    assert {a.control for a in here(Control.network_deny)} == {Control.network_deny}
    assert Condition.posix in conditions


def describe(level: Level, modules: frozenset[str] | None) -> Descriptor:
    contract = SandboxEnforcementContract(network_deny=Enforcement(level, "language", "a language"))
    return Descriptor("x", "1", contract, Language("X", modules=modules))


@pytest.mark.parametrize(
    ("observed", "level", "modules", "holds"),
    [
        ("ConnectionRefusedError ECONNREFUSED", Level.enforced, None, True),
        ("ConnectionRefusedError ECONNREFUSED", Level.partial, frozenset(), True),
        # whoever says that the act can't be expressed is refuted by an expressed act that was refused
        ("ConnectionRefusedError ECONNREFUSED", Level.not_applicable, frozenset(), False),
        ("ModuleNotFoundError: No module named 'socket'", Level.not_applicable, frozenset(), True),
        ("ModuleNotFoundError: No module named 'socket'", Level.enforced, frozenset(), True),
        # in a language that may import anything, a missing module is a broken attack
        ("ModuleNotFoundError: No module named 'socket'", Level.enforced, None, False),
        ("ModuleNotFoundError: No module named 'socket'", Level.not_applicable, None, False),
        ("ConnectionRefusedError EPIPE", Level.enforced, None, False),
        ("OSError ENETUNREACH, or so", Level.enforced, None, False),
        ("exited 1", Level.enforced, None, False),
    ],
)
def test_only_an_exact_sign_of_a_wall_counts(
    observed: str, level: Level, modules: frozenset[str] | None, holds: bool
) -> None:
    [tcp] = [attack for attack in here(Control.network_deny) if attack.variant == "tcp"]
    assert tcp.holds(observed, describe(level, modules)) is holds


def test_allowed_acts_follow_what_a_backend_can_open() -> None:
    [file] = [attack for attack in here(Control.filesystem_read_deny) if attack.variant == "file"]
    assert "ALLOWED_FILE" in file.program(frozenset({"read"}))
    assert "ALLOWED_FILE" not in file.program(frozenset())
    assert "ALLOWED_FILE" in file.program()
