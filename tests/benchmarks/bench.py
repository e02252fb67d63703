"""Benchmarks, each against its peer in the same run, as ratios of medians.

Run all with `uv run python tests/benchmarks/bench.py`, or name some. Nothing here is asserted: machines
differ, and a ratio on a quiet one is what the documentation quotes.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Never

from licet.backend import Backend
from licet.plan import ExecutionPlan, Opened

Case = tuple[str, Callable[[], object], str, Callable[[], object], float]


@contextmanager
def own_state() -> Iterator[Path]:
    """A state directory and a working directory of its own."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as directory:
        os.environ["XDG_STATE_HOME"] = str(Path(directory) / "state")
        os.chdir(directory)
        try:
            yield Path(directory)
        finally:
            os.chdir(before)


def seconds(work: Callable[[], object]) -> float:
    """How long `work` takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def compare(ours: Callable[[], object], theirs: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Median seconds of both, taken in turn so that drift of the machine hits both."""
    a, b = [], []
    for _ in range(rounds):
        for work, times in ((ours, a), (theirs, b)):
            times.append(seconds(work))
    return statistics.median(a), statistics.median(b)


def show(name: str, ours: float, peer: str, theirs: float, goal: str) -> None:
    """One line a comparison."""
    left, right = f"{name:<40}{ours * 1e3:9.2f} ms", f"{peer:<32}{theirs * 1e3:9.2f} ms"
    print(f"{left}   {right}   {ours / theirs:6.2f}x  (goal {goal})")


def warm_run() -> None:
    """`run` and `run_sync` of `1+1` with a durable trail, against a fresh Monty pool a run."""
    from licet import Runtime
    from pydantic_monty import AsyncMonty

    async def fresh() -> None:
        async with AsyncMonty(max_processes=1, min_processes=0) as pool, pool.checkout() as session:
            await session.feed_run("1+1")

    with own_state(), Runtime() as runtime, asyncio.Runner() as runner:
        for name, ours in (
            ("warm run, durable trail", lambda: runner.run(runtime.run("1+1"))),
            ("warm run_sync, durable trail", lambda: runtime.run_sync("1+1")),
        ):
            ours()
            a: list[float] = []
            b: list[float] = []
            for _ in range(10):
                # in blocks: a pool that is being torn down would disturb the very next run
                for work, times in ((ours, a), (lambda: runner.run(fresh()), b)):
                    time.sleep(0.1)
                    times += [seconds(work) for _ in range(20)]
            show(name, statistics.median(a), "fresh AsyncMonty pool a run", statistics.median(b), "0.35x")


def warm_memory() -> None:
    """`run_sync("1+1")` with a log in memory, against a warm checkout of Monty that runs the same."""
    from licet import Runtime
    from licet.record import MemoryLog
    from pydantic_monty import Monty

    with own_state(), Runtime(log=MemoryLog()) as runtime, Monty() as pool:

        def bare() -> None:
            with pool.checkout() as session:
                session.feed_run("1+1")

        for _ in range(50):
            runtime.run_sync("1+1")
            bare()
        ours, theirs = compare(lambda: runtime.run_sync("1+1"), bare, 1000)
    show("warm run_sync, log in memory", ours, "warm Monty checkout", theirs, "4x")


def selection() -> None:
    """Offers and selection with cached results, in microseconds of one run."""
    from licet import Runtime
    from licet.request import as_request
    from licet.select import select

    with own_state(), Runtime() as runtime:
        runtime.run_sync("1+1")
        prepared = runtime._prepare(as_request("1+1", {}), runtime._digest)
        given = (prepared.request, prepared.decision, prepared.needs, runtime.stack)
        times = []
        for _ in range(200):
            began = time.perf_counter()
            for _ in range(50):
                select(*given, runtime.offers())
            times.append((time.perf_counter() - began) / 50)
    print(f"selection with cached results{min(times) * 1e6:>20.1f} µs   (goal 20 µs)")


def whole_process() -> None:
    """`licet run -c 1+1` as a process, against importing pydantic; both compiled their modules before."""

    def run(*arguments: str) -> None:
        subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, check=True)

    with own_state() as state:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(state / "compiled")}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        ours, theirs = compare(
            lambda: run("-m", "licet", "run", "-c", "1+1"), lambda: run("-c", "import pydantic"), 15
        )
    show("licet run -c '1+1', whole process", ours, "python -c 'import pydantic'", theirs, "6x")


def sealed_plan(backend: Backend, code: str, workdir: Path, opened: Opened) -> ExecutionPlan:
    """A plan as the runtime would make it."""
    from licet.plan import seal
    from licet.request import DEFAULT_LIMITS

    described = backend.describe()
    return seal(
        ExecutionPlan(
            run_id="benchmark",
            backend=described.name,
            code=code,
            inputs={},
            stdin=b"",
            environment={},
            workdir=str(workdir),
            limits=DEFAULT_LIMITS,
            opened=opened,
            contract=described.sandbox_enforcement_contract,
            plan_digest="sha256:benchmark",
            policy_class="benchmark",
        )
    )


class Deaf:
    """A host that takes output and grants nothing else."""

    def write(self, stream: str, data: bytes) -> bool:
        return True

    async def call(self, call: object) -> Never:
        raise NotImplementedError

    access = connect = call


