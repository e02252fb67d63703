"""Steps of a task that take too long: cancelled once, told apart from cancellations by others."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from licet.deadlines import Deadlines, Overdue


def looped(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    @functools.wraps(test)
    def run() -> None:
        asyncio.run(test())

    return run


async def forever() -> None:
    await asyncio.get_running_loop().create_future()


@looped
async def test_of_a_step_that_is_quick_its_result() -> None:
    deadlines = Deadlines(0.01)
    assert await deadlines.within(0.01, asyncio.sleep(0, "done")) == "done"
    deadlines.close()


@looped
async def test_each_step_has_its_own_bound_and_the_task_goes_on() -> None:
    deadlines = Deadlines(0.01)
    for _ in range(2):
        with pytest.raises(Overdue):
            await deadlines.within(0.02, forever())
    deadlines.close()
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


@looped
async def test_time_outside_of_steps_does_not_count() -> None:
    deadlines = Deadlines(0.01)
    await asyncio.sleep(0.03)
    assert await deadlines.within(5.0, asyncio.sleep(0.02, "done")) == "done"
    deadlines.close()


@looped
async def test_a_cancellation_by_somebody_else_is_passed_on() -> None:
    began = asyncio.Event()

    async def watched() -> None:
        deadlines = Deadlines(5.0)
        try:
            began.set()
            await deadlines.within(5.0, forever())
        finally:
            deadlines.close()

    task = asyncio.create_task(watched())
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()


@looped
async def test_a_timeout_of_the_step_itself_is_its_own() -> None:
    deadlines = Deadlines(1.0)
    with pytest.raises(TimeoutError):
        await deadlines.within(1.0, asyncio.wait_for(forever(), 0.01))
    deadlines.close()


@looped
async def test_a_step_may_have_less_than_the_pace() -> None:
    deadlines = Deadlines(60.0)
    with pytest.raises(Overdue):
        await deadlines.within(0.01, forever())
    deadlines.close()
