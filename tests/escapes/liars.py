"""Backends that claim what they do not enforce: each must be caught by the attacks on what it lacks.

`Bare` claims everything and enforces nothing. The others are the real backends with one protection taken
away. A probe may make them anew in a process of its own, so each is made without arguments.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from licet import processes, supervise
from licet.backend import Backend, Descriptor, Host, Language, Outcome, Sandbox, Termination
from licet.contract import Control, Enforcement, Level, SandboxEnforcementContract
from licet.plan import ExecutionPlan
from licet.request import Action
from licet.supervise.walls import Wall, Walls
from licet_controlled_process import backend as controlled
from licet_controlled_process.backend import ControlledProcess
from licet_monty.backend import MontyBackend
from licet_monty.behind import BehindMonty
from pydantic_monty import Monty, MountDir

EVERYTHING = SandboxEnforcementContract(
    **{control.value: Enforcement(Level.enforced, "kernel", "promises") for control in Control}
)
ALL_ACTIONS: frozenset[Action] = frozenset({"read", "write", "network", "shell"})


class Bare:
    """Runs the code as any program of this user, waits for all of its output, and ends nothing."""

    def __init__(self) -> None:
        self._before = ""

    def describe(self) -> Descriptor:
        return _BARE

    async def open(self, plan: ExecutionPlan, host: Host) -> Sandbox:
        return _BareRun(self)

    async def close(self) -> None:
        return None

    def remember(self, code: str) -> str:
        """The code after that of earlier runs which only left something: as if one interpreter ran it all."""
        if "print(" in code:
            return self._before + code
        self._before += code + "\n"
        return code


_BARE = Descriptor("bare", "1", EVERYTHING, Language("CPython"), opens=ALL_ACTIONS)


class _BareRun:
    def __init__(self, backend: Bare) -> None:
        self._backend = backend

    async def run(self, plan: ExecutionPlan, host: Host) -> Outcome:
        code = self._backend.remember(plan.code)
        done = asyncio.get_running_loop().run_in_executor(None, _run_bare, code, plan.environment, host)
        while not done.done():
            with contextlib.suppress(asyncio.CancelledError):  # which it ignores
                await asyncio.wait([done])
        return Outcome(Termination.exited, exit_code=done.result())

    async def close(self) -> None:
        return None


def _run_bare(code: str, environment: Mapping[str, str], host: Host) -> int:
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-B", "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, **environment},
        cwd="/",
        close_fds=False,
    ) as process:
        assert process.stdout is not None
        while data := os.read(process.stdout.fileno(), 1 << 16):
            host.write("stdout", data)
        return process.wait()


class Unbounded(ControlledProcess):
    """The controlled process, with every wall and limit that it passes on to supervision taken away."""

    def describe(self) -> Descriptor:
        return _UNBOUNDED

    async def open(self, plan: ExecutionPlan, host: Host) -> Sandbox:
        return _Unbounded(**self._without())

    def _without(self) -> dict[str, Any]:
        return {}


_UNBOUNDED = replace(ControlledProcess().describe(), sandbox_enforcement_contract=EVERYTHING)


class _Unbounded:
    def __init__(self, **changes: Any) -> None:
        self._changes = changes

    async def run(self, plan: ExecutionPlan, host: Host) -> Outcome:
        spec = replace(controlled._spec(plan), **self._changes)
        return processes.outcome(spec, await supervise.run(spec, host.write))

    async def close(self) -> None:
        return None


class Unconfined(Unbounded):
    """Code may signal and trace its keeper."""

    def _without(self) -> dict[str, Any]:
        return {"confine_signals": False}


class Untimed(Unbounded):
    """The deadline is dropped."""

    def _without(self) -> dict[str, Any]:
        return {"wall_time": None}


class Unmetered(Unbounded):
    """The limit of processor time is dropped."""

    def _without(self) -> dict[str, Any]:
        return {"cpu_time": None}


class Roomy(Unbounded):
    """The limit of memory is dropped."""

    def _without(self) -> dict[str, Any]:
        return {"memory": None}


class Inheriting(Unbounded):
    """The environment of the host is handed on."""

    async def open(self, plan: ExecutionPlan, host: Host) -> Sandbox:
        return _Unbounded(environment={**os.environ, **plan.environment})


class Denying(Unbounded):
    """What looks like a secret, or like licet's own, is kept from the code; the rest is handed on."""

    async def open(self, plan: ExecutionPlan, host: Host) -> Sandbox:
        suspect = ("LICET", "CANARY", "PROBE", "SECRET", "TOKEN", "KEY", "PASSWORD")
        handed_on = {name: value for name, value in os.environ.items() if not any(w in name for w in suspect)}
        return _Unbounded(environment={**handed_on, **plan.environment})


class Elsewhere(Unbounded):
    """The run starts in another directory."""

    def _without(self) -> dict[str, Any]:
        return {"workdir": "/"}


class Deafened(Unbounded):
    """Output is kept, however much it is."""

    async def open(self, plan: ExecutionPlan, host: Host) -> Sandbox:
        return _Deafened()


class _Deafened(_Unbounded):
    async def run(self, plan: ExecutionPlan, host: Host) -> Outcome:
        spec = controlled._spec(plan)

        def on_output(stream: Any, data: bytes) -> bool:
            host.write(stream, data)
            return True

        return processes.outcome(spec, await supervise.run(spec, on_output))


class UnwalledMonty(MontyBackend):
    """Monty, which claims its walls of the kernel, with none behind its language."""

    def behind(self) -> Backend:
        return BehindNothing()


class BehindNothing(BehindMonty):
    """Claims what Monty claims, and only starts Python apart from its host."""

    def __init__(self) -> None:
        super().__init__(walls=Walls(frozenset({Wall.apart})))

    def describe(self) -> Descriptor:
        return BehindMonty().describe()


class OpenMonty:
    """Monty with the files of the host mounted, readable and writable."""

    def describe(self) -> Descriptor:
        return _OPEN_MONTY

    async def open(self, plan: ExecutionPlan, host: Host) -> Sandbox:
        return _OpenMonty()

    async def close(self) -> None:
        return None


_OPEN_MONTY = MontyBackend().describe()


class _OpenMonty:
    async def run(self, plan: ExecutionPlan, host: Host) -> Outcome:
        await asyncio.to_thread(self._feed, plan.code, host)
        return Outcome(Termination.exited, exit_code=0)

    def _feed(self, code: str, host: Host) -> None:
        def write(stream: Literal["stdout", "stderr"], text: str) -> None:
            host.write(stream, text.encode())

        temp = os.path.realpath(tempfile.gettempdir())
        with Monty(min_processes=0, max_processes=1) as monty, monty.checkout() as session:
            session.feed_run(
                code,
                mount=MountDir(host_path=temp, virtual_path=temp, mode="read-write"),
                print_callback=write,
            )

    async def close(self) -> None:
        return None
