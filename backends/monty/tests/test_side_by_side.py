"""Calls of tools that the code awaits: they run side by side, end with the run, and fail one by one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from licet.backend import GuestError, Reply, Termination, ToolCall, execute
from licet_monty.backend import MontyBackend


class Together:
    """A tool of which no call ends before `number` are under way."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.under_way = 0
        self.all_there = asyncio.Event()

    async def __call__(self, call: ToolCall) -> Reply:
        self.under_way += 1
        if self.under_way == self.number:
            self.all_there.set()
        await self.all_there.wait()
        return Reply(value=call.args[0])


GATHER = "await asyncio.gather(*tasks)"
TOGETHER = [
    "await asyncio.gather(*[f(i) for i in range(3)])",
    "from asyncio import gather as g\nlist(await g(f(0), f(1), f(2)))",
    "async def main():\n    return await asyncio.gather(*(f(i) for i in range(3)))\nasyncio.run(main())",
    f"tasks = []\nfor i in range(3):\n    tasks.append(f(i))\n{GATHER}",
    "tasks = {i: f(i) for i in range(3)}\nawait asyncio.gather(*tasks.values())",
    "async def one(i): return await f(i)\nawait asyncio.gather(*[one(i) for i in range(3)])",
    f"async def one(i):\n    x = await f(i)\n    return x\ntasks = one(0), one(1), f(2)\n{GATHER}",
    "def one(i): return f(i)\nawait asyncio.gather(*[one(i) for i in range(3)])",
    "a, b, c = f(0), f(1), f(2)\nasync def main(): return await asyncio.gather(a, b, c)\nawait main()",
]


@pytest.mark.parametrize("code", TOGETHER)
def test_awaited_calls_are_under_way_side_by_side(code: str, run: Any, make_host: Any) -> None:
    host = make_host(tool=Together(3))
    outcome = run(f"import asyncio\n{code}", host, tools=("f",))
    assert (outcome.termination, outcome.error, outcome.value) == (Termination.exited, None, [0, 1, 2])


def test_calls_arrive_in_the_order_in_which_they_end(run: Any, make_host: Any) -> None:
    ends = [asyncio.Event() for _ in range(3)]

    async def in_turn(call: ToolCall) -> Reply:
        number = call.args[0]
        if number:
            await ends[number - 1].wait()
        return Reply(value=number)

    async def note(call: ToolCall) -> Reply:
        ends[call.args[0]].set()
        return Reply()

    async def tool(call: ToolCall) -> Reply:
        return await (in_turn if call.name == "f" else note)(call)

    code = """
import asyncio
seen = []
async def one(i):
    seen.append(await f(i))
    note(i)
await asyncio.gather(one(2), one(1), one(0))
seen"""
    assert run(code, make_host(tool=tool), tools=("f", "note")).value == [0, 1, 2]


def test_sleeps_and_tools_overlap(run: Any, make_host: Any) -> None:
    asleep = asyncio.Event()

    async def tool(call: ToolCall) -> Reply:
        if call.name == "slept":
            asleep.set()
        else:
            await asleep.wait()  # set by code that runs on only after its sleep
        return Reply(value=call.name)

    code = """
import asyncio
async def nap():
    await asyncio.sleep(0.01)
    return slept()
await asyncio.gather(f(), nap())"""
    assert run(code, make_host(tool=tool), tools=("f", "slept")).value == ["f", "slept"]


def test_one_failure_among_many_is_caught_and_the_others_are_cancelled_at_the_end(
    run: Any, make_host: Any
) -> None:
    ended: list[str] = []

    async def tool(call: ToolCall) -> Reply:
        if call.args[0] == "bad":
            return Reply(error=GuestError("ValueError", "bad"))
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            await asyncio.sleep(0)
            ended.append("joined")
            raise
        raise AssertionError

    code = """
import asyncio
try:
    await asyncio.gather(f("good"), f("bad"))
except ValueError as problem:
    told = str(problem)
told"""
    outcome = run(code, make_host(tool=tool), tools=("f",))
    assert (outcome.value, ended) == ("bad", ["cancelled", "joined"])


def test_a_call_that_nobody_awaits_never_happens(run: Any, host: Any) -> None:
    outcome = run("import asyncio\nx = f(1)\nasync def never(): await x\n2", host, tools=("f",))
    assert (outcome.value, host.calls) == (2, [])


@pytest.mark.parametrize("code", ["await f(1)", "import asyncio\nawait asyncio.gather(g(1), f(2))"])
def test_a_fatal_reply_among_many_ends_the_run(code: str, run: Any, make_host: Any) -> None:
    async def tool(call: ToolCall) -> Reply:
        if call.name == "f":
            return Reply(fatal=Termination.policy_denied)
        await asyncio.Event().wait()
        raise AssertionError

    host = make_host(tool=tool)
    outcome = run(f"try:\n    pass\nfinally:\n    pass\n{code}\nprint('on')", host, tools=("f", "g"))
    assert (outcome.termination, host.stdout) == (Termination.policy_denied, b"")


def test_a_host_that_fails_among_many_ends_the_run(
    make_plan: Any, make_host: Any, backend: MontyBackend
) -> None:
    async def broken(call: ToolCall) -> Reply:
        raise OSError("log full")

    plan = make_plan("try:\n    await f()\nexcept BaseException: pass\nprint('on')", tools=("f",))
    host = make_host(tool=broken)
    with pytest.raises(OSError, match=r"^log full$"):
        asyncio.run(execute(backend, plan, host))
    assert host.stdout == b""


def test_a_host_that_cancels_itself_ends_the_run(
    make_plan: Any, make_host: Any, backend: MontyBackend
) -> None:
    async def cancelled(call: ToolCall) -> Reply:
        raise asyncio.CancelledError

    with pytest.raises(RuntimeError, match=r"^a call of the host was cancelled$"):
        asyncio.run(execute(backend, make_plan("f()", tools=("f",)), make_host(tool=cancelled)))
