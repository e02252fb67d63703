"""What a child of this process takes from it at birth.

Rules this module keeps: two births that are equal give processes that nobody can tell apart, as far as this
can be seen; a Landlock domain can't.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_THREAD = Path("/proc/thread-self")
_STATUS = (
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
_NAMESPACES = ("mnt", "net", "user", "ipc", "uts", "cgroup")


@dataclass(frozen=True, slots=True)
class Birth:
    """A program, its environment, and what is `inherited` beside them."""

    interpreter: str
    environment: Mapping[str, str]
    inherited: object = None


def inheritance() -> object:
    """Rights, limits, umask, ignored signals, processors, control groups, namespaces, root, priority."""
    if sys.platform != "linux":
        return None
    import resource

    status = (_THREAD / "status").read_bytes().split(b"\n")
    root = Path("/").stat()
    return (
        [line for line in status if line.startswith(_STATUS)],
        (_THREAD / "cgroup").read_bytes(),
        [(_THREAD / "ns" / name).readlink() for name in _NAMESPACES],
        (root.st_dev, root.st_ino),
        os.getpriority(os.PRIO_PROCESS, 0),
        os.sched_getscheduler(0),
        [resource.getrlimit(limit) for limit in _LIMITS],
    )


_LIMITS = range(16)
