"""What a child of this process takes over from it at birth, beside its program, environment and descriptors.

Rules this module keeps: where two answers are equal, children that were started then can't be told apart, as
far as it can be seen; a Landlock domain can't.
"""

from __future__ import annotations

import os
from pathlib import Path

_THREAD = Path("/proc/thread-self")
_STATUS, _GROUPS, _ROOT = _THREAD / "status", _THREAD / "cgroup", Path("/")
_LINES = (
    b"Umask",
    b"Uid",
    b"Gid",
    b"Groups",
    b"SigIgn",
    b"Cap",
    b"NoNewPrivs",
    b"Seccomp",
    b"Cpus_",
    b"Mems_",
)
_NAMESPACES = tuple(_THREAD / "ns" / name for name in ("mnt", "net", "user", "ipc", "uts", "cgroup"))
_LIMITS = range(16)  # every one that Linux has


def inheritance() -> tuple[object, ...]:
    """Rights, limits, umask, ignored signals, processors, groups, namespaces, root, priority (on Linux)."""
    import resource

    root = _ROOT.stat()
    return (
        [line for line in _STATUS.read_bytes().split(b"\n") if line.startswith(_LINES)],
        _GROUPS.read_bytes(),
        [space.readlink() for space in _NAMESPACES],
        (root.st_dev, root.st_ino),
        os.getpriority(os.PRIO_PROCESS, 0),
        os.sched_getscheduler(0),
        [resource.getrlimit(limit) for limit in _LIMITS],
    )
