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
from licet.probe.targets import _MAKERS

names = {attack: str(attack) for attack in ATTACKS}
every = pytest.mark.parametrize("attack", ATTACKS, ids=str)

BULLETS = {
    # what the issue lists, in its order
    "host files": [
        "filesystem_read_deny/file",
        "filesystem_write_deny/create",
        "filesystem_write_deny/change",
    ],
    "host files that are no temporary ones": [
        "filesystem_read_deny/elsewhere",
        "filesystem_write_deny/create_elsewhere",
        "filesystem_write_deny/change_elsewhere",
    ],
    "link escapes": [
        "filesystem_read_deny/symlink",
        "filesystem_read_deny/linked_folder",
        "filesystem_read_deny/hard_link",
        "filesystem_read_deny/dotdot",
        "filesystem_write_deny/symlink",
        "filesystem_write_deny/linked_folder",
        "filesystem_write_deny/hard_link",
    ],
    "TCP": ["network_deny/tcp", "network_deny/tcp6", "network_deny/multipath", "network_filter/other_port"],
    "UDP": ["network_deny/udp", "network_deny/outside_udp"],
    "more than the TCP port that is opened": [
        "network_filter/other_host",
        "network_filter/outside",
        "network_filter/udp",
        "network_filter/dns",
    ],
    "hosts beside the loopback": ["network_deny/outside"],
    "DNS": ["network_deny/dns"],
    "pathname unix sockets": ["unix_socket_deny/pathname", "unix_socket_deny/datagram"],
    "abstract unix sockets": ["unix_socket_deny/abstract"],
    "environment of the child": ["environment_allowlist/child", "environment_allowlist/own_process"],
    "environment of its ancestors": ["environment_allowlist/ancestors"],
    "process visibility": ["process_isolation/see", "process_isolation/environment"],
    "process signal": ["process_isolation/signal"],
    "process trace": ["process_isolation/trace"],
    "fork bomb": ["process_count_limit/fork"],
    "memory bomb": ["memory_limit/mapped", "memory_limit/tree", "memory_limit/file_in_memory"],
    "disk fill": [
        "filesystem_bytes_limit/one_file",
        "filesystem_bytes_limit/many_files",
        "filesystem_bytes_limit/reserved",
    ],
    "nested namespaces": ["syscall_filter/namespaces", "syscall_filter/namespaces_by_clone3"],
    "io_uring": ["syscall_filter/io_uring"],
    "keyring": ["syscall_filter/keyring"],
    "tracing": ["syscall_filter/trace", "process_isolation/trace"],
    "mounts": ["syscall_filter/mount"],
    "what processes share by number": ["syscall_filter/shared_memory", "syscall_filter/message_queue"],
    "families of sockets": [
        "syscall_filter/netlink",
        "syscall_filter/packets",
        "syscall_filter/hypervisor",
    ],
    "words put into a terminal": ["syscall_filter/terminal"],
    "memory of others": [
        "process_isolation/memory",
        "process_isolation/memory_of_parent",
        "process_isolation/descriptors",
    ],
    "daemon after exit": ["process_tree_cleanup/daemon", "process_tree_cleanup/relay"],
    "double fork holding the pipe": ["process_tree_cleanup/pipe"],
    "supervisor killed": [
        "orphan_cleanup/talking",
        "orphan_cleanup/silent",
        "orphan_cleanup/daemon",
        "orphan_cleanup/terminated",
        "process_tree_cleanup/strikes_parent",
    ],
    "output flood of 200 MB": ["stdout_limit/flood_200mb", "stderr_limit/flood_200mb"],
    "a setsid child that keeps the pipe past the deadline": [
        "timeout/held_pipe",
        "process_tree_cleanup/deadline",
        "cancellation/daemon",
    ],
    "/etc inside system grants": ["filesystem_read_deny/system", "filesystem_read_deny/system_grant"],
    "interpreter flags that switch a protection off": [
        "filesystem_read_deny/other_flags",
        "filesystem_write_deny/other_flags",
        "network_deny/other_flags",
    ],
    "a stated memory limit silently dropped": ["memory_limit/single"],
    "stdin wait": ["timeout/stdin_wait"],
    "state left between runs": [
        "fresh_state/names",
        "fresh_state/modules",
        "fresh_state/environment",
        "fresh_state/files",
        "fresh_state/memory",
    ],
    # what else broke somebody
    "internals below a guarded module": ["network_deny/internals", "shell_execution/internals"],
    "what Landlock does not govern": ["filesystem_write_deny/mode"],
    "inherited descriptors": ["handle_isolation/inherited", "handle_isolation/ancestors"],
    "a supervisor that is stopped": ["timeout/stops_parent"],
    "a computation that the client alone gives up": ["process_tree_cleanup/worker", "timeout/native"],
    "a limit of each process taken for one of the tree": ["cpu_time_limit/tree", "memory_limit/tree"],
}
"""What the issue and what broke other sandboxes prompt, and the attacks that serve it."""


def test_every_control_has_a_quick_attack() -> None:
    assert {attack.control for attack in ATTACKS if attack.quick} == set(Control)


def test_every_claim_of_partial_has_something_to_withstand() -> None:
    assert {a.control for a in ATTACKS if a.quick and not a.partial_may_leak} == set(Control)


@pytest.mark.parametrize("bullet", BULLETS)
def test_what_is_prompted_is_tried(bullet: str) -> None:
    assert set(BULLETS[bullet]) <= set(map(str, ATTACKS))


def test_what_floods_watches_the_memory_of_the_host_and_is_not_quick() -> None:
    floods = [attack for attack in ATTACKS if attack.variant == "flood_200mb"]
    assert [(attack.alone, attack.quick) for attack in floods] == [(True, False), (True, False)]


@every
def test_what_stays_says_so_by_its_own_clock(attack: Attack) -> None:
    """A host that is late on a busy machine is no proof; `stdin_wait` can't speak while it waits."""
    if Proof.overstayed in attack.proofs and attack.variant != "stdin_wait":
        assert attack.text == "stayed-{SUM}"
        assert Proof.text in attack.proofs


def test_every_system_has_its_program() -> None:
    windows = frozenset({Condition.windows})
    for control in Control:
        on_one = [attack for attack in ATTACKS if attack.control is control and attack.quick]
        assert any(Condition.windows not in attack.needs for attack in on_one), control
    unseen = {
        c for c in Control if not any(a.quick and a.control is c and a.needs <= windows for a in ATTACKS)
    }
    assert unseen == {
        Control.unix_socket_deny,
        Control.orphan_cleanup,
        Control.privilege_drop,
        Control.syscall_filter,
        Control.handle_isolation,
        Control.separate_kernel,
    }


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
    assert conditions & {Condition.posix, Condition.windows}


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
