"""Walls of the Linux kernel round a program that is started by somebody else, such as a pool of workers.

What starts the program is given a launcher in its place: a file in memory that makes a list of system calls,
one after the other, and becomes the program by the last of them, in the same process. It costs a third of a
millisecond, needs no other program and no folder, and nothing of the host's process is changed.

- `look`: which walls this kernel has, and why one is missing; looking starts nothing;
- `Launcher`: the file, for as long as it is open; `confined`: the calls that go before the program;
- `landlock` and `seccomp`: what their walls let through; `calls`: the numbers of system calls;
- `image`: the program that makes the calls; `seen`: the walls round a process, read back from the kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from licet.lazy import attribute_importer

if TYPE_CHECKING:
    from licet.supervise.walls.launcher import Confinement, Launcher
    from licet.supervise.walls.standing import Wall, Walls, look, seen

__all__ = ["Confinement", "Launcher", "Wall", "Walls", "look", "seen"]

_HOMES = {
    "Confinement": "launcher",
    "Launcher": "launcher",
    "Wall": "standing",
    "Walls": "standing",
    "look": "standing",
    "seen": "standing",
}

__getattr__ = attribute_importer(__name__, _HOMES)
