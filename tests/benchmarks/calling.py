"""One call of a tool by running code, through the whole runtime, against a bare call of Monty's own."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path

CALLS = 1000

POLICY = "licet: 1\nname: bench\nextends: licet:compute\nallow: [tool *]\nlimits: {tool_calls: 100000}\n"


def compare_calls(folder: Path, show: Callable[..., None], rounds: int) -> None:
    """Seconds a call, of runs that make many, less those of runs that make none; both ways in turn."""
    from licet import Limits, Runtime
    from licet.record import MemoryLog
    from pydantic_monty import Monty

    (folder / "licet.yaml").write_text(POLICY)

    def add(left: int, right: int) -> int:
        return left + right

    async def add_async(left: int, right: int) -> int:
        return left + right

    def code(call: str) -> str:
        return f"for i in range({CALLS}): {call}"

    with Runtime("licet.yaml", log=MemoryLog()) as runtime, Monty() as pool:
        limits = Limits(wall_time=60.0, tool_calls=10 * CALLS)

        def ours(call: str, tool: object) -> None:
            result = runtime.run_sync(code(call), tools={"add": tool}, limits=limits)
            assert result.success, result.error
            assert len(result.tool_calls) == call.count("add(") * CALLS

        def bare() -> None:
            with pool.checkout(limits={"max_suspensions": 10 * CALLS}) as session:
                session.feed_run(code("add(i, 1)"), external_lookup={"add": add})

        def seconds(work: Callable[[], None]) -> float:
            began = time.perf_counter()
            work()
            return (time.perf_counter() - began) / CALLS

        ours("add(i, 1)", add)
        for name, call, tool in (
            ("plain tool", "add(i, 1)", add),
            ("async tool", "add(i, 1)", add_async),
            ("async tool, awaited", "await add(i, 1)", add_async),
        ):
            found = [(seconds(lambda: ours(call, tool)), seconds(bare)) for _ in range(rounds)]  # noqa: B023
            left, right = (statistics.median(times) for times in zip(*found, strict=True))
            show(f"call of a {name}, log in memory", left, "bare call by feed_run", right, "6x")
