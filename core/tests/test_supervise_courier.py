"""A run's thread asks the loop of its caller, and is told in its own thread."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import select
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from licet.supervise.courier import Answer, Courier

pytestmark = pytest.mark.skipif(os.name == "nt", reason="no run is served by a courier on Windows")

HERE = contextvars.ContextVar("here", default="nowhere")


async def _served(courier: Courier, asked: Callable[[list[Answer[Any]]], int]) -> list[Answer[Any]]:
    """Have `asked` ask in a thread, which hears of as many answers as it says."""
    heard: list[Answer[Any]] = []
    threads: set[int] = set()

    def drive() -> None:
        expected = asked(heard)
        while len(heard) < expected:
            ready, _, _ = select.select([courier.fileno()], [], [], 10)
            assert ready, "nobody woke the run"
            courier.deliver()
        threads.add(threading.get_ident())

    await asyncio.to_thread(drive)
    assert threads != {threading.get_ident()}
    return heard


async def _value(value: Any) -> Any:
    await asyncio.sleep(0)
    return value


def test_a_value_is_told_in_the_thread_that_asked() -> None:
    async def main() -> list[Answer[Any]]:
        with Courier() as courier:

            def ask(heard: list[Answer[Any]]) -> int:
                courier.ask(lambda: _value(42), heard.append)
                return 1

            return await _served(courier, ask)

    assert asyncio.run(main()) == [Answer(42)]


def test_what_it_raises_is_told_too() -> None:
    async def fails() -> None:
        raise OSError("no way")

    async def main() -> list[Answer[Any]]:
        with Courier() as courier:

            def ask(heard: list[Answer[Any]]) -> int:
                courier.ask(fails, heard.append)
                return 1

            return await _served(courier, ask)

    [answer] = asyncio.run(main())
    assert answer.value is None
    assert repr(answer.problem) == "OSError('no way')"


def test_it_runs_on_the_loop_in_the_context_of_the_caller() -> None:
    async def where() -> tuple[str, int]:
        return HERE.get(), threading.get_ident()

    async def main() -> tuple[Any, int]:
        HERE.set("with the caller")
        with Courier() as courier:

            def ask(heard: list[Answer[Any]]) -> int:
                courier.ask(where, heard.append)
                return 1

            [answer] = await _served(courier, ask)
            return answer.value, threading.get_ident()

    seen, loop_thread = asyncio.run(main())
    assert seen == ("with the caller", loop_thread)


def test_many_at_once_are_told_in_the_order_of_ending() -> None:
    async def main() -> list[Any]:
        gates = [asyncio.Event() for _ in range(50)]

        async def one(number: int) -> int:
            await gates[number].wait()
            if number:
                gates[number - 1].set()
            return number

        async def open_last() -> None:
            gates[49].set()

        with Courier() as courier:

            def ask(heard: list[Answer[Any]]) -> int:
                for number in range(50):
                    courier.ask(lambda number=number: one(number), heard.append)  # type: ignore[misc]
                courier.ask(open_last, lambda _: None)
                return 50

            return [answer.value for answer in await _served(courier, ask)]

    assert asyncio.run(main()) == list(range(49, -1, -1))


def test_what_is_under_way_at_the_end_is_cancelled_and_waited_for() -> None:
    async def main() -> list[str]:
        told: list[str] = []
        begun = asyncio.Event()

        async def lasting() -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                told.append("gone")

        with Courier() as courier:
            await asyncio.to_thread(courier.ask, lasting, lambda _: told.append("answered"))
            await begun.wait()
            await courier.end()
            return [*told]

    assert asyncio.run(main()) == ["gone"]


def test_nothing_begins_after_the_end() -> None:
    async def main() -> list[str]:
        told: list[str] = []

        async def begin() -> None:
            told.append("begun")

        with Courier() as courier:
            await courier.end()
            await asyncio.to_thread(courier.ask, begin, lambda _: told.append("answered"))
            await asyncio.sleep(0.01)
        return told

    assert asyncio.run(main()) == []


@pytest.mark.parametrize("late", [True, False], ids=["after the end", "before the end"])
def test_a_value_that_nobody_takes_is_released(late: bool) -> None:
    async def main() -> int:
        began, released = asyncio.Event(), asyncio.Event()
        found: list[int] = []

        async def opened() -> int:
            began.set()
            if late:
                with contextlib.suppress(asyncio.CancelledError):  # as if it had ended at that very moment
                    await asyncio.Event().wait()
            return os.open(os.devnull, os.O_RDONLY)

        def release(fd: int) -> None:
            found.append(fd)
            os.close(fd)
            released.set()

        with Courier() as courier:
            await asyncio.to_thread(courier.ask, opened, lambda _: pytest.fail("told"), release)
            await began.wait()
            await courier.end()
        await released.wait()
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(found[0])
        return len(found)

    assert asyncio.run(main()) == 1


def test_a_loop_that_is_closed_is_a_problem_and_no_wait() -> None:
    heard: list[Answer[Any]] = []

    async def main() -> Courier:
        return Courier()

    with asyncio.run(main()) as courier:
        courier.ask(lambda: _value(1), heard.append)
        courier.deliver()
    assert [str(answer.problem) for answer in heard] == ["Event loop is closed"]


@pytest.mark.skipif(sys.platform != "linux", reason="descriptors are counted in /proc")
def test_it_leaves_no_descriptor() -> None:
    async def main() -> None:
        with Courier() as courier:

            def ask(heard: list[Answer[Any]]) -> int:
                courier.ask(lambda: _value(1), heard.append)
                return 1

            await _served(courier, ask)

    asyncio.run(main())
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        asyncio.run(main())
    assert len(os.listdir("/proc/self/fd")) == before
