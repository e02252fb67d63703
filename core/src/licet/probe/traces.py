"""Finding and ending the processes of a probe, from the host's side (Linux).

Rules this module keeps:

- a process belongs to a probe if it was started with the probe's token in its environment, or descends from
  a process that does; nothing else is ever signalled;
- a process is signalled through a descriptor that was opened before it was looked at.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Iterable
from pathlib import Path

VARIABLE = "LICET_PROBE"
_LOOKS = 10  # a process may be missed that takes the place of another while one looks
_LINUX = sys.platform == "linux"


def living(token: str) -> list[int]:
    """The processes whose token begins with `token`; none where the system does not show them."""
    mark = f"\0{VARIABLE}={token}".encode()
    return [pid for pid in _processes() if mark in b"\0" + _environment(pid)]


def descendants(root: int) -> list[int]:
    """All processes below `root`."""
    children: dict[int, list[int]] = {}
    for pid in _processes():
        children.setdefault(_parent(pid), []).append(pid)
    found, waiting = [], [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


class Watched:
    """Processes that are watched by descriptor, so that a reused number is never taken for one of them."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._fds: list[int] = []
        if _LINUX:
            for pid in pids:
                with contextlib.suppress(OSError):
                    self._fds.append(os.pidfd_open(pid))

    def outlive(self, seconds: float) -> bool:
        """Whether one of them is still alive after so many seconds; returns as soon as all are gone."""
        until = time.monotonic() + seconds
        waiting = list(self._fds)
        while waiting:
            gone, _, _ = select.select(waiting, [], [], max(until - time.monotonic(), 0))
            if not gone:
                return True
            waiting = [fd for fd in waiting if fd not in gone]
        return False

    def kill(self) -> None:
        """End all of them."""
        for fd in self._fds:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(fd, signal.SIGKILL)

    def close(self) -> None:
        """Release the descriptors."""
        while self._fds:
            os.close(self._fds.pop())


def outlived(token: str, seconds: float) -> bool:
    """Whether processes that carry `token` live on for so many seconds, the same ones or others."""
    until = time.monotonic() + seconds
    empty = 0
    while empty < _LOOKS:
        pids = living(token)
        empty = 0 if pids else empty + 1
        watched = Watched(pids)
        try:
            watched.outlive(until - time.monotonic())
        finally:
            watched.close()
        if pids and time.monotonic() >= until:
            return True
    return False


def sweep(token: str) -> None:
    """End every process that carries `token`, those that it starts meanwhile included; blocks a second."""
    until = time.monotonic() + 1
    while (pids := living(token)) and time.monotonic() < until:
        watched = Watched(pids)
        try:
            watched.kill()
            watched.outlive(0.1)
        finally:
            watched.close()


def resident() -> int:
    """Bytes of this process that are in memory; 0 where that is not shown."""
    if not _LINUX:
        return 0
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _processes() -> list[int]:
    if not _LINUX:
        return []
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]


def _environment(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def _parent(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/stat").read_bytes()
        return int(status.rpartition(b")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return 0
