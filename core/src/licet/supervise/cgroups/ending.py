"""The end of a group: whoever is in it is killed, and its folder is removed.

Rules this module keeps:

- a process is killed through a descriptor that was opened before the group was seen to list it still: a
  number that means somebody else by now is never signalled;
- before processes are looked for one by one, no new one may be made, so that nobody outruns the search;
- nothing here waits longer than its deadline: what can't be ended by then is said, and left to a sweep.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
import time

from licet.supervise.cgroups.files import open_folder, read, write

_SHORTEST, _LONGEST, _GROWTH = 0.00005, 0.002, 1.5  # seconds between two tries, and how that grows


def members(at: int) -> set[int]:
    """The processes in a group, by their numbers in this namespace; those outside of it are left out."""
    return {int(line) for line in (read("cgroup.procs", at) or "").split() if line.isdecimal()} - {0}


def kill(at: int) -> None:
    """Kill all that are in a group now, and keep others from being made in it; nobody is waited for."""
    try:
        write("cgroup.kill", "1", at)
    except OSError:
        with contextlib.suppress(OSError):
            write("pids.max", "0", at)
        _kill_members(at)


def _kill_members(at: int) -> None:
    if sys.platform != "linux":
        return
    opened: dict[int, int] = {}
    try:
        for pid in members(at):
            with contextlib.suppress(OSError):
                opened[pid] = os.pidfd_open(pid)
        for pid in members(at) & opened.keys():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(opened[pid], signal.SIGKILL)
    finally:
        for descriptor in opened.values():
            os.close(descriptor)


def remove(name: str, at: int, seconds: float) -> bool:
    """Remove the group `name` below an open one, killing who is in it; False if it is still there then."""
    deadline = time.monotonic() + seconds
    pause = _SHORTEST
    while True:
        try:
            os.rmdir(name, dir_fd=at)
        except FileNotFoundError:
            return True
        except OSError as problem:
            if problem.errno != errno.EBUSY or time.monotonic() >= deadline:
                return False
        else:
            return True
        _empty(name, at, deadline)
        time.sleep(pause)
        pause = min(pause * _GROWTH, _LONGEST)


def _empty(name: str, at: int, deadline: float) -> None:
    """Kill who is in the group, and remove the groups below it."""
    try:
        here = open_folder(name, at)
    except OSError:
        return
    try:
        kill(here)
        for below in groups_below(here):
            remove(below, here, deadline - time.monotonic())
    finally:
        os.close(here)


def groups_below(at: int) -> list[str]:
    """The names of the groups right below an open one."""
    with os.scandir(at) as found:
        return [one.name for one in found if one.is_dir(follow_symlinks=False)]
