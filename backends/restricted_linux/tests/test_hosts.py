"""Hosts that give less: each yields a contract that its own attacks prove, or says why there is none.

They are made for real, by root: another user, a filter under which no user namespace can be made, a
namespace that maps nobody else, control groups that can't be written to, a kernel without Landlock.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to make hosts that give less")

USER = 2000
_LESS = """\
import ctypes, os, struct, sys
def lines(*calls):
    found = [(0x20, 0, 0, 4), (0x15, 1, 0, ARCHITECTURE), (6, 0, 0, 0x7FFF0000), (0x20, 0, 0, 0)]
    for number, flags, errno in calls:
        if flags is None:
            found += [(0x15, 0, 1, number), (6, 0, 0, 0x50000 | errno)]
        else:
            found += [(0x15, 0, 4, number), (0x20, 0, 0, 16), (0x45, 0, 1, flags), (6, 0, 0, 0x50000 | errno),
                      (6, 0, 0, 0x7FFF0000)]
    return b"".join(struct.pack("<HBBI", *line) for line in [*found, (6, 0, 0, 0x7FFF0000)])
library = ctypes.CDLL(None, use_errno=True)
text = ctypes.create_string_buffer(lines(*CALLS))
class Program(ctypes.Structure):
    _fields_ = [("count", ctypes.c_ushort), ("lines", ctypes.c_void_p)]
