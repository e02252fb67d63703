"""What this host lacks, so that connections could be made for code that has no network."""

from __future__ import annotations

import os
import struct
import sys
from functools import cache
from pathlib import Path

from licet.supervise.walls.calls import MACHINES, number

_IS_KNOWN, _ASK = 2, 0x7FC00000
_LISTENER, _TO_THE_END = 8, 32
_SEES_INTO_OTHERS = 1 << 19  # CAP_SYS_PTRACE
_TRACING = "/proc/sys/kernel/yama/ptrace_scope"


@cache
def shortfall() -> str | None:
    """Why no connection can be made for code here; None if one can. Looking changes nothing."""
    if sys.platform != "linux" or os.uname().machine not in MACHINES:
        return "connections are made for code by what Linux has, on machines whose system calls are known"
    if _release() < (5, 9):
        return f"this kernel is {os.uname().release}, and connections for code need Linux 5.9"
    if not _can_ask():
        return "this kernel asks nobody about system calls"
    return _blind()


def listening() -> int:
    """How a filter is made that asks.

    Since Linux 5.19 a caller that was heard waits for its answer. Before, a signal that the code handles ends
    the call with EINTR, and the answer is lost.
    """
    return _LISTENER | (_TO_THE_END if _release() >= (5, 19) else 0)


def _release() -> tuple[int, ...]:
    return tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2])


def _can_ask() -> bool:
    from licet.supervise._walls import libc

    call, found = libc(), number("seccomp", os.uname().machine)
    return call is not None and call("syscall", found or 0, _IS_KNOWN, 0, struct.pack("<I", _ASK)) == 0


def _blind() -> str | None:
    """Why this process can't look into the code that it has run."""
    status = Path("/proc/self/status").read_text("utf-8", "replace")
    sees = int(status.partition("\nCapEff:")[2].split(maxsplit=1)[0], 16) & _SEES_INTO_OTHERS
    try:
        scope = int(Path(_TRACING).read_text("ascii"))
    except (OSError, ValueError):
        scope = 0
    if scope >= 3 or (scope == 2 and not sees):
        return f"this host lets no process look into another (`{_TRACING[len('/proc/sys/') :]}` is {scope})"
    if os.geteuid() == 0 and not sees:
        return "this process is root without the capability CAP_SYS_PTRACE, by which it sees what is asked"
    return None
