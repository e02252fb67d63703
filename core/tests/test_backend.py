"""The wrapper around each call of a backend: what a backend may not do to its caller."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from licet.backend import Descriptor, Host, Language, Outcome, Sandbox, Termination, execute
from licet.contract import SandboxEnforcementContract
from licet.errors import BackendError
from licet.plan import MOST_SUSPENSION, ExecutionPlan, Opened
from licet.probe.order import Order
from licet.probe.trial import Ear

PLAN_TIME = {"wall_time": 5.0}


class Raising:
    """A backend, and its own sandbox, that raises in one `step` what it was told to."""

    def __init__(self, step: str, problem: type[BaseException]) -> None:
        self._step = step
        self._problem = problem

    def _reach(self, step: str) -> None:
        if step == self._step:
            raise self._problem("enough")

    def describe(self) -> Descriptor:
        return Descriptor("raising", "1", SandboxEnforcementContract(), Language("None"))

    async def open(self, plan: ExecutionPlan, host: Host) -> Sandbox:
        self._reach("open")
        return self

    async def run(self, plan: ExecutionPlan, host: Host) -> Outcome:
        self._reach("run")
        return Outcome(Termination.exited, exit_code=0)

    async def close(self) -> None:
        self._reach("close")


class Abrupt(Raising):
    """One whose `open` is no coroutine."""

    def open(self, plan: ExecutionPlan, host: Host) -> Any:
        raise self._problem("enough")


def run(backend: Raising) -> Outcome:
    plan = Order("1", {}, "/", PLAN_TIME, Opened()).plan(backend.describe())
    return asyncio.run(execute(backend, plan, Ear("mark", answer=1)))


def in_thread(call: Callable[[], Outcome]) -> Outcome:
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(call).result()


@pytest.mark.parametrize("step", ["open", "run", "close"])
def test_a_backend_that_exits_has_failed(step: str) -> None:
    with pytest.raises(BackendError, match=f"^`raising` raised `SystemExit` in `{step}`$"):
        run(Raising(step, SystemExit))


def test_so_has_one_that_exits_before_it_can_be_awaited() -> None:
    with pytest.raises(BackendError, match=r"^`raising` raised `SystemExit` in `open`$"):
        run(Abrupt("open", SystemExit))


def test_a_ctrl_c_is_the_users_in_the_main_thread_alone() -> None:
    with pytest.raises(KeyboardInterrupt):
        run(Raising("run", KeyboardInterrupt))
    with pytest.raises(BackendError, match=r"^`raising` raised `KeyboardInterrupt` in `run`$"):
        in_thread(lambda: run(Raising("run", KeyboardInterrupt)))


def test_a_cancellation_is_passed_on() -> None:
    with pytest.raises(asyncio.CancelledError):
        run(Raising("run", asyncio.CancelledError))


@pytest.mark.parametrize(
    ("outcome", "why"),
    [
        (Outcome(Termination.timeout, suspension=b"x"), "suspended a run that waits for nothing"),
        (
            Outcome(Termination.approval_pending, suspension=bytes(MOST_SUSPENSION + 1)),
            "wrote a run down as no bytes, or as too many",
        ),
        (
            Outcome(Termination.approval_pending, suspension="x"),  # type: ignore[arg-type]
            "wrote a run down as no bytes, or as too many",
        ),
    ],
)
def test_a_suspension_is_bytes_of_a_run_that_waits(outcome: Outcome, why: str) -> None:
    class Suspending(Raising):
        async def run(self, plan: ExecutionPlan, host: Host) -> Outcome:
            return outcome

    with pytest.raises(BackendError, match=f"^backend `raising` {why}$"):
        run(Suspending("nowhere", SystemExit))


def test_one_that_raises_nothing_runs() -> None:
    assert run(Raising("nowhere", SystemExit)).succeeded
