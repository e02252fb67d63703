"""Tests of cancellation: at whatever moment it comes, it is passed on, and nothing of the run goes on."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest

from licet.testing.bench import Bench
from licet.testing.host import RecordingHost

_SEED = 20261129
_MOMENTS = tuple(random.Random(_SEED).sample(range(1, 60), 6))
"""Turns of the event loop, writes, or thousandths of a second: the same in every run of the suite."""

_PATIENCE_S = 60.0


class Cancellation:
    """The run is cancelled before it opens, while it opens, while it computes, while it prints."""

    def test_cancelled_before_it_begins(self, bench: Bench) -> None:
        async def work() -> None:
            host = RecordingHost()
            run = asyncio.create_task(bench.execute("print('ran')", host))
            run.cancel()
            await _is_cancelled(run)
            assert host.total == 0

        asyncio.run(work())
        bench.works()

    @pytest.mark.parametrize("turns", _MOMENTS)
    def test_cancelled_after_some_turns_of_the_loop(self, turns: int, bench: Bench) -> None:
        async def work() -> None:
            run = asyncio.create_task(bench.execute(bench.busy))
            for _ in range(turns):
                await asyncio.sleep(0)
            run.cancel()
            await _is_cancelled(run)

        asyncio.run(work())
        bench.works()

    @pytest.mark.parametrize("milliseconds", _MOMENTS)
    def test_cancelled_after_some_time(self, milliseconds: int, bench: Bench) -> None:
        async def work() -> None:
            run = asyncio.create_task(bench.execute(bench.busy))
            await asyncio.sleep(milliseconds / 1000)
            run.cancel()
            await _is_cancelled(run)

        asyncio.run(work())
        bench.works()

    def test_cancelled_while_it_computes(self, bench: Bench) -> None:
        asyncio.run(_after_writes(bench, f"print('on', flush=True)\n{bench.busy}", 1))
        bench.works()

    @pytest.mark.parametrize("writes", _MOMENTS)
    def test_cancelled_while_output_floods(self, writes: int, bench: Bench) -> None:
        asyncio.run(_after_writes(bench, bench.flood, writes))
        bench.works()

    def test_a_cancelled_run_disturbs_no_other(self, bench: Bench) -> None:
        async def work() -> list[object]:
            lost = [asyncio.create_task(bench.execute(bench.busy)) for _ in range(2)]
            kept = [asyncio.create_task(bench.execute(f"print({n})\n{n} + 1")) for n in range(4)]
            await asyncio.sleep(0)
            for run in lost:
                run.cancel()
            for run in lost:
                await _is_cancelled(run)
            return [(ran.outcome.value, ran.stdout) for ran in await asyncio.gather(*kept)]

        assert asyncio.run(work()) == [(n + 1, b"%d\n" % n) for n in range(4)]


async def _after_writes(bench: Bench, code: str, writes: int) -> None:
    """Cancel a run at its n-th write."""
    loop, reached = asyncio.get_running_loop(), asyncio.Event()
    host = RecordingHost(
        output=64 << 20, on_write=_at(writes, lambda: loop.call_soon_threadsafe(reached.set))
    )
    run = asyncio.create_task(bench.execute(code, host))
    waiting = asyncio.create_task(reached.wait())
    await asyncio.wait([run, waiting], return_when=asyncio.FIRST_COMPLETED, timeout=_PATIENCE_S)
    waiting.cancel()
    run.cancel()
    await _is_cancelled(run)
    await bench.backend.close()
    assert host.late == 0, "output came after the run was over"


def _at(number: int, act: Callable[[], object]) -> Callable[[bytes], None]:
    heard = 0

    def hear(data: bytes) -> None:
        nonlocal heard
        heard += 1
        if heard == number:
            act()

    return hear


async def _is_cancelled(run: asyncio.Task[object]) -> None:
    """The run ends by its cancellation, and by nothing else; its program would have gone on for long."""
    await asyncio.wait([run], timeout=_PATIENCE_S)
    assert run.done(), "the run went on though it was cancelled"
    assert run.cancelled(), f"the run was cancelled, and ended otherwise: {run}"
