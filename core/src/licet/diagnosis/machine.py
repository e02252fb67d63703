"""What this host is, as far as it decides what can be enforced: looked at, and tried out.

Rules this module keeps:

- what can be tried harmlessly is tried, in a process that ends with it; nothing is guessed from a version;
- looking changes nothing that outlives it, and what can't be found out is None, never a guess.
"""

from __future__ import annotations

import errno
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from licet.probe.situation import CONTAINER_MARKERS
from licet.supervise.kernel import keeper_shortfall, landlock_refusal, landlock_version

_PATIENCE_S = 20.0
_SETTINGS = (
    "kernel/apparmor_restrict_unprivileged_userns",
    "kernel/io_uring_disabled",
    "kernel/unprivileged_userns_clone",
    "kernel/yama/ptrace_scope",
    "user/max_user_namespaces",
)
CONTROLLERS = frozenset({"cpu", "memory", "pids"})
"""The controllers that bound a whole tree of processes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cgroups:
    """The control groups of this process.

    `version` is 0 where there are none, `usable` are those of `CONTROLLERS` with which this user can bound a
    group of its own.
    """

    version: Literal[0, 1, 2] = 0
    usable: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Facts of one host, for one user; of a trial, 0 says that it went well, else it is the error number.

    `user` is the effective user id, None where there are none. `landlock` is its ABI, and `landlock_refusal`
    the error number if there is none. `namespaces` is the trial to make a user namespace, `nested` the one to
    make a network namespace in it. `supervision` says why no process can be supervised, None if one can.
    `settings` are kernel settings by their path below `/proc/sys`, those that exist.
    """

    platform: str = "linux"
    kernel: str = ""
    python: str = ""
    user: int | None = None
    container: str | None = None
    supervision: str | None = None
    landlock: int = 0
    landlock_refusal: int = 0
    seccomp: int | None = None
    namespaces: int | None = None
    nested: int | None = None
    io_uring: int | None = None
    kvm: int | None = None
    cgroups: Cgroups = Cgroups()
    settings: Mapping[str, str] = field(default_factory=dict)


def measure() -> Machine:
    """Look at this host; blocks for some 50 ms, since it starts a process."""
    linux = sys.platform == "linux"
    tried = _try_out() if linux else {}
    return Machine(
        platform=sys.platform,
        kernel=f"{platform.system()} {platform.release()}",
        python=f"{platform.python_implementation()} {platform.python_version()}",
        user=os.geteuid() if hasattr(os, "geteuid") else None,
        container=next((marker for marker in CONTAINER_MARKERS if Path(marker).exists()), None),
        supervision=keeper_shortfall(),
        landlock=landlock_version(),
        landlock_refusal=landlock_refusal(),
        seccomp=tried.get("seccomp"),
        namespaces=tried.get("namespaces"),
        nested=tried.get("nested"),
        io_uring=tried.get("io_uring"),
        kvm=_open("/dev/kvm") if linux else None,
        cgroups=_cgroups() if linux else Cgroups(),
        settings=_settings() if linux else {},
    )


_TRIALS = """\
import ctypes, json
library = ctypes.CDLL(None, use_errno=True)
def tried(call, *arguments, well=0):
    number = 0 if call(*arguments) >= 0 else ctypes.get_errno()
    return 0 if number == well else number
print(json.dumps({
    "seccomp": tried(library.prctl, 22, 2, None, 0, 0, well=14),
    "io_uring": tried(library.syscall, 425, 1, ctypes.create_string_buffer(120)),
    "namespaces": tried(library.unshare, 0x10000000),
    "nested": tried(library.unshare, 0x40000000),
}))
"""
"""PR_SET_SECCOMP without a filter fails with EFAULT (14) where filters are known; 425 is io_uring_setup."""


def _try_out() -> dict[str, int]:
    command = [sys.executable, "-I", "-S", "-B", "-c", _TRIALS]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_PATIENCE_S, stdin=subprocess.DEVNULL)
        found: dict[str, int] = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return {}
    return found


def _open(device: str) -> int:
    try:
        os.close(os.open(device, os.O_RDWR | os.O_CLOEXEC))
    except OSError as problem:
        return problem.errno or errno.EIO
    return 0


def _settings() -> dict[str, str]:
    found = ((name, _read(f"/proc/sys/{name}")) for name in _SETTINGS)
    return {name: value for name, value in found if value is not None}


def _cgroups() -> Cgroups:
    """The groups that this process is in, and what of them this user may hand on."""
    joined = dict(_joined(line) for line in (_read("/proc/self/cgroup") or "").splitlines())
    mounts = [line.split() for line in (_read("/proc/self/mountinfo") or "").splitlines()]
    unified = [Path(m[4]) for m in mounts if "-" in m and m[m.index("-") + 1] == "cgroup2"]
    single = {m[-1]: Path(m[4]) for m in mounts if "-" in m and m[m.index("-") + 1] == "cgroup"}
    if unified and "" in joined:
        usable = _handed_on(unified[0] / joined[""].lstrip("/")) & CONTROLLERS
        if usable or not single:
            return Cgroups(version=2, usable=usable)
    if not single:
        return Cgroups()
    named = {
        name
        for options, mount in single.items()
        for name in options.split(",")
        for group in (path for names, path in joined.items() if name in names.split(","))
        if _may_make_groups(mount / group.lstrip("/"))
    }
    return Cgroups(version=1, usable=CONTROLLERS & named)


def _joined(line: str) -> tuple[str, str]:
    """The controllers of a line of `/proc/self/cgroup`, and the group joined for them."""
    _, controllers, path = line.split(":", 2)
    return controllers, path


def _handed_on(group: Path) -> frozenset[str]:
    if not _may_make_groups(group) or not os.access(group / "cgroup.subtree_control", os.W_OK):
        return frozenset()
    return frozenset((_read(str(group / "cgroup.controllers")) or "").split())


def _may_make_groups(group: Path) -> bool:
    return os.access(group, os.W_OK | os.X_OK) and os.access(group / "cgroup.procs", os.W_OK)


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text("utf-8", "replace").strip()
    except OSError:
        return None
