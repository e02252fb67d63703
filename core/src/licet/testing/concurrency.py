"""Tests of many runs at once: outputs, values, inputs and names stay apart, on one loop and on several."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from licet.backend import Termination
from licet.testing.bench import Bench, Ran

_TALK = "count = 0\nwhile count < 200:\n    print(mine, count)\n    count += 1\nname = mine\n[name, mine * 2]"
_RUNS = 12


class Concurrency:
    """Instances are shared by all runs of a runtime, and used from several threads."""

    def test_runs_at_once_stay_apart(self, bench: Bench) -> None:
        bench.needs(_TALK)
        _keeps_apart(asyncio.run(_talk(bench, range(_RUNS))), range(_RUNS))

    def test_loops_of_several_threads_share_a_backend(self, bench: Bench) -> None:
        bench.needs(_TALK)
        parts = [range(start, start + 3) for start in range(0, _RUNS, 3)]
        with ThreadPoolExecutor(len(parts)) as threads:
            found = list(threads.map(lambda part: asyncio.run(_talk(bench, part)), parts))
        for ran, part in zip(found, parts, strict=True):
            _keeps_apart(ran, part)

    def test_each_run_ends_in_its_own_way(self, bench: Bench) -> None:
        codes = ("print('fine')\n1", "1 / 0", "raise SystemExit", "(", "print('too')\n2")

        async def work() -> list[Ran]:
            return await asyncio.gather(*map(bench.execute, codes))

        found = asyncio.run(work())
        assert [ran.outcome.exit_code for ran in found] == [0, 1, 0, 1, 0]
        assert [ran.outcome.value for ran in found] == [1, None, None, None, 2]
        assert [ran.stdout for ran in found] == [b"fine\n", b"", b"", b"", b"too\n"]


async def _talk(bench: Bench, numbers: range) -> list[Ran]:
    return await asyncio.gather(*(bench.execute(_TALK, inputs={"mine": number}) for number in numbers))


def _keeps_apart(found: list[Ran], numbers: range) -> None:
    for ran, number in zip(found, numbers, strict=True):
        assert ran.outcome.termination is Termination.exited
        assert ran.outcome.value == [number, number * 2]
        assert ran.stdout == b"".join(b"%d %d\n" % (number, count) for count in range(200))