program = Program(len(text) // 8, ctypes.addressof(text))
assert library.prctl(22, 2, ctypes.byref(program), 0, 0) == 0
os.execvp(sys.argv[1], sys.argv[1:])
"""
_X86 = os.uname().machine == "x86_64"
_ARCHITECTURE = "0xC000003E" if _X86 else "0xC00000B7"
_UNSHARE, _CLONE = (272, 56) if _X86 else (97, 220)
NO_USER_NAMESPACES = f"(({_UNSHARE}, 0x10000000, 1), ({_CLONE}, 0x10000000, 1))"
NO_LANDLOCK = "((444, None, 38),)"


def less(calls: str) -> list[str]:
    """A command that goes on under a filter of these calls."""
    text = f"ARCHITECTURE = {_ARCHITECTURE}\nCALLS = {calls}\n{_LESS}"
    return [sys.executable, "-c", text]


def as_user(*before: str) -> list[str]:
    """A command that goes on as an ordinary user, who can read this interpreter."""
    prefix = os.path.realpath(sys.base_prefix)
    top = "/" + prefix.split("/")[1]
    steps = ["mount --make-rprivate /", *before]
    if not os.stat(top).st_mode & 0o001:
        below = "/" + "/".join(prefix.split("/")[1:3])
        steps += [
            f"mount --bind {below} /mnt",
            f"mount -t tmpfs -o mode=755 none {top}",
            f"mkdir -p {below}",
            f"mount --move /mnt {below}",
        ]
    user = f"setpriv --reuid={USER} --regid={USER} --clear-groups --inh-caps=-all --bounding-set=-all"
    script = f'{" && ".join(steps)} && exec {user} "$@"'
    return ["unshare", "-m", "sh", "-c", script, "sh"]


def without_groups() -> list[str]:
    script = 'mount --make-rprivate / && mount -t tmpfs -o ro none /sys/fs/cgroup && exec "$@"'
    return ["unshare", "-m", "sh", "-c", script, "sh"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    found = tmp_path / "home"
    found.mkdir()
    for folder in (found, *tmp_path.parents, tmp_path):
        if folder.stat().st_uid == 0 and folder.is_relative_to(tmp_path.parents[2]):
            folder.chmod(0o755)
    os.chown(found, USER, USER)
    return found


def licet(host: list[str], home: Path, *arguments: str) -> tuple[int, dict[str, object]]:
    environment = {"HOME": str(home), "PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [*host, sys.executable, "-m", "licet", *arguments, "--json"],
        cwd=home,
        env=environment,
        capture_output=True,
        check=False,
        timeout=200,
    )
    assert done.stdout, done.stderr.decode()
    return done.returncode, json.loads(done.stdout)


def level(results: dict[str, object], control: str) -> str:
    found = results["results"]
    assert isinstance(found, list)
    return next(one["claimed"] for one in found if one["control"] == control)


def held_rows(results: dict[str, object]) -> None:
    """Each row of what others let through was tried, and held."""
    found = results["results"]
    assert isinstance(found, list)
    outcomes = {f"{one['control']}/{one['variant']}": one["outcome"] for one in found}
    tried = {
        row: {outcomes[attack] for attack in attacks if attack in outcomes} for row, attacks in ROWS.items()
    }
    assert tried == {row: {"held"} for row in ROWS}
    assert {attack for attacks in ROWS.values() for attack in attacks} - {*outcomes} <= SOME_NEED_MORE


HOSTS = {
    "root": ([], "enforced", "enforced"),
    "ordinary_user": (as_user(), "partial", "enforced"),
    "root_without_user_namespaces": (less(NO_USER_NAMESPACES), "enforced", "enforced"),
    "only_user_of_a_namespace": (["unshare", "-Urm"], None, "enforced"),
    "no_control_groups": (without_groups(), "partial", "enforced"),
    "no_landlock": (less(NO_LANDLOCK), "enforced", "enforced"),
}


ROWS = {
    "a file of the system": ("filesystem_read_deny/system", "filesystem_read_deny/system_grant"),
    "a file in the home": ("filesystem_read_deny/elsewhere",),
    "writing outside, through links as well": (
        *(f"filesystem_write_deny/{how}" for how in ("create", "change", "symlink", "hard_link", "dotdot")),
        "filesystem_write_deny/change_elsewhere",
    ),
    "TCP to the host": ("network_deny/tcp", "network_deny/internals", "network_deny/multipath"),
    "a datagram to the host": ("network_deny/udp", "network_deny/dns"),
    "a socket without a path": ("unix_socket_deny/abstract",),
    "a socket with a path": ("unix_socket_deny/pathname", "unix_socket_deny/datagram"),
    "a secret in the environment, of the first process as well": (
        *(f"environment_allowlist/{whose}" for whose in ("child", "own_process", "ancestors")),
    ),
    "/proc of another process, and signals to it": (
        *(f"process_isolation/{what}" for what in ("see", "environment", "signal", "memory_of_parent")),
    ),
    "tracing": ("syscall_filter/trace", "process_isolation/trace"),
    "io_uring": ("syscall_filter/io_uring",),
    "a user namespace inside": ("syscall_filter/namespaces", "syscall_filter/namespaces_by_clone3"),
    "a key of the kernel": ("syscall_filter/keyring",),
    "hundreds of processes": ("process_count_limit/fork",),
    "more memory than is permitted": ("memory_limit/single", "memory_limit/mapped"),
    "more bytes than are permitted in the working directory": (
        *(f"filesystem_bytes_limit/{how}" for how in ("one_file", "many_files", "reserved")),
    ),
    "a daemon after the end": ("process_tree_cleanup/daemon", "process_tree_cleanup/relay"),
    "the host killed": ("orphan_cleanup/silent", "orphan_cleanup/daemon"),
    "the host and its group asked to end": ("orphan_cleanup/terminated",),
    "the deadline": ("timeout/busy", "timeout/deaf", "timeout/held_pipe"),
}
"""What broke other sandboxes, and the attacks that try just that."""

SOME_NEED_MORE = {
    *("network_deny/multipath", "syscall_filter/io_uring", "syscall_filter/keyring"),
    *("process_isolation/trace", "process_isolation/memory_of_parent"),
}
"""They mean nothing on a host that closes these to everybody."""


@pytest.mark.parametrize("name", HOSTS)
def test_every_claim_is_proved_or_is_none(name: str, home: Path) -> None:
    host, memory, processes = HOSTS[name]
    if name != "ordinary_user":
        os.chown(home, 0, 0)
    code, results = licet(host, home, "backends", "verify", "restricted_linux")
    leaked = [one for one in results["results"] if one["outcome"] == "leaked"]  # type: ignore[attr-defined]
    assert (code, leaked) == (0, [])
    assert results["held"] > 80  # type: ignore[operator]
    if name in {"root", "ordinary_user"}:
        held_rows(results)
    assert level(results, "process_count_limit") == processes
    assert level(results, "network_filter") == "enforced"
    if memory is not None:
        assert level(results, "memory_limit") == memory


def test_where_nothing_can_be_made_it_says_what_could_be_changed(home: Path) -> None:
    host = [*less(NO_USER_NAMESPACES), *as_user()]
    code, found = licet(host, home, "backends", "show", "restricted_linux")
    assert code == 0
    assert "may make no namespaces" in json.dumps(found)
