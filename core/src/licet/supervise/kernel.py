"""What this host's kernel can do for supervision. Looking changes nothing and starts nothing.

The wall that `Spec.confine_signals` asks for is a Landlock scope (Linux 6.12, ABI 6): code inside can signal
and trace its own tree alone, so that it can neither kill its keeper nor stop its host. It needs no
privilege, and root's code is inside it like any other.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path

_CREATE_RULESET = 444
_VERSION_FLAG = 1
_SCOPES_SINCE = 6


def landlock_version() -> int:
    """The Landlock ABI of the kernel, 0 where there is none."""
    return max(_landlock()[0], 0)


def landlock_refusal() -> int:
    """The error number with which the kernel refuses Landlock, 0 if it does not or was not asked."""
    return _landlock()[1]


@cache
def _landlock() -> tuple[int, int]:
    """What the kernel answers to whoever asks for its Landlock ABI: the ABI, and an error number."""
    if sys.platform != "linux":
        return 0, 0
    try:
        from licet.supervise._walls import libc

        call = libc()
        version = -1 if call is None else call("syscall", _CREATE_RULESET, 0, 0, _VERSION_FLAG)
    except (ImportError, OSError, AttributeError):
        return 0, 0
    return (version, 0) if version >= 0 else (version, _refusal())


def _refusal() -> int:
    """Ask again, for the error number: only a library that is loaded for it tells that."""
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    library.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION_FLAG)
    return ctypes.get_errno()


def can_confine_signals() -> bool:
    """Whether a run can be kept from signalling and tracing what is not its own."""
    return landlock_version() >= _SCOPES_SINCE


@cache
def keeper_shortfall() -> str | None:
    """Why no process can be supervised here, or None if one can."""
    if sys.platform == "win32":
        return _job_shortfall()
    try:
        import _ctypes  # noqa: F401
        import select  # noqa: F401
    except ImportError as problem:
        return f"this Python was built without `{problem.name}`, which the keeper needs"
    if sys.platform == "linux":
        try:
            os.close(os.pidfd_open(os.getpid()))
        except (AttributeError, OSError):
            return "this kernel has no process descriptors (Linux 5.3), which the keeper needs"
    return None


def _job_shortfall() -> str | None:
    try:
        from licet.supervise.windows.job import kept_limits

        kept_limits()
    except ImportError as problem:
        return f"this Python was built without `{problem.name}`, which supervision needs"
    except OSError as problem:
        return f"this system makes no Job Objects: {problem}"
    if sys.platform == "win32" and sys.getwindowsversion().major < 10:
        return "this Windows can't start a process in a job (Windows 10), which supervision needs"
    return None


@cache
def can_move_cgroups() -> bool:
    """Whether this user may move processes between control groups, and so kill past every other wall."""
    if sys.platform != "linux":
        return False
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
        mounts = [line.split(" - ")[0].split()[4] for line in _mounts() if " - cgroup" in line]
    except OSError:
        return False
    groups = {line.split(":", 2)[2].lstrip("/") for line in lines if line.count(":") >= 2}
    for mount in mounts:
        for group in groups:
            folder = Path(mount, group)
            while folder != Path(mount).parent:
                if os.access(folder / "cgroup.procs", os.W_OK):
                    return True
                folder = folder.parent
    return False


def _mounts() -> list[str]:
    return Path("/proc/self/mountinfo").read_text().splitlines()
