"""How a run is ended: deadline, limits, cancellation, a lost keeper, a dead host; and what is left."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from licet import supervise
from licet.backend import GuestError, Outcome, Termination

Run = Callable[..., Any]

ESCAPE = """\
import os, sys
for attempt in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        {fate}
        os.write(1, b'pid %d\\n' % os.getpid())
        {rest}
        import time
        while True:
            time.sleep(60)
"""
HOLD_THE_PIPE = ESCAPE.format(fate="", rest="")
LEAVE_NO_TRACE = ESCAPE.format(
    fate="import signal; [signal.signal(n, signal.SIG_IGN) for n in (1, 2, 3, 10, 12, 13, 15)]",
    rest="os.closerange(0, 100); os.chdir('/')",
)
WAIT = "import time\nwhile True: time.sleep(60)"


def _pids(text: str) -> list[int]:
    return [int(line.split()[1]) for line in text.splitlines() if line.startswith("pid ")]


@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        WAIT,
        "import atexit, time\natexit.register(time.sleep, 600)",
        "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()",
        "import signal\nfor n in {*range(1, 32)} - {9, 19}: signal.signal(n, 1)\nwhile True: pass",
        "import sys\nwhile True: sys.stdin.read()",
        "import re\nre.match('(a+)+$', 'a' * 40 + 'b')",
    ],
)
def test_the_deadline_ends_the_run(run: Run, code: str) -> None:
    outcome = run("print('step 1')\n" + code, limits={"wall_time": 0.4})
    assert outcome.outcome.termination is Termination.timeout
    assert (outcome.outcome.exit_code, outcome.outcome.error, outcome.outcome.value) == (None, None, None)
    assert outcome.stdout == "step 1\n"
    assert 0.4 <= outcome.outcome.usage.wall_time < 1.4


@pytest.mark.parametrize("escape", [HOLD_THE_PIPE, LEAVE_NO_TRACE])
@pytest.mark.parametrize(("after", "ending"), [(WAIT, "timeout"), ("'end'", "exited"), ("1/0", "exited")])
def test_no_descendant_outlives_the_run(run: Run, tools: Any, escape: str, after: str, ending: str) -> None:
    ready = "import os\nr, w = os.pipe()\n"
    told = escape.replace("os.getpid())\n", "os.getpid()); os.write(w, b'x')\n")
    code = ready + told + "n = 0\nwhile n < 3: n += len(os.read(r, 3))\n" + after
    ran = run(code, limits={"wall_time": 1.0})
    assert ran.outcome.termination == ending
    assert ran.outcome.usage.wall_time < 2
    assert len(_pids(ran.stdout)) == 3
    assert all(tools.is_dead(pid, within=0) for pid in _pids(ran.stdout))
    assert ran.outcome.observed["process_tree_cleanup"] == "no descendant left"


def test_the_twin_of_that_escape_survives_without_supervision(tools: Any) -> None:
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", HOLD_THE_PIPE], stdout=subprocess.PIPE, start_new_session=True
    ) as child:
        assert child.stdout is not None
        pids = [int(child.stdout.readline().split()[1]) for _ in range(3)]
        child.wait()
        alive = [pid for pid in pids if not tools.is_dead(pid, within=0.2)]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
    assert alive == pids


@pytest.mark.parametrize(
    "storm",
    [
        "while True:\n    if os.fork(): os._exit(0)\n    os.setsid()",
        "for _ in range(6):\n    if os.fork() == 0: os.setsid()\ntime.sleep(60)",
    ],
    ids=["flees from pid to pid", "tree of 64"],
)
def test_a_fork_storm_is_swept(run: Run, storm: str, tmp_path: Path) -> None:
    code = f"import os, time\nif os.fork() == 0:\n{textwrap.indent(storm, '    ')}\n{WAIT}"
    ran = run(code, limits={"wall_time": 0.7})
    assert ran.outcome.termination is Termination.timeout
    assert ran.outcome.observed["process_tree_cleanup"] == "no descendant left"
    assert _living_in(tmp_path) == []


def _living_in(folder: Path) -> list[str]:
    """Processes that work in `folder`, as every descendant of a run does unless it goes elsewhere."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and os.readlink(entry / "cwd").startswith(str(folder)):
                found.append(entry.name)
        except OSError:
            continue
    return found


