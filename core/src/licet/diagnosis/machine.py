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

from licet.probe.situation import CONTAINER_MARKERS
from licet.supervise.cgroups import Groups, look
from licet.supervise.kernel import keeper_shortfall, landlock_refusal, landlock_version

_PATIENCE_S = 20.0
_SETTINGS = (
    "kernel/apparmor_restrict_unprivileged_userns",
    "kernel/io_uring_disabled",
    "kernel/unprivileged_userns_clone",
    "kernel/yama/ptrace_scope",
    "user/max_user_namespaces",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Facts of one host, for one user; of a trial, 0 says that it went well, else it is the error number.

    `user` is the effective user id, None where there are none. `landlock` is its ABI, and `landlock_refusal`
    the error number if there is none. `namespaces` is the trial to make a user namespace, `nested` the one to
    make a network namespace in it. `supervision` says why no process can be supervised, None if one can.
    `cgroups` says what of a whole tree this user can bound, and why not the rest. `settings` are kernel
    settings by their path below `/proc/sys`, those that exist.
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
    cgroups: Groups = field(default_factory=Groups)
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
        cgroups=look(),
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


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text("utf-8", "replace").strip()
    except OSError:
        return None