def controlled_process() -> None:
    """`backend.execute` of a plan through `controlled_process`, against a bare isolated interpreter.

    The first run of a backend, and the later ones; then the same through the runtime, with a log in memory.
    """
    from licet import Runtime
    from licet.backend import execute
    from licet.record import MemoryLog
    from licet_controlled_process.backend import ControlledProcess

    everything = Opened(read=("/",), write=("/",), network=("any",), shell=True)
    code = "class A(Exception): pass\nprint(6 * 7)"

    def bare() -> None:
        subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True)

    with own_state() as workdir, asyncio.Runner() as runner:
        backend, *fresh = backends = [ControlledProcess() for _ in range(70)]
        for each in backends:
            each.describe()

        def run(backend: ControlledProcess) -> None:
            runner.run(execute(backend, sealed_plan(backend, code, workdir, everything), Deaf()))

        for name, work in (("first run", lambda: run(fresh.pop())), ("later runs", lambda: run(backend))):
            for _ in range(3):
                work()
            ours, theirs = compare(work, bare, 60)
            show(f"controlled_process, {name}", ours, "python -I -S -c", theirs, "1.3x")
        for each in backends:
            runner.run(each.close())
    with own_state(), Runtime("licet:trusted", log=MemoryLog()) as runtime:
        for _ in range(3):
            runtime.run_sync(code)
        ours, theirs = compare(lambda: runtime.run_sync(code), bare, 60)
    show("controlled_process, log in memory", ours, "python -I -S -c", theirs, "1.3x and the runtime")


def restricted_linux() -> None:
    """`print(6*7)` in a jail, against a bare interpreter, `bwrap` and `nsjail`; alone and two at once."""
    from jailing import CODE, compare_jails
    from licet_restricted_linux.backend import RestrictedLinux

    with own_state() as workdir:
        opened = Opened(read=(str(workdir),))
        described = RestrictedLinux()
        compare_jails(lambda: sealed_plan(described, CODE, workdir, opened), Deaf(), show, 60)


def policy() -> None:
    """Decisions under 30 and 10,000 rules, against Cedar; `uv pip install cedarpy` brings it."""
    from policies import compare_policies, compare_sizes, load_seconds

    with own_state():
        compare_policies(show, 30)
        compare_sizes(show, 10_000, 30)
    print(f"load of 1,000 rules{load_seconds(1_000):>28.3f} s    (goal 0.3 s)")


def screen() -> None:
    """Harmless ten-line programs through the static screen, against parsing alone."""
    from screening import compare_screens

    compare_screens(100)


def audit_query() -> None:
    """Making the index of a million records, and asking it; against reading them all."""
    from licet.cli.app import execute
    from licet_audit.index import Index
    from licet_audit.reader import LogReader
    from queries import RECORDS, long_log, median_ms, questions

    with own_state() as directory:
        os.environ["XDG_CACHE_HOME"] = str(directory / "cache")
        state = long_log(directory / ".licet", RECORDS)
        began = time.perf_counter()
        with Index.open(state) as index:
            built = time.perf_counter() - began
            print(f"index of {RECORDS} records: {built:.1f} s, {RECORDS / built:.0f} a second")
            for name, work in questions(index, RECORDS // 5):
                print(f"{name:<40}{median_ms(work):9.2f} ms   (goal 5 ms; 500 ms for all by something)")
        began = time.perf_counter()
        execute(["audit", "list", "--limit", "1"])
        listed = time.perf_counter() - began
        began = time.perf_counter()
        sum(1 for _ in LogReader(state).records())
        show("audit list of a current index", listed, "reading all", time.perf_counter() - began, "1 s")


def audit_append() -> None:
    """Durable appends by one task, 64 tasks and 8 processes, against one writer of plain JSONL."""
    from audit import compare_appends

    with own_state() as folder:
        compare_appends(folder, show, 9)


def audit_prove() -> None:
    """The inclusion proof of one of a million records, from tiles on disk."""
    from proving import measure

    with own_state() as folder:
        measure(folder)


def audit_verify() -> None:
    """Verifying a log of 100,000 records, against a bare check of its chain."""
    from verifying import compare_verifying

    with own_state():
        compare_verifying(show, compare, 100_000)


def approving() -> None:
    """Asking and consuming an approval durably, against one synced write; lists of 100,000 past ones."""
    from approving import compare_spending, measure_list

    with own_state() as folder:
        compare_spending(folder, show, 200)
    with own_state() as folder:
        measure_list(folder)


def tool_call() -> None:
    """A tool call with its decision and records, log in memory, against a bare call of Monty's."""
    from calling import compare_calls

    with own_state() as folder:
        compare_calls(folder, show, 7)


BENCHMARKS = {
    work.__name__: work
    for work in (
        warm_run,
        warm_memory,
        selection,
        whole_process,
        controlled_process,
        restricted_linux,
        policy,
        screen,
        tool_call,
        approving,
        audit_append,
        audit_prove,
        audit_query,
        audit_verify,
    )
}


if __name__ == "__main__":
    for name in sys.argv[1:] or BENCHMARKS:
        BENCHMARKS[name]()