def test_a_flood_of_output_ends_the_run_and_costs_the_host_nothing(run: Run, tools: Any) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    flood = "import os\nblock = b'x' * 65536\nfor _ in range(3200): os.write({}, block)\n'end'"
    host = tools.Host(output=1 << 40)
    ran = run(flood.format(1), host)
    assert (ran.outcome.value, host.sinks["stdout"].total) == ("end", 200 << 20)
    host = tools.Host(output=1 << 20)
    ran = run(flood.format(2), host)
    assert ran.outcome.termination is Termination.output_limit
    assert 1 << 20 < host.sinks["stderr"].total < 100 << 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 16 << 10  # KiB


def test_both_streams_are_drained_at_once(run: Run, tools: Any) -> None:
    code = (
        "import os, threading\ndef flood(fd):\n    for _ in range(64): os.write(fd, b'x' * 65536)\n"
        "t = threading.Thread(target=flood, args=(2,))\nt.start()\nflood(1)\nt.join()\n'end'"
    )
    host = tools.Host()
    assert run(code, host).outcome.value == "end"
    assert [sink.total for sink in host.sinks.values()] == [4 << 20, 4 << 20]


def test_cpu_time_is_limited_per_process(run: Run) -> None:
    ran = run("print('a')\nwhile True: pass", limits={"cpu_time": 0.5})
    assert (ran.outcome.termination, ran.stdout) == (Termination.cpu_limit, "a\n")
    stubborn = "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass"
    assert run(stubborn, limits={"cpu_time": 1.0}).outcome.termination is Termination.cpu_limit


def test_memory_is_limited_per_process(run: Run) -> None:
    hog = "x = bytearray(1 << 30)"
    assert run(hog, limits={"memory": 256 << 20}).outcome.termination is Termination.memory_limit
    unlimited = run("raise MemoryError('mine')").outcome
    assert (unlimited.termination, unlimited.error) == (
        Termination.exited,
        GuestError("MemoryError", "mine", 1),
    )
    assert run("x = bytearray(1 << 30)\nlen(x)").outcome.value == 1 << 30


def test_the_recursion_limit_is_passed_on(run: Run) -> None:
    code = "import sys\nsys.getrecursionlimit()"
    assert run(code, limits={"recursion": 321}).outcome.value == 321


@pytest.mark.parametrize("moment", ["before it starts", "while it runs"])
def test_cancelling_leaves_nothing(tools: Any, tmp_path: Path, moment: str) -> None:
    async def scenario() -> str:
        running = asyncio.Event()
        loop = asyncio.get_running_loop()
        host = tools.Host(on_write=lambda stream, data: loop.call_soon_threadsafe(running.set))
        code = HOLD_THE_PIPE + WAIT
        task = asyncio.create_task(tools.run_async(code, str(tmp_path), host))
        if moment == "while it runs":
            await running.wait()
        else:
            await asyncio.sleep(0)
        task.cancel()
        began = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - began < 1.5
        return str(host.stdout)

    text = asyncio.run(scenario())
    assert all(tools.is_dead(pid, within=0) for pid in _pids(text))
    assert _living_in(tmp_path) == []


def test_a_second_cancel_changes_nothing(tools: Any, tmp_path: Path) -> None:
    async def scenario() -> None:
        task = asyncio.create_task(tools.run_async(WAIT, str(tmp_path)))
        for _ in range(3):
            await asyncio.sleep(0)
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    assert _living_in(tmp_path) == []


