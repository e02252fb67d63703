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
from types import ModuleType
from typing import Any
from unittest import mock

import pytest
from licet import supervise
from licet.backend import Backend
from licet.probe import verify
from licet.probe.attacks import here
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


Runs = Callable[..., Any]


@pytest.fixture
def weak(tmp_path: Path) -> Iterator[Runs]:
    """Run pieces of code one after the other, in one launcher of which something is taken down."""
    with contextlib.ExitStack() as stack:

        def weak(
            edits: Any, settings: Any, *pieces: str, hear: Any = None, looking: bool = False, **jail: Any
        ) -> list[Any]:
            patches = [(launcher, "launcher_message", weakened.reworked(tuple(edits), settings))]
            for patch in (*patches, *(() if looking else weakened.UNSEEN)):
                stack.enter_context(mock.patch.object(*patch))
            own = JailLauncher()
            stack.callback(own.close)
            shown = Jail(needs=needs(), workdir=str(tmp_path), **jail)
            found = []
            for code in pieces:
                spec = supervise.Spec(
                    supervise.Snippet(code),
                    workdir=str(tmp_path),
                    interpreter=needs().program,
                    jail=shown,
                    wall_time=20.0,
                )
                ended = supervise.run_blocking(spec, hear or (lambda stream, data: True), None, own)
                ended.drop()
                found.append(ended)
            return found

        yield weak


SEEN: dict[str, tuple[str, Any, Any, Any]] = {
    "processes alone in /proc": (
        "import os\nos.path.exists('/proc/sys/kernel/random/boot_id')",
        [("room", 'b"subset=pid"', 'b""')],
        False,
        True,
    ),
    "the host's process is let go of": (
        "import os\nlen(os.listdir('/proc/self/fd'))",
        [("room", 'for fd in (*listeners, *launcher["host"]):', "for fd in listeners:")],
        5,
        6,
    ),
    "no capabilities": (
        "{line.split()[1] for line in open('/proc/self/status') if line.startswith('Cap')} == {'0' * 16}",
        weakened._RIGHTS_KEPT,
        True,
        False,
    ),
    "variables of the run alone": (
        "import os\nlist(os.environ)",
        [("room", '_feel_at_home(order["environment"], call)', "pass")],
        [],
        ["_"],
    ),
}
"""What needs no attack to be seen: an expression, an edit, its value with the wall, and without it."""


@pytest.mark.parametrize("name", SEEN)
def test_a_wall_that_is_taken_down_is_seen(weak: Runs, name: str) -> None:
    code, edits, whole, open_ = SEEN[name]
    assert weak((), {}, code)[0].report.value == whole
    assert weak(edits, {}, code)[0].report.value == open_


def test_a_mask_that_is_taken_down_is_seen(weak: Runs, tmp_path: Path) -> None:
    (tmp_path / "shown" / "closed").mkdir(parents=True)
    (tmp_path / "shown" / "closed" / "file").write_text("secret")
    jail = {"read": (str(tmp_path / "shown"),), "hidden": (str(tmp_path / "shown" / "closed"),)}
    code = f"open({str(tmp_path / 'shown' / 'closed' / 'file')!r}).read()"
    assert weak((), {}, code, **jail)[0].report.error.type == "FileNotFoundError"
    unmasked = {"made": lambda made: [each for each in made if each[1][0] != "hide"]}
    assert weak((), unmasked, code, **jail)[0].report.value == "secret"


def test_storage_that_runs_share_is_seen(weak: Runs) -> None:
    pieces = ("open('/dev/shm/left', 'w').write('x')", "import os\nos.listdir('/dev/shm')")
    assert weak((), {}, *pieces)[1].report.value == []
    shared = (
        "root",
        '_file(NOTHING, b"", 0)',
        '_file(NOTHING, b"", 0); system["mount"](b"tmpfs", b"/dev/shm", NO_SUID, b"mode=1777")',
    )
    uncovered = {"covers": lambda covers: [each for each in covers if each[1] != b"/dev/shm"]}
    assert weak([shared], uncovered, *pieces)[1].report.value == ["left"]


_STAYS = "import time\nprint('here', flush=True)\ntime.sleep(15)"


@pytest.mark.parametrize("spare", [True, False])
def test_the_user_that_code_is_on_the_host_is_nobody_elses(weak: Runs, spare: bool) -> None:
    """No attack tells it: what a user may do, the namespaces keep from the code anyway."""
    users: set[int] = set()
    others = set(_in_namespaces())  # rooms that wait for runs of other tests

    def hear(stream: str, data: bytes) -> bool:
        users.update(_user_of(process) for process in _in_namespaces() if process not in others)
        return False  # that is enough: end it

    weak((), {} if spare else {"outside": lambda _: 0}, _STAYS, hear=hear)
    assert users == {ground().outside if spare else 0}


def _in_namespaces() -> Iterator[Path]:
    """Processes of ours that have two numbers: they are in a namespace of processes below this one."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if len(_line(process, "NSpid").split()) > 1 and _is_ours(process):
                yield process


def _is_ours(process: Path) -> bool:
    while process.name != "0":
        if process.name == str(os.getpid()):
            return True
        process = process.parent / _line(process, "PPid").strip()
    return False


def _user_of(process: Path) -> int:
    return int(_line(process, "Uid").split()[0])


def _line(process: Path, name: str) -> str:
    lines = (process / "status").read_text().splitlines()
    return next(line.partition(":")[2] for line in lines if line.startswith(f"{name}:"))


@pytest.mark.parametrize(
    "edits",
    [
        [("main", "self._flags = NEW_MOUNTS | ", "self._flags = ")],
        [("main", "NEW_MOUNTS | NEW_PROCESSES |", "NEW_MOUNTS |")],
        [("main", "0x40000000 | 0x8000000 | 0x4000000", "0x40000000 | 0x8000000")],
        weakened._PRIVILEGES_KEPT,
    ],
    ids=["mounts", "processes", "names", "new privileges"],
)
def test_what_others_rest_on_is_not_left_out_in_silence(weak: Runs, edits: Any) -> None:
    (ended,) = weak(edits, {}, "print('ran')")
    assert ended.reason is supervise.Reason.launch_failed


@pytest.mark.parametrize(
    "name", ["SharedNetwork", "SharedNetworkUnconfined", "SharedIPC", "HandingOn", "Ungrouped"]
)
def test_what_the_system_shows_to_be_missing_lets_nothing_begin(weak: Runs, name: str) -> None:
    without = getattr(weakened, name)
    with contextlib.ExitStack() as stack:
        for patch in without.patches:
            stack.enter_context(mock.patch.object(*patch))
        (ended,) = weak(without.edits, without.settings, "print('ran')", looking=True)
    assert ended.reason is supervise.Reason.launch_failed
    assert ended.detail.startswith("the system ")
