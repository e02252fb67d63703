"""Runs code through `licet.backend.execute`, the only way core calls a backend."""

from __future__ import annotations

import asyncio
import os
import select
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from licet.backend import Access, Outcome, Reply, Target, ToolCall, execute
from licet.output import BoundedSink
from licet.plan import ExecutionPlan, Opened, seal
from licet.request import DEFAULT_LIMITS
from licet.surroundings import RealSurroundings
from licet_controlled_process.backend import ControlledProcess

BACKEND = ControlledProcess()


@dataclass
class RecordingHost(RealSurroundings):
    """Keeps what the code writes; nothing else may be asked of it."""

    output: int = 16 << 20
    sinks: Mapping[str, BoundedSink] = field(
        default_factory=lambda: {"stdout": BoundedSink(1 << 20), "stderr": BoundedSink(1 << 20)}
    )
    on_write: Callable[[str, bytes], None] = lambda stream, data: None

    def write(self, stream: Literal["stdout", "stderr"], data: bytes) -> bool:
        self.sinks[stream].write(data)
        self.on_write(stream, data)
        return sum(sink.total for sink in self.sinks.values()) <= self.output

    async def call(self, call: ToolCall) -> Reply:
        raise AssertionError("no tool was opened")

    async def access(self, access: Access) -> bool:
        raise AssertionError("this backend surfaces no accesses")

    async def connect(self, target: Target) -> int:
        raise AssertionError("this backend brokers no connections")

    @property
    def stdout(self) -> str:
        return self.sinks["stdout"].text()

    @property
    def stderr(self) -> str:
        return self.sinks["stderr"].text()


@dataclass
class Ran:
    outcome: Outcome
    stdout: str
    stderr: str


def make_plan(code: str, workdir: str, **options: Any) -> ExecutionPlan:
    limits = {"wall_time": 20.0, **options.pop("limits", {})}
    return seal(
        ExecutionPlan(
            run_id=uuid.uuid4().hex,
            backend="controlled_process",
            code=code,
            inputs=options.pop("inputs", {}),
            stdin=options.pop("stdin", b""),
            environment=options.pop("environment", {}),
            workdir=workdir,
            limits=DEFAULT_LIMITS.model_copy(update=limits),
            opened=Opened(read=("/",), write=("/",), network=("any",), shell=True),
            contract=BACKEND.describe().sandbox_enforcement_contract,
            plan_digest="sha256:test",
            policy_class="test",
        )
    )


async def run_async(
    code: str,
    workdir: str,
    host: RecordingHost | None = None,
    backend: ControlledProcess = BACKEND,
    **options: Any,
) -> Ran:
    host = host or RecordingHost()
    outcome = await execute(backend, make_plan(code, workdir, **options), host)
    return Ran(outcome, host.stdout, host.stderr)


def is_dead(pid: int, within: float = 5.0) -> bool:
    """Whether a process is gone, or goes within so many seconds; no polling."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([fd], [], [], within)[0])
    finally:
        os.close(fd)


@pytest.fixture
def run(tmp_path: Any) -> Callable[..., Ran]:
    """Run code with a backend that all tests share: mostly, a keeper waits already."""

    def run(code: str, host: RecordingHost | None = None, **options: Any) -> Ran:
        workdir = options.pop("workdir", str(tmp_path))
        return asyncio.run(run_async(code, workdir, host, **options))

    return run


@pytest.fixture
def run_first(tmp_path: Any) -> Callable[..., Ran]:
    """Run code as the first run of a backend."""

    def run(code: str, host: RecordingHost | None = None, **options: Any) -> Ran:
        workdir = options.pop("workdir", str(tmp_path))

        async def scenario() -> Ran:
            backend = ControlledProcess()
            try:
                return await run_async(code, workdir, host, backend, **options)
            finally:
                await backend.close()

        return asyncio.run(scenario())

    return run


@pytest.fixture
def tools() -> Any:
    """The helpers of this file, for tests that need more than `run`."""

    class Tools:
        Backend = ControlledProcess
        Host = RecordingHost
        backend = BACKEND
        is_dead = staticmethod(is_dead)
        make_plan = staticmethod(make_plan)
        run_async = staticmethod(run_async)

    return Tools
