"""Each wall of a jail, taken down, is caught by an attack; where another stands in for it, both are.

What can't be left out is told as well: a run without its mounts or its processes apart does not begin.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from licet import supervise
from licet.backend import Backend
from licet.probe import verify
from licet.probe.attacks import here
from licet.probe.conditions import Condition, present
from licet.supervise.cgroups import Resource, look
from licet.supervise.jail import Jail, JailLauncher, ground, launcher, needs

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not (ground().users and ground().landlock and ground().filters),
    reason="needs root, and a kernel on which every wall of a jail stands",
)


def _module(name: str) -> ModuleType:
    """A module of this folder, by a name under which a process of its own finds it by its file."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parent / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


weakened = _module("weakened")

CAUGHT: dict[str, tuple[str, ...]] = {
    # the list of system calls, wholly and by its groups
    "Unfiltered": (
        *(f"syscall_filter/{what}" for what in ("io_uring", "namespaces", "keyring", "trace", "netlink")),
        *("syscall_filter/namespaces_by_clone3", "syscall_filter/hypervisor"),
        *("unix_socket_deny/pathname", "unix_socket_deny/datagram"),
    ),
    "Uring": ("syscall_filter/io_uring",),
    "NestedUsers": ("syscall_filter/namespaces",),
    "UnreadableFlags": ("syscall_filter/namespaces_by_clone3",),
    "Keys": ("syscall_filter/keyring",),
    "Tracing": ("syscall_filter/trace",),
    "Sockets": ("unix_socket_deny/pathname", "syscall_filter/netlink", "syscall_filter/hypervisor"),
    # the network namespace, and the filter; with Landlock, TCP and abstract names as well
    "SharedNetwork": ("network_deny/udp", "network_deny/dns", "network_deny/outside_udp"),
    "SharedNetworkUnconfined": ("network_deny/tcp", "network_deny/internals", "unix_socket_deny/abstract"),
    "SharedIPC": ("syscall_filter/shared_memory", "syscall_filter/message_queue"),
    # the root, and Landlock
    "WholeRoot": ("filesystem_read_deny/system", "filesystem_read_deny/elsewhere"),
    "SharedTemporary": (
        *(f"filesystem_read_deny/{what}" for what in ("file", "symlink", "linked_folder", "listing")),
    ),
    "WritableRoot": ("filesystem_write_deny/change_elsewhere", "filesystem_write_deny/create_elsewhere"),
    # Landlock, and the filter
    "Programs": ("shell_execution/interpreter",),
    "ProcessesOfTheHost": ("process_isolation/see",),
    "OpenFirstProcess": ("process_isolation/memory_of_parent",),
    "RightsKept": ("syscall_filter/mount",),
    "PrivilegesToGain": ("privilege_drop/new_privileges",),
    "Inheriting": ("handle_isolation/inherited",),
    "HandingOn": ("environment_allowlist/child",),
    "Ungrouped": (
        *("memory_limit/single", "memory_limit/tree", "process_count_limit/fork", "cpu_time_limit/tree"),
    ),
    "UnboundedStorage": ("filesystem_bytes_limit/one_file", "filesystem_bytes_limit/many_files"),
    # death with the parent, and watching the host
    "Lingering": ("orphan_cleanup/silent",),
}


def _outcomes(backend: Backend, named: tuple[str, ...]) -> dict[str, str]:
    attacks = tuple(attack for attack in here() if str(attack) in named)

    async def work() -> dict[str, str]:
        try:
            report = await verify([backend], attacks=attacks)
        finally:
            await backend.close()
        return {f"{one.control.value}/{one.variant}": one.outcome.value for one in report.results}

    return asyncio.run(work())


@pytest.mark.parametrize("name", CAUGHT)
def test_a_wall_that_is_taken_down_is_caught(name: str) -> None:
    if name == "Ungrouped" and set(look().places) != set(Resource):
        pytest.skip("needs control groups, which are taken away")
    named = tuple(str(attack) for attack in here() if str(attack) in CAUGHT[name])
    if not named:
        pytest.skip(f"needs a host on which {CAUGHT[name]} mean something")
    assert _outcomes(weakened.Weakened(), named) == dict.fromkeys(named, "held")
    assert _outcomes(getattr(weakened, name)(), named) == dict.fromkeys(named, "leaked")


@pytest.fixture
def ran(run: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Run code as `run` does, or in a launcher of its own where something is taken down."""
    with contextlib.ExitStack() as stack:

        def ran(code: str, edits: Any = (), settings: Any = None, jail: Any = None) -> Any:
            if not edits and not settings:
                return run(code, jail)
            with mock.patch.object(launcher, "launcher_message", weakened.reworked(edits, settings or {})):
                own = JailLauncher()
                stack.callback(own.close)
                shown = Jail(needs=needs(), workdir=str(tmp_path), **(jail or {}))
                spec = supervise.Spec(
                    supervise.Snippet(code),
                    workdir=str(tmp_path),
                    interpreter=needs().program,
                    jail=shown,
                    wall_time=20.0,
                )
                ended = supervise.run_blocking(spec, lambda stream, data: True, None, own)
                ended.drop()
                return SimpleNamespace(ended=ended)

        yield ran


SEEN: dict[str, tuple[str, Any, Any]] = {
    # expression; what it is in a jail; what it is without the wall
    "the namespace of control groups": ("open('/proc/self/cgroup').read().count('licet')", 0, 1),
}
