"""Walls of the kernel round each worker, where the system has them: behind the language, should that break.

Rules this module keeps:

- a worker needs nothing but its binary and the system's libraries to start, and then its two pipes alone;
- what is described as walled is never started without its walls, nor from another binary than was described;
- nothing of the host's own process is changed, and nothing is put on disk.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Mapping
from pathlib import Path

from licet.errors import LaunchFailed
from licet.supervise.walls import Confinement, Launcher, Walls
from licet.supervise.walls.memory import Unrunnable

from licet_monty import digests

ARGUMENT = "subprocess"
"""How the binary is told to be a worker."""

_ENDED = re.compile(r"\(exit status: (\d{1,3})\)")
_ANEW = "start this program anew, so that it looks at what there is now"


def loaders() -> tuple[str, ...]:
    """What the system starts dynamic programs with, where it has it."""
    machine = os.uname().machine
    short = "x86-64.so.2" if machine == "x86_64" else f"{machine}.so.1"
    return (f"/lib64/ld-linux-{short}", f"/lib/ld-linux-{short}", f"/lib/ld-musl-{machine}.so.1")


def libraries() -> tuple[str, ...]:
    """The folders of the system's libraries, and where they are listed."""
    own = tuple(f"{root}/{os.uname().machine}-linux-gnu" for root in ("/lib", "/usr/lib"))
    if not any(Path(folder).is_dir() for folder in own):
        own = ("/lib64", "/usr/lib64", "/lib", "/usr/lib", "/nix/store", "/gnu/store")
    return ("/etc/ld.so.cache", *own)


def confinement(binary: Path, walls: Walls) -> Confinement:
    """The binary as a worker, behind `walls`."""
    return Confinement(
        (str(binary), ARGUMENT), walls, programs=(str(binary), *loaders()), readable=libraries()
    )


class Entrance:
    """What the pools of this process start their workers from: the binary, or a launcher that becomes it.

    `digest` is the SHA-256 of the binary as it was described.
    """

    def __init__(self, binary: Path, digest: str | None, walls: Walls) -> None:
        self.walls = walls
        self._binary = binary
        self._digest = digest
        self._launcher: Launcher | None = None
        self._as_it_was = ""
        self._guard = threading.Lock()

    def check(self) -> None:
        """Make sure that the binary is still the one that was described; a microsecond if nothing moved.

        Raises:
            LaunchFailed: it is not, or can't be read.
        """
        try:
            now = digests.as_it_is(self._binary)
            if now != self._as_it_was and digests.sha256(self._binary) != self._digest:
                raise LaunchFailed(
                    f"the binary `{self._binary}` is not the one any more that was described", advice=_ANEW
                )
        except OSError as problem:
            raise LaunchFailed(
                f"the binary `{self._binary}` can't be read: {(problem.strerror or '').lower()}",
                advice="install `licet-monty` anew; it brings the interpreter that it needs",
            ) from None
        self._as_it_was = now

    def path(self) -> Path:
        """What is to be started.

        Raises:
            LaunchFailed: the walls that were described can't be had.
        """
        with self._guard:
            if self._launcher is None and self.walls.standing:
                try:
                    self._launcher = Launcher(confinement(self._binary, self.walls))
                except Unrunnable as problem:
                    raise LaunchFailed(
                        f"the walls round a worker can't be put up: {problem}", advice=_ANEW
                    ) from None
            return self._binary if self._launcher is None else Path(self._launcher.path)

    def told(self, problem: BaseException) -> str:
        """Why no worker could be started, where it was a wall that could not be put up."""
        found = _ENDED.search(str(problem))
        failed = self._launcher.failed_to(int(found[1])) if found and self._launcher else None
        return str(problem) if failed is None else f"its launcher could not {failed}"

    def confirm(self, status: Mapping[str, str]) -> None:
        """Make sure that a worker with this status stands behind the walls that were described.

        Raises:
            LaunchFailed: it does not.
        """
        if unseen := self.walls.unseen(status):
            raise LaunchFailed(
                f"a worker stands without walls that were described: {', '.join(unseen)}", advice=_ANEW
            )
