"""A backend that does what a test says, and runs of it that leave a log."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from licet import ExecutionRequest, Runtime
from licet.backend import Access, Descriptor, Host, Language, Outcome, Sandbox, Termination, ToolCall
from licet.contract import Control, Enforcement, Level, SandboxEnforcementContract
from licet.plan import ExecutionPlan
from licet.record import MemoryLog
from licet.result import ExecutionResult

EVERYTHING = SandboxEnforcementContract(
    **{control.value: Enforcement(Level.enforced, "kernel", "a test") for control in Control}
)
HEAD = "licet: 1\nsandbox: {evidence: declared}\n"


class Puppet:
    """A backend that opens all there is, and asks its host for what a test says."""

    def __init__(self, *wishes: Access | ToolCall) -> None:
        self.wishes = wishes

    def describe(self) -> Descriptor:
        opens = frozenset({"read", "write", "network", "shell", "tool"})
        return Descriptor("puppet", "1", EVERYTHING, Language("Puppet"), opens)  # type: ignore[arg-type]

    async def open(self, plan: ExecutionPlan, host: Host) -> Sandbox:
        return self

    async def run(self, plan: ExecutionPlan, host: Host) -> Outcome:
        for wish in self.wishes:
            if isinstance(wish, ToolCall):
                await host.call(wish)
            else:
                await host.access(wish)
        return Outcome(Termination.exited, exit_code=0)

    async def close(self) -> None:
        return


class Puppetry:
    """Runs of puppets under policies in `folder`, all in one log."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.log = MemoryLog()
        monkeypatch.chdir(folder)
        monkeypatch.setenv("XDG_STATE_HOME", str(folder / "xdg"))

    def runtime(self, file: str, *wishes: Access | ToolCall) -> Runtime:
        return Runtime(file, log=self.log, backends=[Puppet(*wishes)], managed=self.folder / "none")

    def write(self, file: str, policy: str) -> str:
        (self.folder / file).write_text(HEAD + policy)
        return file

    def run_under(self, file: str, policy: str, *wishes: Access | ToolCall, **fields: Any) -> ExecutionResult:
        async def one() -> ExecutionResult:
            with self.runtime(self.write(file, policy), *wishes) as runtime:
                return await runtime.run(ExecutionRequest(**({"code": "1"} | fields)))

        return asyncio.run(one())
