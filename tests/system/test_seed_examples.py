"""Code that calls functions of its host, through the whole runtime: examples of others, names adapted."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from licet import Limits, Runtime, Termination
from licet.record import MemoryLog
from licet.values import Opaque

POLICY = """
licet: 1
name: examples
extends: licet:compute
allow: [tool *]
deny: [tool transfer]
"""


@pytest.fixture
def log() -> MemoryLog:
    return MemoryLog()


@pytest.fixture
def runtime(own_directories: Path, log: MemoryLog) -> Iterator[Runtime]:
    (own_directories / "licet.yaml").write_text(POLICY)
    with Runtime("licet.yaml", log=log) as runtime:
        yield runtime


async def lookup_policy(wallet_id: int) -> dict[str, Any]:
    await asyncio.sleep(0)
    return {"wallet_id": wallet_id, "review": "human"}


def summarize(policy: dict[str, Any]) -> str:
    return f"Wallet {policy['wallet_id']}: {policy['review']} review"


TOOLS = {"lookup_policy": lookup_policy, "summarize": summarize}


def test_computation_needs_no_tool(runtime: Runtime) -> None:
    assert runtime.run_sync("a = 2\nb = 3\na * b").value == 6
    limits = Limits(wall_time=5.0, memory=64 << 20, recursion=100)
    pure = runtime.run_sync("sum([2, 3, 5])", limits=limits)
    assert (pure.success, pure.value) == (True, 10)


def test_code_that_starts_programs_is_refused_before_it_runs(runtime: Runtime) -> None:
    refused = runtime.run_sync("import os\nos.system('rm -rf /')")
    assert (refused.termination, refused.success) == (Termination.policy_denied, False)


@pytest.mark.parametrize(
    "code",
    [
        "policy = lookup_policy(wallet_id)\nsummarize(policy)",
        "policy = await lookup_policy(wallet_id)\nsummarize(policy)",
        "summarize(policy=lookup_policy(wallet_id=wallet_id))",
        "import asyncio\n(policy,) = await asyncio.gather(lookup_policy(wallet_id))\nsummarize(policy)",
        "async def main():\n    return summarize(await lookup_policy(wallet_id))\nawait main()",
    ],
)
def test_async_and_other_tools_are_called_alike(code: str, runtime: Runtime, log: MemoryLog) -> None:
    limits = Limits(wall_time=5.0, memory=64 << 20, recursion=100)
    result = runtime.run_sync(code, inputs={"wallet_id": 42}, tools=TOOLS, limits=limits)
    assert (result.error, result.value) == (None, "Wallet 42: human review")
    assert [(call.tool, call.decision, call.outcome) for call in result.tool_calls] == [
        ("lookup_policy", "allow", "returned"),
        ("summarize", "allow", "returned"),
    ]
    made = [record.entry for record in log.records() if record.entry.kind == "tool_call"]
    phases = [(entry.phase, entry.body["tool"]) for entry in made]
    names = ["lookup_policy", "lookup_policy", "summarize", "summarize"]
    assert phases == list(zip(["before", "after"] * 2, names, strict=True))


def test_one_script_orchestrates_several_tools(runtime: Runtime) -> None:
    orders = {42: [("A1", Decimal("19.99")), ("A2", Decimal("5.01"))]}

    def fetch_orders(customer_id: int) -> list[tuple[str, Decimal]]:
        return orders[customer_id]

    async def total(orders: list[tuple[str, Decimal]]) -> Decimal:
        await asyncio.sleep(0)
        return sum((amount for _, amount in orders), Decimal(0))

    code = "found = fetch_orders(customer_id)\n{'orders': found, 'total': total(found)}"
    tools = {"fetch_orders": fetch_orders, "total": total}
    result = runtime.run_sync(code, inputs={"customer_id": 42}, tools=tools)
    assert result.value == {"orders": orders[42], "total": Decimal("25.00")}


def test_a_name_that_was_not_passed_is_not_there(runtime: Runtime) -> None:
    result = runtime.run_sync("transfer(1)", tools=TOOLS)
    assert result.error is not None
    assert (result.error.type, result.error.message) == ("NameError", "name 'transfer' is not defined")


def test_what_policy_denies_raises_in_the_code_and_never_runs(runtime: Runtime) -> None:
    moved: list[int] = []
    code = "try:\n    transfer(1)\nexcept PermissionError as problem:\n    told = str(problem)\ntold"
    result = runtime.run_sync(code, tools={"transfer": moved.append})
    assert "`tool transfer` is denied" in result.value
    assert [(call.tool, call.decision, call.outcome) for call in result.tool_calls] == [
        ("transfer", "deny", "denied")
    ]
    assert moved == []


def test_a_tool_that_raises_raises_in_the_code(runtime: Runtime) -> None:
    def fail(kind: str) -> None:
        raise {"lookup": LookupError, "value": ValueError}[kind]("no such order")

    code = "try:\n    fail('value')\nexcept ValueError as problem:\n    print(problem)\n\nfail('lookup')"
    result = runtime.run_sync(code, tools={"fail": fail})
    assert result.stdout == "no such order\n"
    assert result.error is not None
    assert (result.error.type, result.error.message, result.error.line) == ("LookupError", "no such order", 6)


def test_the_limit_of_calls_ends_the_run(runtime: Runtime) -> None:
    made: list[int] = []
    code = "while True:\n    try:\n        note(1)\n    except BaseException: pass"
    result = runtime.run_sync(code, tools={"note": made.append}, limits=Limits(tool_calls=3))
    assert (result.termination, made) == (Termination.tool_limit, [1, 1, 1])


def _shared() -> Any:
    value: Any = 1
    for _ in range(60):
        value = [value, value]
    return value


def _deep() -> Any:
    value: Any = []
    for _ in range(1_000_000):
        value = [value]
    return value


@pytest.mark.parametrize(
    "make", [_shared, _deep, object, lambda: print, lambda: "a" * (5 << 20), lambda: "\ud800"]
)
def test_what_a_tool_returns_crosses_as_it_is_or_not_at_all(make: Any, runtime: Runtime) -> None:
    code = "try:\n    make()\nexcept Exception as problem:\n    told = str(problem)\ntold"
    result = runtime.run_sync(code, tools={"make": make})
    assert (result.error, type(result.value)) == (None, str)


def test_a_tool_may_run_code_of_its_own(runtime: Runtime) -> None:
    def nested(code: str) -> Any:
        return runtime.run_sync(code).value

    async def nested_async(code: str) -> Any:
        return (await runtime.run(code)).value

    tools = {"nested": nested, "nested_async": nested_async}
    assert runtime.run_sync("nested('1 + 1') + nested_async('2 + 2')", tools=tools).value == 6


async def _many(runtime: Runtime, number: int) -> list[Any]:
    async def nested(n: int) -> Any:
        return (await runtime.run("n * 2", inputs={"n": n})).value

    runs = (
        runtime.run("await nested(n) + 1", inputs={"n": n}, tools={"nested": nested}) for n in range(number)
    )
    return [result.value for result in await asyncio.gather(*runs)]


def test_many_runs_whose_tools_run_code_do_not_wait_for_each_other(runtime: Runtime) -> None:
    assert asyncio.run(_many(runtime, 12)) == [2 * n + 1 for n in range(12)]


def test_nothing_stays_from_one_run_to_the_next(runtime: Runtime) -> None:
    assert runtime.run_sync("kept = lookup_policy\n1", tools=TOOLS).value == 1
    for code in ("kept(1)", "lookup_policy(1)", "__licet_now__('lookup_policy', 1)"):
        result = runtime.run_sync(code)
        assert result.error is not None
        assert result.error.type == "NameError"


def test_a_tool_is_no_value(runtime: Runtime) -> None:
    assert isinstance(runtime.run_sync("[summarize][0]", tools=TOOLS).value, Opaque)
