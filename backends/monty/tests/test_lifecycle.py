"""Pools, cancellation, many runs at once, forks, and the ends of processes: nothing hangs, nothing stays."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from licet.backend import Reply, Termination, ToolCall, execute
from licet.errors import LaunchFailed
from licet.request import Limits
from licet_monty import pool as pools
from licet_monty.backend import MontyBackend

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc to see what processes are left")


def _workers() -> set[int]:
    """The Monty workers that are children of this process, and no zombies."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            name, _, rest = (process / "stat").read_text().rpartition(") ")
        except OSError:
            continue
        state, parent = rest.split()[:2]
        if name.endswith("(monty") and int(parent) == os.getpid() and state != "Z":
            found.add(int(process.name))
    return found


@pytest.fixture
def alone() -> Iterator[MontyBackend]:
    """A backend of its own, of which nothing is left afterwards."""
    before, threads = _workers(), _threads()
    backend = MontyBackend(workers=2)
    yield backend
    asyncio.run(backend.close())
    assert _workers() - before == set()
    assert _threads() - threads == set()


async def _returned(backend: MontyBackend) -> None:
    """Wait until every worker is back in its pool, which happens on a thread that nobody waits for."""
    async with asyncio.timeout(5):
        while backend._engine is not None and backend._engine._workers:  # noqa: ASYNC110
            await asyncio.sleep(0)


def _threads() -> set[str]:
    return {
        f"{thread.name} {thread.ident}" for thread in threading.enumerate() if "licet-monty" in thread.name
    }


def test_a_run_that_shares_nothing_has_a_worker_of_its_own(
    alone: MontyBackend, make_plan: Any, host: Any
) -> None:
    async def main() -> list[str]:
        found = []
        for number, warm in enumerate((True, False, False, True)):
            plan = make_plan("1", warm=warm, run_id=f"run {number}")
            found.append((await execute(alone, plan, host)).observed["process_isolation"])
            await _returned(alone)
        return found

    first, *cold, last = asyncio.run(main())
    assert (first, len({first, *cold})) == (last, 3)


def test_closing_leaves_nothing_and_opening_again_works(
    alone: MontyBackend, make_plan: Any, host: Any
) -> None:
    for _ in range(2):
        assert asyncio.run(execute(alone, make_plan("1 + 1"), host)).value == 2
        assert len(_workers()) >= 1
        asyncio.run(alone.close())
        asyncio.run(alone.close())


def test_a_warm_worker_serves_the_next_run(alone: MontyBackend, make_plan: Any, host: Any) -> None:
    async def main() -> list[str]:
        found = []
        for _ in range(5):
            outcome = await execute(alone, make_plan("1"), host)
            found.append(outcome.observed["process_isolation"])
            await _returned(alone)
        return found

    assert len(set(asyncio.run(main()))) == 1


@pytest.mark.parametrize(
    ("code", "limits"),
    [
        ("while True: pass", Limits(wall_time=0.1)),
        ("while True: pass", Limits(wall_time=5.0, cpu_time=0.05)),
        ("'a' * 10 ** 9", Limits(wall_time=5.0, memory=8 << 20)),
        ("raise ValueError(1)", Limits(wall_time=5.0)),
    ],
)
def test_a_worker_that_hit_a_limit_is_not_used_again(
    code: str, limits: Limits, alone: MontyBackend, make_plan: Any, host: Any
) -> None:
    first = asyncio.run(execute(alone, make_plan(code, limits=limits), host))
    second = asyncio.run(execute(alone, make_plan("1"), host))
    assert first.observed["process_isolation"] != second.observed["process_isolation"]
    assert second.value == 1


def test_tenants_and_policy_classes_never_share_a_worker(
    alone: MontyBackend, make_plan: Any, host: Any
) -> None:
    seen: dict[str, set[Any]] = {}

    async def main() -> None:
        for tenant, policy_class in [("a", "x"), ("b", "x"), (None, "x"), ("a", "y")] * 3:
            outcome = await execute(alone, make_plan("1", tenant=tenant, policy_class=policy_class), host)
            seen.setdefault(outcome.observed["process_isolation"], set()).add((tenant, policy_class))

    asyncio.run(main())
    assert len(seen) >= 4
    assert all(len(keys) == 1 for keys in seen.values())


def test_the_number_of_pools_is_bounded(alone: MontyBackend, make_plan: Any, host: Any) -> None:
    async def main() -> None:
        for number in range(pools.MOST_POOLS + 4):
            await execute(alone, make_plan("1", tenant=f"t{number}"), host)
            await _returned(alone)

    before = _workers()
    asyncio.run(main())
    assert alone._engine is not None
    assert list(alone._engine.pools._pools) == [(f"t{n}", "tests", 0) for n in range(4, pools.MOST_POOLS + 4)]
    assert len(_workers() - before) <= pools.MOST_POOLS + 2


