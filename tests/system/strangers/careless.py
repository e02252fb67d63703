"""Twins of Echo that are careless, each in one way, and a suite for each."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import threading
from dataclasses import replace
from typing import Any

from licet.backend import Host, Outcome, Sandbox, Termination
from licet.plan import ExecutionPlan
from licet.testing import BackendSuite
from licet_echo import Echo


class Careless(Echo):
    """Echo, whose runs go through `run`."""

    async def open(self, plan: ExecutionPlan, host: Host) -> Sandbox:
        return _Sandbox(self, await super().open(plan, host))

    async def run(self, sandbox: Sandbox, plan: ExecutionPlan, host: Host) -> Outcome:
        return await sandbox.run(plan, host)


class _Sandbox:
    def __init__(self, backend: Careless, inner: Sandbox) -> None:
        self._backend = backend
        self._inner = inner

    async def run(self, plan: ExecutionPlan, host: Host) -> Outcome:
        return await self._backend.run(self._inner, plan, host)

    async def close(self) -> None:
        await self._inner.close()


class _Heard:
    """A host that hands output on in its own way."""

    def __init__(self, host: Host, write: Any) -> None:
        self._host = host
        self.write = write

    def __getattr__(self, name: str) -> Any:
        return getattr(self._host, name)


class Deaf(Careless):
    """Goes on though it is cancelled."""

    async def run(self, sandbox: Sandbox, plan: ExecutionPlan, host: Host) -> Outcome:
        running = asyncio.ensure_future(sandbox.run(plan, host))
        while not running.done():
            try:
                await asyncio.wait([running])
            except asyncio.CancelledError:
                continue
        return running.result()


class Littering(Careless):
    """Leaves a descriptor, a thread, a process and a file for each run."""

    async def run(self, sandbox: Sandbox, plan: ExecutionPlan, host: Host) -> Outcome:
        _litter()
        return await sandbox.run(plan, host)


def _litter() -> None:
    os.dup(0)
    threading.Thread(target=threading.Event().wait, name="litter", daemon=True).start()
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(20)"], start_new_session=True)
    tempfile.NamedTemporaryFile(prefix="litter", delete=False).close()


class Lagging(Careless):
    """Writes on after the end."""

    async def run(self, sandbox: Sandbox, plan: ExecutionPlan, host: Host) -> Outcome:
        outcome = await sandbox.run(plan, host)
        asyncio.get_running_loop().call_soon(host.write, "stdout", b"by the way")
        return outcome


class Blurred(Careless):
    """Gives all output to the host of its first run."""

    first: Host | None = None

    async def run(self, sandbox: Sandbox, plan: ExecutionPlan, host: Host) -> Outcome:
        self.first = self.first or host
        return await sandbox.run(plan, _Heard(host, self.first.write))


class Reopened(Careless):
    """Runs in a sandbox that was closed."""

    async def run(self, sandbox: Sandbox, plan: ExecutionPlan, host: Host) -> Outcome:
        return await (await Echo.open(self, plan, host)).run(plan, host)


class Hoarding(Careless):
    """Keeps the names of earlier runs."""

    before = ""

    async def run(self, sandbox: Sandbox, plan: ExecutionPlan, host: Host) -> Outcome:
        code, self.before = f"{self.before}{plan.code}", f"{plan.code}\n"
        return await sandbox.run(replace(plan, code=code), host)


class Unbounded(Careless):
    """Doesn't hear that the limit of output is passed."""

    async def run(self, sandbox: Sandbox, plan: ExecutionPlan, host: Host) -> Outcome:
        return await sandbox.run(plan, _Heard(host, lambda stream, data: host.write(stream, data) or True))


class Swallowing(Careless):
    """Hides that its host failed."""

    async def run(self, sandbox: Sandbox, plan: ExecutionPlan, host: Host) -> Outcome:
        try:
            return await sandbox.run(plan, host)
        except LookupError:
            return Outcome(Termination.exited, exit_code=0)


class Textual(Careless):
    """Takes output for lines of text."""

    async def run(self, sandbox: Sandbox, plan: ExecutionPlan, host: Host) -> Outcome:
        def write(stream: Any, data: bytes) -> bool:
            return host.write(stream, data.decode("utf-8", "replace").rstrip("\n").encode() + b"\n")

        return await sandbox.run(plan, _Heard(host, write))


class Vague(Careless):
    """Knows one way to fail, and only floats."""

    async def run(self, sandbox: Sandbox, plan: ExecutionPlan, host: Host) -> Outcome:
        outcome = await sandbox.run(plan, host)
        value = (
            float(outcome.value) if type(outcome.value) is int and abs(outcome.value) < 99 else outcome.value
        )
        return replace(outcome, value=value, exit_code=outcome.exit_code and 1)


class TestDeaf(BackendSuite):
    make = Deaf


class TestLittering(BackendSuite):
    make = Littering


class TestLagging(BackendSuite):
    make = Lagging


class TestBlurred(BackendSuite):
    make = Blurred


class TestReopened(BackendSuite):
    make = Reopened


class TestHoarding(BackendSuite):
    make = Hoarding


class TestUnbounded(BackendSuite):
    make = Unbounded


class TestSwallowing(BackendSuite):
    make = Swallowing


class TestTextual(BackendSuite):
    make = Textual


class TestVague(BackendSuite):
    make = Vague