def test_a_busy_loop_of_the_host_delays_no_deadline(tools: Any, tmp_path: Path) -> None:
    async def scenario() -> Outcome:
        task = asyncio.create_task(tools.run_async(WAIT, str(tmp_path), limits={"wall_time": 0.3}))
        await asyncio.sleep(0)
        until = time.monotonic() + 0.8
        while time.monotonic() < until:
            pass
        return (await task).outcome

    outcome = asyncio.run(scenario())
    assert outcome.termination is Termination.timeout
    assert outcome.usage.wall_time < 0.6


def test_nothing_is_leaked(run: Run, tools: Any, tmp_path: Path) -> None:
    codes = [
        "1",
        "1/0",
        "print('x')",
        "import os; os._exit(1)",
        "import os; os.close(3)",
        WAIT,
        HOLD_THE_PIPE,
    ]
    descriptors, threads, children = _holdings()
    backend = tools.Backend()
    for number in range(42):
        options = {"limits": {"wall_time": 0.15}, "stdin": b"x" * (number % 2)}
        run(codes[number % len(codes)], backend=backend, **options)
        run("1", workdir="/nowhere", backend=backend)
    asyncio.run(backend.close())
    left = _holdings()
    assert left[0] <= descriptors  # a keeper of another test may have ended meanwhile
    assert left[1] == threads
    assert left[2] <= children
    assert list(tmp_path.iterdir()) == []


def _holdings() -> tuple[int, int, set[str]]:
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return len(os.listdir("/proc/self/fd")), threading.active_count(), set(children)


def test_a_keeper_that_is_killed_from_outside_is_reported(tools: Any, tmp_path: Path) -> None:
    host = tools.Host(on_write=lambda stream, data: os.kill(_parent(int(data.split()[1])), signal.SIGKILL))
    code = "import os\nos.write(1, b'pid %d' % os.getpid())\n" + WAIT
    ran = asyncio.run(tools.run_async(code, str(tmp_path), host))
    assert ran.outcome.termination is Termination.backend_lost
    assert ran.outcome.detail == "the keeper of the run was killed; something of it may still be running"
    assert "process_tree_cleanup" not in ran.outcome.observed  # so it is unknown
    assert all(tools.is_dead(pid) for pid in _pids(ran.stdout))


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_a_keeper_that_is_stopped_delays_the_end_by_no_more_than_the_grace(
    tools: Any, tmp_path: Path
) -> None:
    host = tools.Host(on_write=lambda stream, data: os.kill(_parent(int(data.split()[1])), signal.SIGSTOP))
    code = "import os\nos.write(1, b'pid %d' % os.getpid())\n" + WAIT
    ran = asyncio.run(tools.run_async(code, str(tmp_path), host, limits={"wall_time": 0.3}))
    assert ran.outcome.termination is Termination.timeout
    assert ran.outcome.usage.wall_time < 0.3 + supervise.GRACE + 0.5
    assert all(tools.is_dead(pid) for pid in _pids(ran.stdout))


HOST_PROGRAM = """\
import sys
from licet.supervise import Snippet, Spec, can_confine_signals, run_blocking
def show(stream, data):
    sys.stdout.write(data.decode()); sys.stdout.flush(); return True
run_blocking(Spec(Snippet(sys.argv[1]), "/", confine_signals=can_confine_signals()), show)
"""


@pytest.mark.parametrize("escape", [HOLD_THE_PIPE, LEAVE_NO_TRACE])
def test_the_tree_dies_with_its_host(tools: Any, escape: str) -> None:
    code = "import os\nos.write(1, b'pid %d\\npid %d\\n' % (os.getpid(), os.getppid()))\n" + escape + WAIT
    with subprocess.Popen([sys.executable, "-c", HOST_PROGRAM, code], stdout=subprocess.PIPE) as host:
        assert host.stdout is not None
        pids = [int(host.stdout.readline().split()[1]) for _ in range(5)]
        assert not any(tools.is_dead(pid, within=0) for pid in pids)
        host.kill()
        host.wait()
        assert all(tools.is_dead(pid) for pid in pids)
