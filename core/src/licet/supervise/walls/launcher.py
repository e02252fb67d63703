"""A launcher: an executable file that walls its own process in, and then becomes a program.

Rules this module keeps:

- a wall that was asked for and can't stand ends the process before the program begins;
- the program keeps standard input and output, and no other descriptor; its error output goes nowhere;
- it ends with the thread that started it: the kernel kills it then, whatever it is doing;
- whoever starts the launcher changes nothing of it: neither arguments nor environment reach the program.
"""

from __future__ import annotations

import os
import struct
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from licet.supervise.walls import landlock, memory, seccomp
from licet.supervise.walls.image import FAILURES, Image
from licet.supervise.walls.profiles import computing
from licet.supervise.walls.standing import Wall, Walls

_CWD, _PATH_ONLY, _TO_WRITE = -100, 0x280000, 1  # AT_FDCWD, O_PATH | O_CLOEXEC, O_WRONLY
_NO_NEW_PRIVILEGES, _DIES_WITH_PARENT, _SIGKILL = 38, 1, 9
_CAPABILITIES = 0x20080522  # the version of their form that knows 64 of them
_LIMITS = {1: 0, 4: 0, 7: 64, 8: 0, 12: 0}
"""By number: no written file, no core file, few descriptors, no locked memory, no message queue."""
_FIRST_VICTIM = b"1000"  # when memory runs out


@dataclass(frozen=True, slots=True)
class Confinement:
    """What a launcher becomes, and behind which walls.

    `argv` begins with an absolute path. Where the wall `files` stands, `programs` are the files that may be
    executed and read, `readable` those that may be read, `folders` those whose names may be listed as well; a
    folder stands for all below it. What does not exist is left out.
    """

    argv: tuple[str, ...]
    walls: Walls
    environment: Mapping[str, str] = field(default_factory=dict)
    programs: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    machine: str = field(default_factory=lambda: os.uname().machine)


class Launcher:
    """A launcher for this process and its threads; `path` names it as long as it is open.

    Raises:
        memory.Unrunnable: this system executes no file in memory.
    """

    def __init__(self, confinement: Confinement) -> None:
        self._image = program(confinement, os.getpid())
        descriptor = memory.executable(self._image.content())
        self.path = memory.path_of(descriptor)
        self._close = weakref.finalize(self, os.close, descriptor)

    def failed_to(self, exit_code: int) -> str | None:
        """What a launcher could not do that ended with this code; None if it is none of its codes."""
        return self._image.failed_at(exit_code)

    def close(self) -> None:
        """Release the file; no process is started from it any more. Again does nothing more."""
        self._close()


def program(confinement: Confinement, parent: int) -> Image:
    """The calls by which a child of the process `parent` becomes what `confinement` says.

    Raises:
        KeyError: the machine is not known here.
    """
    image, walls = Image(confinement.machine), confinement.walls
    _stand_apart(image)
    image.call("prctl", _NO_NEW_PRIVILEGES, 1, what="renounce new privileges")
    if walls.landlock:
        _close_files(image, confinement)
    if Wall.privileges in walls.standing:
        header = image.data(struct.pack("<II", _CAPABILITIES, 0))
        image.call("capset", header, image.data(bytes(24)), what="give up its capabilities")
    # after all that changes its rights, which would make the kernel forget it
    image.call("prctl", _DIES_WITH_PARENT, _SIGKILL, what="be killed with its host")
    image.call("getppid", least=parent, most=parent, what="find its host alive")
    if Wall.calls in walls.standing:
        count, lines = seccomp.program(confinement.machine, computing(signals=_confines_signals(walls)))
        image.call("seccomp", 1, 0, image.words(count, image.data(lines)), what="filter its system calls")
    argv = [image.text(word) for word in confinement.argv]
    variables = [image.text(f"{name}={value}") for name, value in confinement.environment.items()]
    image.call("execve", argv[0], image.words(*argv, 0), image.words(*variables, 0), what="start the program")
    return image


def _confines_signals(walls: Walls) -> bool:
    return walls.landlock >= landlock.SCOPES_SINCE


def _stand_apart(image: Image) -> None:
    """Let go of what comes from the host; from here on the next descriptor is 3."""
    image.call("close_range", 3, (1 << 32) - 1, 0, what="close the descriptors of its host")
    null = image.text("/dev/null")
    image.call("openat", _CWD, null, _TO_WRITE, least=3, most=3, what="open `/dev/null`")
    image.call("dup3", 3, 2, 0, least=2, most=2, what="let its error output go")
    image.call("close", 3)
    # where there is no such file, nothing is open as 3, and both that follow fail
    image.call("openat", _CWD, image.text("/proc/self/oom_score_adj"), _TO_WRITE, least=FAILURES)
    image.call("write", 3, image.data(_FIRST_VICTIM), len(_FIRST_VICTIM), least=FAILURES)
    image.call("close", 3, least=FAILURES)
    image.call("setsid", least=1, what="have a session of its own")
    image.call("umask", 0o077)
    image.call("chdir", image.text("/"), what="leave the folder of its host")
    for kind, most in _LIMITS.items():
        image.call("prlimit64", 0, kind, image.words(most, most), 0, what=f"limit resource {kind}")


def _close_files(image: Image, confinement: Confinement) -> None:
    version = min(confinement.walls.landlock, landlock.KNOWN)
    ruleset = landlock.ruleset(version)
    attributes = image.data(ruleset)
    what = "make a wall round files"
    image.call("landlock_create_ruleset", attributes, len(ruleset), 0, least=3, most=3, what=what)
    for rights, paths in (
        (landlock.PROGRAMS, confinement.programs),
        (landlock.FILES, confinement.readable),
        (landlock.FOLDERS, confinement.folders),
    ):
        rule = image.data(landlock.below(rights, 4))
        for path in paths:
            if Path(path).exists():
                image.call(
                    "openat", _CWD, image.text(path), _PATH_ONLY, least=4, most=4, what=f"open `{path}`"
                )
                image.call("landlock_add_rule", 3, 1, rule, 0, what=f"open `{path}` to the program")
                image.call("close", 4)
    image.call("landlock_restrict_self", 3, 0, most=0, what="go behind a wall round files")
    image.call("close", 3)
