"""Sealed plans, a host that records, and one backend for all tests that need no backend of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import pytest
from licet import plan as plans
from licet.backend import Access, GuestError, Outcome, Reply, Target, ToolCall, execute
from licet.plan import ExecutionPlan, Opened
from licet.request import Limits
from licet.surroundings import RealSurroundings
from licet_monty.backend import MontyBackend


@dataclass
class RecordingHost(RealSurroundings):
    """Answers tool calls with `tool`, refuses everything else, and keeps what it was told."""

    tool: Callable[[ToolCall], Awaitable[Reply]] | None = None
    output_limit: int = 16 << 20
    calls: list[ToolCall] = field(default_factory=list)
    refused: list[ToolCall] = field(default_factory=list)
    accesses: list[Access] = field(default_factory=list)
    stdout: bytes = b""
    stderr: bytes = b""

    async def call(self, call: ToolCall) -> Reply:
        if call.refused is not None:
            self.refused.append(call)
            return Reply(error=GuestError("TypeError", call.refused))
        self.calls.append(call)
        if self.tool is None:
            return Reply(value=[call.name, list(call.args), dict(call.kwargs)])
        return await self.tool(call)

    async def access(self, access: Access) -> bool:
        self.accesses.append(access)
        return False

    async def connect(self, target: Target) -> int:
        raise PermissionError(target.host)

    def write(self, stream: Literal["stdout", "stderr"], data: bytes) -> bool:
        if stream == "stdout":
            self.stdout += data
        else:
            self.stderr += data
        return len(self.stdout) + len(self.stderr) <= self.output_limit


class MakePlan(Protocol):
    def __call__(
        self,
        code: str,
        *,
        limits: Limits = ...,
        tools: tuple[str, ...] = ...,
        inputs: Mapping[str, Any] = ...,
        environment: Mapping[str, str] = ...,
        tenant: str | None = ...,
        policy_class: str = ...,
        backend: str = ...,
        warm: bool = ...,
        run_id: str = ...,
    ) -> ExecutionPlan: ...


class RunCode(Protocol):
    def __call__(self, code: str, host: RecordingHost | None = None, /, **fields: Any) -> Outcome: ...


TEN_SECONDS = Limits(wall_time=10.0)


def seal(
    code: str,
    *,
    limits: Limits = TEN_SECONDS,
    tools: tuple[str, ...] = (),
    inputs: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    tenant: str | None = None,
    policy_class: str = "tests",
    backend: str = "monty",
    warm: bool = True,
    run_id: str = "run",
) -> ExecutionPlan:
    return plans.seal(
        ExecutionPlan(
            run_id=run_id,
            backend=backend,
            code=code,
            inputs=inputs or {},
            stdin=b"",
            environment=environment or {},
            workdir="/home/work",
            limits=limits,
            opened=Opened(tools=tools),
            contract=MontyBackend().describe().sandbox_enforcement_contract,
            plan_digest="sha256:0",
            policy_class=policy_class,
            tenant=tenant,
            warm=warm,
        )
    )


@pytest.fixture
def make_plan() -> MakePlan:
    return seal


@pytest.fixture
def host() -> RecordingHost:
    return RecordingHost()


@pytest.fixture
def make_host() -> type[RecordingHost]:
    return RecordingHost


@pytest.fixture(scope="session")
def backend() -> Iterator[MontyBackend]:
    backend = MontyBackend(workers=2)
    yield backend
    asyncio.run(backend.close())


@pytest.fixture
def run(backend: MontyBackend) -> RunCode:
    """Run code on a loop of its own; the backend stays."""

    def run(code: str, host: RecordingHost | None = None, /, **fields: Any) -> Outcome:
        return asyncio.run(execute(backend, seal(code, **fields), host or RecordingHost()))

    return run
