"""Tests of a sandbox's life: opened, run, closed; closed again; and what is refused."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from licet.backend import Termination, execute
from licet.contract import Control
from licet.errors import BackendError, PlanNotSealed
from licet.plan import ExecutionPlan
from licet.testing.bench import Bench
from licet.testing.host import RecordingHost


class Lifecycle:
    """From `open` to `close`, in every order that may happen."""

    def test_a_sandbox_may_close_without_a_run(self, bench: Bench) -> None:
        async def work() -> None:
            sandbox = await bench.backend.open(bench.plan("1"), RecordingHost())
            await sandbox.close()

        asyncio.run(work())
        bench.works()

    @pytest.mark.parametrize("code", ["6 * 7", "1 / 0", "(", ""])
    def test_a_sandbox_closes_twice(self, code: str, bench: Bench) -> None:
        async def work() -> Termination:
            plan, host = bench.plan(code), RecordingHost()
            sandbox = await bench.backend.open(plan, host)
            try:
                outcome = await sandbox.run(plan, host)
            finally:
                await sandbox.close()
            await sandbox.close()
            return outcome.termination

        assert asyncio.run(work()) is Termination.exited
        bench.works()

    def test_a_closed_sandbox_runs_nothing(self, bench: Bench) -> None:
        async def work() -> None:
            plan, host = bench.plan("print('ran')"), RecordingHost()
            sandbox = await bench.backend.open(plan, host)
            await sandbox.close()
            with pytest.raises(BackendError):
                await sandbox.run(plan, host)
            assert host.total == 0

        asyncio.run(work())

    def test_a_backend_closes_twice(self, bench: Bench) -> None:
        async def work() -> None:
            await bench.execute("1")
            await bench.backend.close()
            await bench.backend.close()

        asyncio.run(work())

    def test_a_backend_closes_before_its_first_run(self, bench: Bench) -> None:
        asyncio.run(bench.backend.close())

    def test_one_backend_serves_many_runs_and_loops(self, bench: Bench) -> None:
        found = [bench.run(f"{number} * 2").outcome.value for number in range(6)]
        assert found == [0, 2, 4, 6, 8, 10]

    def test_names_of_a_run_are_gone_in_the_next(self, bench: Bench) -> None:
        bench.claims(Control.fresh_state)
        bench.run("left_behind = 1")
        ran = bench.run("left_behind")
        assert ran.outcome.error is not None
        assert ran.outcome.error.type == "NameError"

    @pytest.mark.parametrize("forgery", ["unsealed", "copied", "changed", "foreign seal", "replayed"])
    def test_a_plan_that_licet_did_not_make_runs_nothing(self, forgery: str, bench: Bench) -> None:
        host = RecordingHost()
        with pytest.raises(PlanNotSealed):
            asyncio.run(execute(bench.backend, _forged(bench, forgery), host))
        assert host.total == 0


def _forged(bench: Bench, forgery: str) -> ExecutionPlan:
    plan = bench.plan("print('ran')")
    if forgery == "replayed":
        asyncio.run(execute(bench.backend, plan, RecordingHost()))
        return plan
    changes: dict[str, dict[str, Any]] = {
        "unsealed": {"seal": ""},
        "copied": {},
        "changed": {"code": "print('other')"},
        "foreign seal": {"seal": bench.plan("1").seal},
    }
    return replace(plan, **changes[forgery])
