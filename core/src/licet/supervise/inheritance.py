"""What a child of this process takes over from it at birth, beside its program, environment and descriptors.

Rules this module keeps: where two answers are equal, children that were started then can't be told apart, as
far as it can be seen; a Landlock domain can't.
"""

from __future__ import annotations

import os

from licet.supervise.readback import read

_THREAD = "/proc/thread-self"  # names, not paths: this is asked before every run
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
_NAMESPACES = tuple(f"{_THREAD}/ns/{name}" for name in ("mnt", "net", "user", "ipc", "uts", "cgroup"))
_LIMITS = range(16)  # every one that Linux has


def inheritance() -> tuple[object, ...]:
    """Rights, limits, umask, ignored signals, processors, groups, namespaces, root, priority (on Linux)."""
    import resource

    root = os.stat("/")  # noqa: PTH116
    return (
        [line for line in read(f"{_THREAD}/status").split(b"\n") if line.startswith(_LINES)],
        read(f"{_THREAD}/cgroup"),
        [os.readlink(space) for space in _NAMESPACES],  # noqa: PTH115
        (root.st_dev, root.st_ino),
        os.getpriority(os.PRIO_PROCESS, 0),
        os.sched_getscheduler(0),
        [resource.getrlimit(limit) for limit in _LIMITS],
    )
