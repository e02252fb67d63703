"""The sixteen traps of pydantic-monty that measuring it has found, each with what keeps out of it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from licet.backend import Access, Reply, Termination, ToolCall, execute
from licet.request import Limits
from licet.values import Opaque
from licet_monty import binary
from licet_monty.backend import MontyBackend

THIRTY = """
import asyncio, os, sys
sys.path.insert(0, {tests!r})
from conftest import RecordingHost, seal
from licet.backend import Reply, execute
from licet_monty.backend import MontyBackend
backend = MontyBackend()
async def tool(call):
    await asyncio.sleep(0.001)
    return Reply(value=call.args[0])
code = "import asyncio\\nsum(await asyncio.gather(f(20), f(21))) + f(1)"
for _ in range(30):
    child = os.fork()
    if child == 0:
        outcome = asyncio.run(execute(backend, seal(code, tools=("f",)), RecordingHost(tool=tool)))
        sys.exit(0 if outcome.value == 42 else 9)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(sys, "platform") or sys.platform == "win32", reason="forks")
def test_trap_01_thirty_processes_exit_cleanly_right_after_a_run_with_tools() -> None:
    """Where Monty was driven from an event loop, one process in ten was aborted."""
    text = THIRTY.format(tests=str(Path(__file__).parent))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", text], capture_output=True, text=True, timeout=240, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n" * 30, "")


@pytest.mark.parametrize(
    "code", ["f(0)", "await f(0)", "import asyncio\nawait asyncio.gather(f(0), f(1), f(2))"]
)
def test_trap_02_cancelling_a_run_cancels_and_joins_its_tools(
    code: str, make_plan: Any, make_host: Any, backend: MontyBackend
) -> None:
    under_way: set[int] = set()
    joined: set[int] = set()
    number = code.count("f(")

    async def main() -> None:
        all_there = asyncio.Event()

        async def wait(call: ToolCall) -> Reply:
            under_way.add(call.args[0])
            if len(under_way) == number:
                all_there.set()
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0.01)  # cleaning up takes a moment, and is waited for
                joined.add(call.args[0])
            raise AssertionError

        running = asyncio.create_task(execute(backend, make_plan(code, tools=("f",)), make_host(tool=wait)))
        await all_there.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert joined == under_way == set(range(number))
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


def test_trap_03_a_host_that_refuses_output_stops_the_code(
    make_plan: Any, make_host: Any, backend: MontyBackend
) -> None:
    class Full(make_host):  # type: ignore[misc]
        def write(self, stream: str, data: bytes) -> bool:
            raise OSError("disk full")

    plan = make_plan("while True:\n    print('x')", limits=Limits(wall_time=600.0))
    with pytest.raises(OSError, match=r"^disk full$"):
        asyncio.run(execute(backend, plan, Full()))


def test_trap_04_what_is_fatal_cannot_be_caught(run: Any, make_host: Any) -> None:
    async def refuse(call: ToolCall) -> Reply:
        return Reply(fatal=Termination.approval_pending)

    host = make_host(tool=refuse)
    code = """
class Guard:
    def __enter__(self): return self
    def __exit__(self, *why):
        print("left")
        return True
with Guard():
    try:
        f()
    except BaseException:
        print("caught")
    finally:
        print("at last")
print("on")"""
    outcome = run(code, host, tools=("f",))
    assert (outcome.termination, host.stdout) == (Termination.approval_pending, b"")


def test_trap_05_a_tool_is_called_by_its_own_name_whatever_the_code_calls_it(run: Any, host: Any) -> None:
    code = "refund = f\n[refund][0](1)\n(lambda g: g(2))(f)\nasync def h(g): return await g(3)\nawait h(f)"
    outcome = run(code, host, tools=("f",))
    assert outcome.error is None
    assert [(call.name, call.args) for call in host.calls] == [("f", (1,)), ("f", (2,)), ("f", (3,))]
    for code in ("refund(1)", "h = refund\nh(1)", "eval('refund')(1)", "map(refund, [1])"):
        assert run(code, host, tools=("f",)).error.message == "name 'refund' is not defined"
    assert len(host.calls) == 3


SHARED = "for _ in range(60): x = {}\n"


@pytest.mark.parametrize("shape", ["[x, x]", "(x, x)", "{'a': x, 'b': x}", "[x]"])
@pytest.mark.parametrize("use", ["f(x)", "f({x})", "f(k=[x])", "await f(x)"])
def test_trap_06_shared_parts_reach_no_tool(shape: str, use: str, run: Any, host: Any) -> None:
    code = f"x = 1\n{SHARED.format(shape)}{use}"
    outcome = run(code, host, tools=("f",), limits=Limits(wall_time=60.0))
    if shape == "[x]" and "{x}" not in use:
        assert len(host.calls) == 1
    else:
        assert (outcome.error.type, host.calls) == ("TypeError", [])


def test_trap_07_what_is_no_data_is_marked_or_refused(run: Any, host: Any) -> None:
    for made in ("lambda: 1", "print", "int"):
        assert isinstance(run(made).value, Opaque)
        assert run(f"f({made})", host, tools=("f",)).error.type == "TypeError"
    assert run("'\\ud800' == '\\ufffd'").value is True
    assert host.calls == []


