"""What stands behind Monty's language: its walls of the kernel, round plain Python.

Attacks on what the kernel is said to hold run here as well. Code that has broken the interpreter can do what
native code can, and an interpreter without any restriction, in the worker's place, shows what that is.

Rules this module keeps:

- the walls are put up by the same launcher as a worker's, from the same description; beyond a worker's, the
  files of Python itself can be read, without which no attack would run;
- runs are ended by their deadline, by the limit `output`, and with their task; nothing stays.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import sysconfig
from dataclasses import replace
from pathlib import Path

from licet.backend import Descriptor, Host, Language, Outcome, Termination
from licet.errors import LaunchFailed
from licet.plan import ExecutionPlan
from licet.supervise.bootstrap import FLAGS
from licet.supervise.walls import Confinement, Launcher, Walls, look
from licet.supervise.walls.memory import Unrunnable

from licet_monty import binary as binaries
from licet_monty.claims import contract
from licet_monty.walls import confinement

_PIECE = 1 << 16


class BehindMonty:
    """Runs plain Python behind the walls of a worker; `binary` and `walls` as for `MontyBackend`."""

    def __init__(self, binary: Path | None = None, walls: Walls | None = None) -> None:
        self._binary = binary or binaries.locate()
        self._walls = look() if walls is None else walls
        self._descriptor: Descriptor | None = None

    def describe(self) -> Descriptor:
        """Describe the walls that can be put up here."""
        if self._descriptor is None:
            self._descriptor = Descriptor(
                name="behind_monty",
                version=binaries.version(),
                sandbox_enforcement_contract=contract(binaries.digest(self._binary), self._walls),
                language=Language(f"CPython {sys.version_info.major}.{sys.version_info.minor}"),
                unavailable=None if self._walls.standing else "there are no walls of the kernel here",
                configuration=binaries.state(self._binary),
            )
        return self._descriptor

    async def open(self, plan: ExecutionPlan, host: Host) -> _Run:
        """Make the walls.

        Raises:
            LaunchFailed: they can't be had.
        """
        if self._binary is None:
            raise LaunchFailed("there is no binary of monty", advice="install `licet-monty` anew")
        walls = confinement(self._binary, self._walls)
        try:
            return _Run(Launcher(_with_python(walls, plan)))
        except Unrunnable as problem:
            raise LaunchFailed(f"the walls round a worker can't be put up: {problem}") from None

    async def close(self) -> None:
        """Nothing is held between runs."""


def _with_python(walls: Confinement, plan: ExecutionPlan) -> Confinement:
    """The same walls, with Python in the place of the worker."""
    python = os.path.realpath(sys.executable)
    paths = sysconfig.get_paths()
    own = {paths["stdlib"], paths["platstdlib"], sysconfig.get_config_var("DESTSHARED") or ""}
    shared = sysconfig.get_config_var("INSTSONAME") if sysconfig.get_config_var("Py_ENABLE_SHARED") else None
    return replace(
        walls,
        argv=(python, *FLAGS, "-c", plan.code),
        programs=(*walls.programs, python),
        readable=(*walls.readable, *([f"{sysconfig.get_config_var('LIBDIR')}/{shared}"] if shared else [])),
        folders=tuple(filter(None, sorted(own))),
    )


class _Run:
    """One process behind the walls."""

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher

    async def run(self, plan: ExecutionPlan, host: Host) -> Outcome:
        """Run `plan.code`, and end it in time."""
        process = await asyncio.create_subprocess_exec(
            self._launcher.path,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            close_fds=False,  # the launcher closes them: that is one of the walls
        )
        try:
            async with asyncio.timeout(plan.limits.wall_time):
                within = await _hand_on(process, host)
                if not within:
                    return Outcome(Termination.output_limit)
                code = await process.wait()
        except TimeoutError:
            return Outcome(Termination.timeout)
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        failed = self._launcher.failed_to(code)
        return Outcome(
            Termination.exited,
            exit_code=code if code >= 0 else 128 - code,
            detail=failed and f"the launcher could not {failed}, or the code exited with {code}",
        )

    async def close(self) -> None:
        """Release the launcher."""
        self._launcher.close()


async def _hand_on(process: asyncio.subprocess.Process, host: Host) -> bool:
    """Give the host all output; False once it has had enough."""
    if process.stdout is None:
        return True
    while data := await process.stdout.read(_PIECE):
        if not host.write("stdout", data):
            return False
    return True