def test_fifty_runs_at_once_on_two_workers(alone: MontyBackend, make_plan: Any, make_host: Any) -> None:
    most, now = 0, 0

    async def tool(call: ToolCall) -> Reply:
        nonlocal most, now
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.001)
        now -= 1
        return Reply(value=call.args[0] * 2)

    async def main() -> list[Any]:
        plans = [make_plan(f"f({n}) + await f({n})", tools=("f",)) for n in range(50)]
        outcomes = await asyncio.gather(*(execute(alone, plan, make_host(tool=tool)) for plan in plans))
        return [outcome.value for outcome in outcomes]

    assert asyncio.run(main()) == [4 * n for n in range(50)]
    assert most == 2


def test_runs_that_start_each_other_without_end_are_refused(
    alone: MontyBackend, make_plan: Any, make_host: Any
) -> None:
    levels = 0
    refused: list[str] = []

    async def tool(call: ToolCall) -> Reply:
        nonlocal levels
        levels += 1
        try:
            await execute(alone, make_plan("again()", tools=("again",)), make_host(tool=tool))
        except LaunchFailed as problem:
            refused.append(str(problem))
        return Reply()

    asyncio.run(execute(alone, make_plan("again()", tools=("again",)), make_host(tool=tool)))
    assert (levels, refused) == (5, ["this run was started by a tool, 5 tools deep"])


def test_waiting_for_a_worker_is_bounded(
    alone: MontyBackend, make_plan: Any, host: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("licet_monty.backend.QUEUE_S", 0.1)

    async def main() -> None:
        held = [await alone.open(make_plan("1"), host) for _ in range(2)]
        with pytest.raises(LaunchFailed, match=r"^no worker of monty became free within 0 s$"):
            await alone.open(make_plan("1"), host)
        waiting = asyncio.create_task(alone.open(make_plan("1"), host))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await held.pop().close()
        plan = make_plan("1")
        held.append(await alone.open(plan, host))
        assert (await held[-1].run(plan, host)).value == 1
        for sandbox in held:
            await sandbox.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    "code", ["while True: pass", "wait()", "import time\ntime.sleep(100)", "while True: print(1)"]
)
@pytest.mark.parametrize("delay", [0.0, 0.001, 0.05])
def test_cancelling_at_any_moment_leaves_nothing(
    code: str, delay: float, alone: MontyBackend, make_plan: Any, make_host: Any
) -> None:
    ended: list[str] = []

    async def wait(call: ToolCall) -> Reply:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(call.name)
        raise AssertionError

    async def main() -> None:
        await execute(alone, make_plan("1"), make_host())
        host = make_host(tool=wait, output_limit=1 << 40)
        task = asyncio.create_task(execute(alone, make_plan(code, tools=("wait",)), host))
        await asyncio.sleep(delay)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(host.calls) == len(ended)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert (await execute(alone, make_plan("2"), host)).value == 2

    asyncio.run(main())


def test_a_loop_that_ends_under_a_run_ends_the_run(alone: MontyBackend, make_plan: Any, host: Any) -> None:
    async def main() -> None:
        task = asyncio.create_task(execute(alone, make_plan("while True: pass"), host))
        await asyncio.sleep(0.05)
        assert not task.done()

    asyncio.run(main())
    assert asyncio.run(execute(alone, make_plan("3"), host)).value == 3


def test_closing_the_backend_ends_runs_under_way(alone: MontyBackend, make_plan: Any, host: Any) -> None:
    async def main() -> Termination:
        task = asyncio.create_task(execute(alone, make_plan("while True: pass"), host))
        while alone._engine is None or not alone._engine._workers:  # noqa: ASYNC110
            await asyncio.sleep(0)
        await alone.close()
        return (await task).termination

    assert asyncio.run(main()) == Termination.cancelled


def test_no_descriptor_thread_or_worker_piles_up(alone: MontyBackend, make_plan: Any, host: Any) -> None:
    async def main(count: int) -> None:
        for number in range(count):
            code = ("1", "1/0", "while True: pass", "'a' * 10 ** 9")[number % 4]
            await execute(alone, make_plan(code, limits=Limits(wall_time=0.02, memory=8 << 20)), host)

    asyncio.run(main(12))
    before = len(os.listdir("/proc/self/fd")), len(_threads())
    asyncio.run(main(80))
    asyncio.run(_returned(alone))
    after = len(os.listdir("/proc/self/fd")), len(_threads())
    assert after[0] <= before[0] + 8
    assert after[1] <= before[1] + 1
    assert len(_workers()) <= 2 + 2