def test_trap_08_sleeps_are_ours_and_the_deadline_ends_them(run: Any) -> None:
    code = (
        "import asyncio, time\ntime.sleep(0.01)\nawait asyncio.sleep(0.01)\nasyncio.run(asyncio.sleep(0))\n1"
    )
    assert run(code).value == 1
    for sleep in ("import time\ntime.sleep(10 ** 9)", "import asyncio\nawait asyncio.sleep(10 ** 9)"):
        assert run(sleep, limits=Limits(wall_time=0.1)).termination == Termination.timeout


def test_trap_09_a_tool_gives_its_value_with_and_without_await(run: Any, make_host: Any) -> None:
    async def twice(call: ToolCall) -> Reply:
        await asyncio.sleep(0)
        return Reply(value=2 * call.args[0])

    code = (
        "import asyncio\n[f(1), await f(2), *await asyncio.gather(f(3), f(4)), str(f(5)), asyncio.run(f(6))]"
    )
    assert run(code, make_host(tool=twice), tools=("f",)).value == [2, 4, 6, 8, "10", 12]


def test_trap_10_a_call_from_inside_map_or_sorted_has_no_effect(run: Any, host: Any) -> None:
    for code in ("list(map(f, [1]))", "sorted([2, 1], key=f)", "list(filter(lambda x: f(x), [1]))"):
        outcome = run(
            f"try:\n    {code}\nexcept NotImplementedError:\n    told = True\ntold", host, tools=("f",)
        )
        assert outcome.value is True
    assert host.calls == []


def test_trap_11_the_type_check_is_no_wall_and_stands_in_no_ones_way(run: Any) -> None:
    assert run("x: int = 'text'\nx + given", inputs={"given": "!"}).value == "text!"


@pytest.mark.parametrize("name", ["len", "str", "type", "exec", "int", "print", "list"])
def test_trap_12_inputs_and_tools_may_be_named_like_built_ins(name: str, run: Any, host: Any) -> None:
    outcome = run(f"f([1, {{2}}], {name})", host, tools=("f",), inputs={name: 3})
    assert (outcome.error, outcome.value) == (None, ["f", [[1, {2}], 3], {}])
    outcome = run(f"{name}([1, {{2}}])", host, tools=(name,))
    assert (outcome.error, outcome.value) == (None, [name, [[1, {2}]], {}])


def _starts_a_run(backend: MontyBackend, make_plan: Any, make_host: Any) -> Any:
    """A tool that runs the code that it is given, whose code may call it again."""

    async def tool(call: ToolCall) -> Reply:
        inner = make_plan(call.args[0], tools=("start",))
        outcome = await execute(backend, inner, make_host(tool=tool))
        return Reply(value=outcome.value)

    return tool


def test_trap_13_runs_that_tools_start_never_wait_for_their_own_caller(
    backend: MontyBackend, make_plan: Any, make_host: Any
) -> None:
    """Six callers on two workers hold both while they wait."""
    tool = _starts_a_run(backend, make_plan, make_host)

    async def main() -> list[Any]:
        plans = [make_plan(f"start('start(\"{n} + 1\")') + 1", tools=("start",)) for n in range(6)]
        outcomes = await asyncio.gather(*(execute(backend, plan, make_host(tool=tool)) for plan in plans))
        return [outcome.value for outcome in outcomes]

    assert asyncio.run(main()) == [n + 2 for n in range(6)]


def test_trap_14_no_file_is_touched_but_by_an_access_that_surfaced(
    run: Any, host: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = tmp_path / "conftest.py"
    outcome = run(f"open({str(planted)!r}, 'w')", host)
    assert outcome.error.type == "PermissionError"
    assert host.accesses == [Access("write", str(planted))]
    assert not planted.exists()


def test_trap_15_the_environment_does_not_choose_the_binary(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    planted = tmp_path / "monty"
    planted.write_text("#!/bin/sh\n")
    planted.chmod(0o755)
    monkeypatch.setenv("MONTY_BIN", str(planted))
    monkeypatch.setenv("PATH", str(tmp_path))
    found = binary.locate()
    assert found is not None
    assert found.is_file()
    assert found != planted


CLOSING = """
import asyncio, sys
sys.path.insert(0, {tests!r})
from conftest import RecordingHost, seal
from licet.backend import execute
from licet_monty.backend import MontyBackend

async def main():
    backend = MontyBackend()
    plan = seal("while True: pass")
    sandbox = await backend.open(plan, RecordingHost())
    running = asyncio.create_task(sandbox.run(plan, RecordingHost()))
    while not backend._engine._workers:
        await asyncio.sleep(0.001)
    await backend.close()
    print((await running).termination.value)
    await sandbox.close()

asyncio.run(main())
"""


def test_trap_16_closing_under_a_run_that_computes_ends_it() -> None:
    text = textwrap.dedent(CLOSING.format(tests=str(Path(__file__).parent)))
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "cancelled\n", "")
