"""Which walls this kernel can put up, and which stand round a process.

Rules this module keeps:

- looking starts nothing and changes nothing;
- each wall is there or not by itself, and one that is missing says why;
- of a process it is told what the kernel shows. A Landlock domain is not shown: that it was entered follows
  from its launcher, which goes no further otherwise.
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path

from licet.supervise.kernel import landlock_version
from licet.supervise.walls.calls import MACHINES, number

FILES_SINCE = 3  # before that a file that may be read could be cut by opening it
_ACTION_KNOWN, _ALLOW = 2, 0x7FFF0000
_NO_DESCRIPTOR = (1 << 31) - 1


class Wall(StrEnum):
    """A wall, by what it keeps a program from."""

    apart = "apart"
    """Its host's descriptors, error output, terminal and folder; and it ends with the thread that made it."""
    privileges = "privileges"
    """Capabilities, and programs that would give new ones."""
    calls = "calls"
    """All system calls but those of a program that computes."""
    files = "files"
    """All files but those that it needs to start, and TCP ports and others' processes as far as known."""


@dataclass(frozen=True, slots=True)
class Walls:
    """The walls that can stand here, and why each other can't; `landlock` is the version that is used."""

    standing: frozenset[Wall] = frozenset()
    missing: Mapping[Wall, str] = field(default_factory=dict)
    landlock: int = 0

    def unseen(self, status: Mapping[str, str]) -> list[str]:
        """What a process with this `status` (see `seen`) lacks of the walls that the kernel shows."""
        expected = {
            Wall.privileges: {"NoNewPrivs": "1", "CapEff": "0" * 16},
            Wall.calls: {"Seccomp": "2"},
        }
        return [
            f"{name} {status.get(name, 'unknown')}"
            for wall, lines in expected.items()
            for name, value in lines.items()
            if wall in self.standing and status.get(name) != value
        ]


def seen(pid: int) -> dict[str, str]:
    """The lines of the status of a process by name, as the kernel tells them; empty if it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text("utf-8", "replace").splitlines()
    except OSError:
        return {}
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


@cache
def look() -> Walls:
    """Look which walls a launcher can put up here."""
    reason = _unlaunchable()
    if reason is not None:
        return Walls(missing=dict.fromkeys(Wall, reason))
    standing, missing = {Wall.apart, Wall.privileges}, {}
    version = landlock_version()
    if version >= FILES_SINCE:
        standing.add(Wall.files)
    else:
        missing[Wall.files] = f"this kernel has no Landlock of today (ABI {version}, needed {FILES_SINCE})"
    if _filters():
        standing.add(Wall.calls)
    else:
        missing[Wall.calls] = "this kernel filters no system calls"
    return Walls(frozenset(standing), missing, version if Wall.files in standing else 0)


def _unlaunchable() -> str | None:
    """Why no launcher can work here, None if one can."""
    if sys.platform != "linux":
        return "these walls are Linux's"
    from licet.supervise.walls.memory import Unrunnable, executable

    machine = os.uname().machine
    if machine not in MACHINES or struct.calcsize("P") != 8:
        return f"no launcher is known for this machine, `{machine}`"
    if _call("close_range", _NO_DESCRIPTOR, _NO_DESCRIPTOR, 0) < 0:
        return "this kernel can't close all descriptors at once (Linux 5.9)"
    try:
        os.close(executable(b""))
    except Unrunnable as problem:
        return str(problem)
    return None


def _filters() -> bool:
    return _call("seccomp", _ACTION_KNOWN, 0, struct.pack("<I", _ALLOW)) == 0


def _call(name: str, *arguments: int | bytes) -> int:
    """Make a system call here; one that changes nothing."""
    from licet.supervise._walls import libc

    call, found = libc(), number(name, os.uname().machine)
    return -1 if call is None or found is None else call("syscall", found, *arguments)
