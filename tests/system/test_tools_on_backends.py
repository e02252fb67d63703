"""The same code with the same tools on every backend: one answer, one list of calls, the same records."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from licet import Runtime
from licet.backend import Backend
from licet.record import MemoryLog
from licet_controlled_process.backend import ControlledProcess
from licet_monty.backend import MontyBackend
from licet_restricted_linux.backend import RestrictedLinux

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="jails are of Linux alone")

BACKENDS: tuple[type[Backend], ...] = (MontyBackend, ControlledProcess, RestrictedLinux)
POLICY = """\
licet: 1
allow:
  - tool find
  - tool fetch
  - tool fail
  - tool pay
  - tool odd
  - tool wide
  - read /
  - write /
  - network any
  - network private
  - shell
tools:
  pay: {order: string, amount: int}
rules:
  - id: no-large-payments
    if: tool == "pay" && args.amount > 100
    deny: [tool pay]
limits: {wall_time: 20s, tool_calls: 20, stdout: 1MiB, stderr: 1MiB, output: 16MiB}
sandbox: {evidence: declared}
"""

PROGRAMS = {
    "a value": "find('a')",
    "keywords": "find(order='a')",
    "awaited": "import asyncio\nasync def main():\n    return await fetch('a')\nasyncio.run(main())",
    "an async tool that is not awaited": "fetch('a')['order'] + fetch('b')['order']",
    "gathered": (
        "import asyncio\nasync def main():\n"
        "    return await asyncio.gather(*[fetch(n) for n in 'abc'])\nasyncio.run(main())"
    ),
    "raised": "try:\n    fail('ValueError')\nexcept ValueError as problem:\n    told = str(problem)\ntold",
    "raised and not caught": "x = 1\nfail('LookupError')",
    "a kind of an exception": "fail('ConnectionError')",
    "an exception that nobody knows": "fail('Odd')",
    "denied": "pay(order='a', amount=99)\npay(order='a', amount=101)",
    "denied and caught": (
        "try:\n    pay('a', 101)\nexcept PermissionError as problem:\n    told = 'no'\n[told, pay('a', 1)]"
    ),
    "a call that does not fit": "pay('a')",
    "arguments of another type": "pay('a', 'b')",
    "no data": "find(len)",
    "too many calls": "for number in range(30):\n    find(number)",
    "a tool that policy does not allow": "hidden()",
    "a tool that is not there": "missing()",
    "a result that can't cross": "odd()",
    "a wide result": "len(wide(500))",
    "a result that is too wide": "wide(300000)",
    "a tool's name that the code takes": "def find(x):\n    return 'mine'\nfind('a')",
    "data of every kind": (
        "find([None, True, -2**70, 1.5, 'ü\\0', b'\\xff', (1, [2]), {1: {'a'}}, {'$type': 1}])"
    ),
}


class Odd(Exception):
    pass


KINDS = {"ValueError": ValueError, "LookupError": LookupError, "ConnectionError": ConnectionError, "Odd": Odd}


def find(order: Any) -> Any:
    return {"order": order}


async def fetch(order: str) -> Any:
    await asyncio.sleep(0)
    return {"order": order}


def fail(kind: str) -> None:
    raise KINDS[kind](f"{kind} was wanted")


def pay(order: str, amount: int) -> str:
    return f"{order}: {amount}"


def odd() -> object:
    return object()


def wide(size: int) -> Any:
    return list(range(size))


TOOLS = {"find": find, "fetch": fetch, "fail": fail, "pay": pay, "odd": odd, "wide": wide, "hidden": find}


Used = tuple[Runtime, MemoryLog]


@pytest.fixture(scope="module")
def runtimes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Used]]:
    """A runtime for each backend, that has no other."""
    policy = tmp_path_factory.mktemp("policy") / "licet.yaml"
    policy.write_text(POLICY)
    backends = [make() for make in BACKENDS]
    unavailable = [one.describe().name for one in backends if one.describe().unavailable]
    if unavailable:
        pytest.skip(f"not every backend runs here: {', '.join(unavailable)}")
    with contextlib.ExitStack() as opened:
        made = []
        for backend in backends:
            log = MemoryLog()
            made.append((opened.enter_context(Runtime(policy, backends=[backend], log=log)), log))
        yield made


def shown(used: Used, code: str) -> dict[str, Any]:
    """What has to be the same everywhere: not how long it took, and not what stands for the plan."""
    runtime, log = used
    result = runtime.run_sync(code, tools=TOOLS)
    assert result.backend is not None, result.detail
    records = [
        (entry.body["sequence"], entry.phase, {**entry.body, "call_digest": None, "took_ns": None})
        for entry in (record.entry for record in log.records_of(result.run_id))
        if entry.kind == "tool_call"
    ]
    return {
        "ended": (result.termination, result.exit_code),
        "value": (type(result.value), result.value),
        "error": result.error and (result.error.type, result.error.message, result.error.line),
        "calls": [(one.tool, one.decision, one.outcome) for one in result.tool_calls],
        "records": sorted(records, key=lambda one: one[:2]),
    }


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_backend_comes_to_the_same(name: str, runtimes: list[Used]) -> None:
    found = [shown(used, PROGRAMS[name]) for used in runtimes]
    assert found[0]["records"] or name in ("a tool that is not there", "a tool's name that the code takes")
    assert found == [found[0]] * len(BACKENDS)


def test_a_tool_that_is_passed_on_is_called_though_not_everywhere_with_its_line(runtimes: list[Used]) -> None:
    code = "def twice(f, x):\n    return [f(x), f(x)]\ntwice(find, 'a')"
    found = [shown(used, code) for used in runtimes]
    assert [one["value"][1] for one in found] == [[{"order": "a"}] * 2] * len(BACKENDS)
    assert [one["calls"] for one in found] == [[("find", "allow", "returned")] * 2] * len(BACKENDS)
