"""Every way in which a run can end, told apart exactly; the rows of Monty's error map."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from licet.backend import GuestError, Outcome, Reply, Termination, ToolCall, execute
from licet.errors import BackendError, LaunchFailed
from licet.request import Limits
from licet_monty.backend import MontyBackend
from licet_monty.bounds import bounds

LACKS = "Monty, the Python subset that ran this, lacks it: "


def _failed(outcome: Outcome) -> GuestError:
    assert (outcome.termination, outcome.exit_code) == (Termination.exited, 1)
    assert outcome.value is None
    assert outcome.error is not None
    return outcome.error


def test_a_run_exits_with_its_value(run: Any) -> None:
    outcome = run("a = 2\nb = 3\na * b")
    assert (outcome.termination, outcome.exit_code) == (Termination.exited, 0)
    assert (outcome.value, outcome.value_repr, outcome.error, outcome.detail) == (6, "6", None, None)
    assert 0 < outcome.usage.wall_time < 10
    assert 0 <= outcome.usage.cpu_time < 10


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("\n1/0", GuestError("ZeroDivisionError", "division by zero", 2)),
        ("def f():\n    return {}['k']\n\nf()", GuestError("KeyError", "k", 2)),
        ("x = 1\nx ==", GuestError("SyntaxError", "Expected an expression", 2)),
        ("(" * 100_000, GuestError("SyntaxError", "Source is too deeply nested", 1)),
        ("x = 1\neval('1/0')", GuestError("ZeroDivisionError", "division by zero", 2)),
        ("import json\njson.loads('{')", None),
        ("raise TimeoutError('feed time limit exceeded: 200ms > 199ms')", None),
        ("raise MemoryError('memory limit exceeded: 9 bytes > 8 bytes')", None),
        ("raise MemoryError('the worker exceeded its memory limit and was terminated')", None),
        ("raise RuntimeError('suspension limit 1000000 exceeded')", None),
        ("def r(): return r()\nr()", GuestError("RecursionError", "maximum recursion depth exceeded", 1)),
        ("raise KeyboardInterrupt", GuestError("KeyboardInterrupt", "", 1)),
        ("assert 1 == 2", GuestError("AssertionError", "assert 1 == 2", 1)),
        ("nobody(1)", GuestError("NameError", "name 'nobody' is not defined", 1)),
        ("[nobody]", GuestError("NameError", "name 'nobody' is not defined", 1)),
        ("import socket", GuestError("ModuleNotFoundError", "No module named 'socket'", 1)),
        ("import xml.dom as d", GuestError("ModuleNotFoundError", "No module named 'xml'", 1)),
        ("import re\nre.compile('(')", None),
    ],
)
def test_exceptions_are_the_codes_own(code: str, error: GuestError | None, run: Any) -> None:
    found = _failed(run(code))
    assert error is None or found == error


@pytest.mark.parametrize(
    ("code", "kind"),
    [("import json\njson.loads('{')", "JSONDecodeError"), ("import re\nre.compile('(')", "PatternError")],
)
def test_dotted_types_are_named_as_python_names_them(code: str, kind: str, run: Any) -> None:
    assert (_failed(run(code)).type, _failed(run(code)).line) == (kind, 2)


def test_a_regular_expression_that_explodes_is_the_codes_error(run: Any) -> None:
    error = _failed(run("import re\nre.match('(a*)*\\\\1b', 'a' * 60)", limits=Limits(wall_time=5.0)))
    assert error.type == "PatternError"


def test_what_monty_lacks_is_said(run: Any) -> None:
    outcome = run("x = 1\ndef f():\n    yield 1")
    message = "The monty syntax parser does not yet support yield expressions"
    assert _failed(outcome) == GuestError("NotImplementedError", message, 3)
    assert outcome.detail == LACKS + message
    forged = run("raise NotImplementedError('The monty syntax parser does not yet support this')")
    assert (_failed(forged).type, forged.detail) == ("NotImplementedError", None)


@pytest.mark.parametrize(
    ("code", "lacked"),
    [
        ("'x'.translate({})", "str.translate"),
        ("{}.fromkeys", "dict.fromkeys"),
        ("import json\njson.JSONEncoder", "json.JSONEncoder"),
        ("from dataclasses import asdict", "dataclasses.asdict"),
        ("'x'.nosuch", None),
        ("class A: pass\nA().translate", None),
        ("import math\nmath.nosuch", None),
        ("from math import nosuch", None),
        ("raise AttributeError(\"module 'antigravity' has no attribute 'x'\")", None),
        ("raise AttributeError(\"'copyright' object has no attribute '__class__'\")", None),
        ("raise ValueError(\"'str' object has no attribute 'translate'\")", None),
    ],
)
def test_members_that_cpython_has_are_named(code: str, lacked: str | None, run: Any) -> None:
    outcome = run(code)
    assert _failed(outcome).type in ("AttributeError", "ImportError", "ValueError")
    assert outcome.detail == (lacked and f"{LACKS}`{lacked}`")


def test_an_internal_error_of_monty_is_told_and_its_worker_dropped(run: Any, make_host: Any) -> None:
    outcome = run("raise ValueError(1)")
    assert _failed(outcome).type == "RuntimeError"
    assert outcome.detail == LACKS + "exceptions can only be called with zero or one string argument"


@pytest.mark.parametrize(
    ("code", "exit_code", "stderr"),
    [
        ("raise SystemExit", 0, b""),
        ("raise SystemExit()", 0, b""),
        ("raise SystemExit('')", 1, b"\n"),
        ("raise SystemExit('no: such')", 1, b"no: such\n"),
    ],
)
def test_system_exit(code: str, exit_code: int, stderr: bytes, run: Any, host: Any) -> None:
    outcome = run(code, host)
    assert (outcome.termination, outcome.exit_code, outcome.error) == (Termination.exited, exit_code, None)
    assert host.stderr == stderr


@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "try:\n    while True: pass\nexcept BaseException: pass",
        "x = 10 ** 100000\nfor i in range(100): x = x * x",  # one native operation, deaf to Monty's own limit
        "import time\ntime.sleep(1000)",
        "import asyncio\nasyncio.run(asyncio.sleep(1000))",
        "class A:\n    def __repr__(self):\n        while True: pass\nA()",
        "while True: tool()",
    ],
)
def test_wall_time_ends_a_run(code: str, run: Any) -> None:
    outcome = run(code, limits=Limits(wall_time=0.2), tools=("tool",))
    assert (outcome.termination, outcome.exit_code, outcome.error) == (Termination.timeout, None, None)
    assert 0.2 <= outcome.usage.wall_time < 1.5


def test_wall_time_ends_a_run_that_waits_for_a_tool(run: Any, make_host: Any) -> None:
    cancelled: list[str] = []

    async def never(call: ToolCall) -> Reply:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(call.name)
            raise
        raise AssertionError

    outcome = run("wait()", make_host(tool=never), limits=Limits(wall_time=0.2), tools=("wait",))
    assert outcome.termination == Termination.timeout
    assert cancelled == ["wait"]


@pytest.mark.parametrize("code", ["while True: pass", "x = 10 ** 100000\nfor i in range(100): x = x * x"])
def test_cpu_time_ends_a_run(code: str, run: Any) -> None:
    outcome = run(code, limits=Limits(wall_time=10.0, cpu_time=0.1))
    assert outcome.termination == Termination.cpu_limit
    assert 0.1 <= outcome.usage.cpu_time < 0.5


def test_cpu_time_does_not_count_waiting(run: Any) -> None:
    outcome = run("import time\ntime.sleep(0.2)\n1", limits=Limits(wall_time=10.0, cpu_time=0.1))
    assert (outcome.termination, outcome.value) == (Termination.exited, 1)


@pytest.mark.parametrize(
    "code",
    [
        "'a' * 10 ** 9",
        "x = []\nwhile True: x.append('a' * 100000)",
        "try:\n    'a' * 10 ** 9\nexcept BaseException: pass",
        "x = b'a' * 6_000_000\nx.hex()",  # past the soft limit in one step: the worker ends itself
        "def f():\n    raise ValueError('a' * 10 ** 9)\nf()",
    ],
)
def test_memory_ends_a_run(code: str, run: Any) -> None:
    outcome = run(code, limits=Limits(wall_time=10.0, memory=8 << 20))
    assert (outcome.termination, outcome.exit_code, outcome.error) == (Termination.memory_limit, None, None)


def test_the_memory_limit_cannot_be_forged_even_by_who_knows_it() -> None:
    limits = [bounds(Limits(memory=64 << 20)).memory for _ in range(50)]
    assert len(set(limits)) > 25
    assert all((64 << 20) - (1 << 16) < limit <= 64 << 20 for limit in limits)


def test_recursion_is_the_plans(run: Any) -> None:
    code = "def r(n): return 0 if n == 0 else 1 + r(n - 1)\n"
    assert run(f"{code}r(900)", limits=Limits(wall_time=5.0, recursion=1000)).value == 900
    assert _failed(run(f"{code}r(900)", limits=Limits(wall_time=5.0, recursion=100))).type == "RecursionError"


def test_too_many_suspensions_end_a_run(run: Any, host: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("licet_monty.bounds.SUSPENSIONS", 20)
    monkeypatch.setattr("licet_monty.bounds._JITTER_BITS", 3)
    code = "while True:\n    try:\n        f()\n    except BaseException: pass"
    outcome = run(code, host, tools=("f",))
    assert outcome.termination == Termination.tool_limit
    assert outcome.detail == f"suspension limit {len(host.calls)} exceeded"
    assert 20 <= len(host.calls) < 28


def test_the_limit_of_suspensions_cannot_be_forged_even_by_who_knows_it() -> None:
    assert len({bounds(Limits()).suspensions for _ in range(50)}) > 25


def test_output_ends_a_run(run: Any, make_host: Any) -> None:
    host = make_host(output_limit=100_000)
    outcome = run("while True: print('x' * 100)", host, limits=Limits(wall_time=10.0))
    assert outcome.termination == Termination.output_limit
    assert outcome.usage.wall_time < 2
    assert 100_000 < len(host.stdout) < 1_000_000


def test_output_arrives_in_order_and_whole(run: Any, host: Any) -> None:
    run("import sys\nfor i in range(10000): print(i)\nprint('é\\x00', file=sys.stderr)\n1/0", host)
    assert host.stdout == b"".join(b"%d\n" % i for i in range(10000))
    assert host.stderr == "é\x00\n".encode()


def test_a_host_that_fails_a_call_ends_the_run(make_plan: Any, make_host: Any, backend: MontyBackend) -> None:
    async def broken(call: ToolCall) -> Reply:
        raise OSError("log full")

    plan = make_plan("try:\n    f()\nexcept BaseException: pass\nprint('on')", tools=("f",))
    host = make_host(tool=broken)
    with pytest.raises(OSError, match=r"^log full$"):
        asyncio.run(execute(backend, plan, host))
    assert host.stdout == b""


@pytest.mark.parametrize("signal_", [signal.SIGKILL, signal.SIGTERM])
def test_a_worker_that_is_killed_is_lost(signal_: int, run: Any, make_host: Any) -> None:
    async def kill(call: ToolCall) -> Reply:
        os.kill(_worker_of_this_process(), signal_)
        return Reply(value=None)

    outcome = run("f()\nwhile True: pass", make_host(tool=kill), tools=("f",))
    assert outcome.termination == Termination.backend_lost
    assert outcome.detail is not None
    assert outcome.detail.startswith("the worker died: ")
    assert run("1").value == 1


def _worker_of_this_process() -> int:
    """The worker that uses most processor time: the one that runs, not an idle one."""
    from licet_monty import engine

    pids = [worker._pid for one in engine._engines for worker in one._workers]
    assert len(pids) == 1
    return int(pids[0] or 0)


def test_a_worker_that_is_killed_while_idle_is_replaced_unseen(run: Any) -> None:
    first = run("1").observed["process_isolation"]
    os.kill(int(first.split()[1]), signal.SIGKILL)
    second = run("2")
    assert (second.termination, second.value) == (Termination.exited, 2)
    assert second.observed["process_isolation"] != first


CYCLE: list[Any] = []
CYCLE.append(CYCLE)


def test_an_input_that_cannot_enter_is_told(run: Any) -> None:
    for value in (object(), "\ud800", bytearray(b"x")):
        outcome = run("x", inputs={"x": value})
        assert outcome.termination == Termination.backend_error
        assert outcome.detail.startswith("an input can't cross into Monty: ")


def test_an_input_that_contains_itself_or_has_no_name_is_the_runs_error(run: Any) -> None:
    """Core refuses both before there is a plan."""
    for inputs in ({"x": CYCLE}, {"1x": 1}):
        outcome = run("1", inputs=inputs)
        assert (outcome.termination, outcome.exit_code, outcome.value) == (Termination.exited, 1, None)


@pytest.mark.soak
def test_an_input_that_is_too_large_for_a_frame_is_told(run: Any) -> None:
    outcome = run("1", inputs={"x": "a" * (257 << 20)}, limits=Limits(wall_time=60.0, memory=1 << 30))
    assert outcome.termination == Termination.memory_limit
    assert outcome.detail.startswith("argument frame of ")


def test_code_that_is_no_text_is_a_syntax_error(run: Any) -> None:
    message = "source code is not valid UTF-8 (contains lone surrogates)"
    assert _failed(run("x = '\ud800'")) == GuestError("SyntaxError", message)


def test_a_binary_that_is_missing_is_told_before_anything_runs(
    make_plan: Any, host: Any, tmp_path: Path
) -> None:
    missing = MontyBackend(binary=tmp_path / "monty")
    assert missing.describe().unavailable == f"the binary `{tmp_path / 'monty'}` does not exist"
    with pytest.raises(LaunchFailed, match=r"can't run here: the binary "):
        asyncio.run(execute(missing, make_plan("1"), host))


def test_a_binary_that_is_no_monty_is_told(make_plan: Any, host: Any, tmp_path: Path) -> None:
    for content in (b"", b"#!/bin/sh\nexit 1\n"):
        wrong = tmp_path / f"monty{len(content)}"
        wrong.write_bytes(content)
        wrong.chmod(0o755)
        with pytest.raises(LaunchFailed):
            asyncio.run(execute(MontyBackend(binary=wrong), make_plan("1"), host))


def test_a_spent_sandbox_refuses(make_plan: Any, host: Any, backend: MontyBackend) -> None:
    async def main() -> None:
        plan = make_plan("while True: pass", limits=Limits(wall_time=0.1))
        sandbox = await backend.open(plan, host)
        assert (await sandbox.run(plan, host)).termination == Termination.timeout
        with pytest.raises(BackendError, match=r"^this sandbox is spent: "):
            await sandbox.run(plan, host)
        await sandbox.close()
        await sandbox.close()
        with pytest.raises(BackendError, match=r"^this sandbox is spent: "):
            await sandbox.run(plan, host)

    asyncio.run(main())


def test_names_stay_within_a_sandbox_and_not_beyond(
    make_plan: Any, host: Any, backend: MontyBackend, run: Any
) -> None:
    async def main() -> list[Any]:
        first, second = make_plan("x = 20"), make_plan("x + 1")
        sandbox = await backend.open(first, host)
        found = [(await sandbox.run(first, host)).value, (await sandbox.run(second, host)).value]
        await sandbox.close()
        return found

    assert asyncio.run(main()) == [None, 21]
    assert _failed(run("x")).type == "NameError"


def test_too_many_file_accesses_end_a_run(run: Any, host: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("licet_monty.dialogue.ACCESSES", 50)
    outcome = run("while True:\n    try:\n        open('x')\n    except OSError: pass", host)
    assert outcome.termination == Termination.file_limit
    assert len(host.accesses) == 50