PRELUDE = """
import asyncio, os, sys, time
sys.path.insert(0, {tests!r})
from conftest import RecordingHost, seal
from licet.backend import execute
from licet_monty.backend import MontyBackend
backend = MontyBackend()
def run(code, **fields):
    return asyncio.run(execute(backend, seal(code, **fields), RecordingHost()))
"""


def _python(code: str, timeout: float = 90.0) -> subprocess.CompletedProcess[str]:
    text = PRELUDE.format(tests=str(Path(__file__).parent)) + textwrap.dedent(code)
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", text],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


@pytest.mark.parametrize(
    "ending",
    ["", "asyncio.run(backend.close())", "sys.exit(3)", "del backend", "raise KeyboardInterrupt"],
)
def test_the_interpreter_exits_cleanly(ending: str) -> None:
    """Leaving right after a run aborted one process in ten where Monty was driven from an event loop."""
    expected = {"sys.exit(3)": 3, "raise KeyboardInterrupt": -signal.SIGINT}.get(ending, 0)
    done = _python(f"print(run('6 * 7').value, flush=True)\n{ending}")
    assert (done.returncode, done.stdout) == (expected, "42\n")
    assert "Traceback" not in done.stderr or ending == "raise KeyboardInterrupt"


def test_the_interpreter_exits_while_a_run_is_under_way() -> None:
    done = _python(
        """
        import threading
        threading.Thread(target=run, args=("while True: pass",), daemon=True).start()
        while not (backend._engine and backend._engine._workers):
            time.sleep(0.01)
        print(list(backend._engine._workers)[0]._pid, flush=True)
        """
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert not Path(f"/proc/{int(done.stdout)}").exists()


def test_a_fork_leaves_the_parents_workers_alone_and_is_told_why_it_has_none() -> None:
    """Monty's own threads are not in the child: starting it there, or dropping the parent's, would hang."""
    done = _python(
        """
        from licet.errors import LaunchFailed
        first = run("1").observed["process_isolation"]
        child = os.fork()
        if child == 0:
            try:
                run("2")
            except LaunchFailed as problem:
                print(problem, flush=True)
                sys.exit(7)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        again = run("3")
        print(status, again.value, again.observed["process_isolation"] == first)
        """
    )
    told = "Monty was used before this process was forked off, and can't be used in it"
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{told}\n7 3 True\n", "")


def test_a_fork_before_the_first_run_has_its_own_workers() -> None:
    done = _python(
        """
        backend.describe()
        child = os.fork()
        if child == 0:
            print(run("2").value, flush=True)
            sys.exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(status, run("3").value)
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "2\n0 3\n", "")


@pytest.mark.parametrize(
    ("code", "longest"), [("f()", 1.0), ("while True: print('x' * 1000)", 1.0), ("while True: pass", 4.0)]
)
def test_a_host_that_is_killed_leaves_no_worker_for_longer_than_the_limit(code: str, longest: float) -> None:
    text = PRELUDE.format(tests=str(Path(__file__).parent)) + textwrap.dedent(
        f"""
        import threading
        from licet.request import Limits
        class Host(RecordingHost):
            async def call(self, call): await asyncio.sleep(100)
        plan = seal({code!r}, tools=("f",), limits=Limits(wall_time=2.0))
        def go(): asyncio.run(execute(backend, plan, Host()))
        threading.Thread(target=go, daemon=True).start()
        while not (backend._engine and backend._engine._workers): time.sleep(0.01)
        time.sleep(0.2)
        print(list(backend._engine._workers)[0]._pid, flush=True)
        time.sleep(100)
        """
    )
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        worker = Path(f"/proc/{int(host.stdout.readline())}")
        host.kill()
        host.wait()
        deadline = time.monotonic() + longest
        while time.monotonic() < deadline and _lives(worker):
            time.sleep(0.01)
        assert not _lives(worker)


def _lives(process: Path) -> bool:
    try:
        return (process / "stat").read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False


ABANDON = """
import asyncio
from conftest import RecordingHost, seal
from licet.backend import execute
from licet.request import Limits
from licet_monty.backend import MontyBackend

backend = MontyBackend(workers=1)
loop = asyncio.new_event_loop()
plan = seal("while True: pass", limits=Limits(wall_time=0.5))
left = loop.create_task(execute(backend, plan, RecordingHost()))
loop.run_until_complete(asyncio.wait([left], timeout=0.2))
loop.close()

async def after():
    async with asyncio.timeout(20):
        return await execute(backend, seal("1 + 1"), RecordingHost())

print(asyncio.run(after()).value, flush=True)
"""


def test_a_loop_that_is_closed_under_its_run_holds_no_worker_for_ever() -> None:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run(
        [sys.executable, "-c", ABANDON], capture_output=True, text=True, timeout=60, env=environment
    )
    assert done.stdout == "2\n", done.stderr
