"""A runtime that serves for long: what it holds of the machine stays what it was.

Each run leaves something to clean up: a worker to hand back or to replace, a tool's thread or task, an
overlay, an exception, output. The whole of it is twenty thousand runs (`pytest -m soak`).
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from licet import Runtime

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs a Linux host: it reads /proc")

POLICY = """\
licet: 1
extends: licet:compute
allow: [read ./work, write ./work, tool *]
limits: {wall_time: 5s}
"""
SPENT = {"limits": {"wall_time": 0.05}}
ROOM = 24 << 20  # bytes of resident memory that allocators may still come to hold
PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


async def later(number: int) -> int:
    await asyncio.sleep(0)
    return number + 1


def at_once(number: int) -> int:
    return number * 2


def fails() -> None:
    raise ValueError("no such order")


TOOLS = {"later": later, "at_once": at_once, "fails": fails}
PROGRAMS: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("1 + 1", {}, "exited"),
    ("print('x' * 10000)\n[i for i in range(1000)]", {}, "exited"),
    ("at_once(later(1))", {"tools": TOOLS}, "exited"),
    ("import asyncio\nawait asyncio.gather(*[later(i) for i in range(5)])", {"tools": TOOLS}, "exited"),
    ("fails()", {"tools": TOOLS}, "exited"),
    ("1 / 0", {}, "exited"),
    ("open('work/note', 'w').write('x' * 1000)", {}, "exited"),
    ("import random, time\n(random.random(), time.time())", {}, "exited"),
    ("import os\nos.system('id')", {}, "policy_denied"),
)


@dataclass(frozen=True)
class Held:
    """What this process holds of the machine: open files, threads, processes, and bytes of memory in all."""

    files: int
    threads: int
    processes: int
    memory: int


def held() -> Held:
    gc.collect()
    family = [os.getpid()]
    for process in family:
        for task in Path(f"/proc/{process}/task").iterdir():
            family += map(int, (task / "children").read_text().split())
    pages = sum(int(Path(f"/proc/{process}/statm").read_text().split()[1]) for process in family)
    own = Path("/proc/self")
    return Held(
        len(list((own / "fd").iterdir())), len(list((own / "task").iterdir())), len(family), pages * PAGE
    )


@pytest.mark.parametrize("runs", [500, pytest.param(20_000, marks=pytest.mark.soak)])
def test_many_runs_leave_memory_descriptors_and_processes_as_they_were(
    runs: int, own_directories: Path
) -> None:
    (own_directories / "work").mkdir()
    (own_directories / "licet.yaml").write_text(POLICY)

    async def serve(runtime: Runtime, first: int, last: int) -> None:
        for number in range(first, last):
            code, fields, expected = PROGRAMS[number % len(PROGRAMS)]
            result = await runtime.run(code, **fields)
            assert result.termination == expected, (code, result.summary)
            if number % 250 == 0:
                assert (await runtime.run("while True: pass", **SPENT)).termination == "timeout"

    async def main() -> tuple[Held, Held]:
        async with Runtime("licet.yaml") as runtime:
            await serve(runtime, 0, runs // 5)  # until pools, caches and allocators hold what they will hold
            before = held()
            await serve(runtime, runs // 5, runs)
            return before, held()

    before, after = asyncio.run(main())
    assert after.files <= before.files + 2, (before, after)  # a worker that is just being replaced
    assert after.processes <= before.processes + 1, (before, after)
    assert after.threads <= before.threads + 2, (before, after)
    assert after.memory <= before.memory + ROOM, (before, after)
