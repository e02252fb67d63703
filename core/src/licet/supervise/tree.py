"""The host's own reach into a run's processes, for when its keeper is lost.

Rules this module keeps:

- a process is killed through a descriptor that was opened while its parent was known, or as a child that
  was not reaped yet: never a number that may mean somebody else by now;
- this reach is second best: a descendant with a session of its own is beyond it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path

from licet.supervise.descriptors import Descriptors


def kill(pid: int) -> None:
    """Kill a child that was not reaped yet."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def forbid_core_dumps(pid: int) -> None:
    """Keep a new child, which has not begun yet, and all of its descendants from writing core files."""
    if sys.platform == "linux":
        import resource

        with contextlib.suppress(OSError):
            resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))


class Guest:
    """The main process of a run, the leader of a session, seen from the host as a grandchild."""

    def __init__(self, pid: int, keeper: int, fds: Descriptors) -> None:
        self.pid = pid
        self._fd: int | None = None
        if sys.platform == "linux":
            with contextlib.suppress(OSError):
                fd = fds.own(os.pidfd_open(pid))
                if _stat(str(pid))[1] == str(keeper):
                    self._fd = fd

    def kill_session(self) -> None:
        """Kill the guest and whoever is still in its session."""
        if sys.platform != "linux":
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            return
        if self._fd is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            signal.pidfd_send_signal(self._fd, signal.SIGKILL)
        for _ in range(100):
            members = [entry.name for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
            alive = [
                pid for pid in members if (fields := _stat(pid))[3] == str(self.pid) and fields[0] != "Z"
            ]
            if not alive:
                return
            for pid in alive:
                kill(int(pid))


def _stat(pid: str) -> list[str]:
    """State, parent, group and session of a process; empty texts if it is gone."""
    try:
        text = Path("/proc", pid, "stat").read_text(errors="replace")
    except OSError:
        return ["", "", "", ""]
    return text.rpartition(")")[2].split()[:4]
