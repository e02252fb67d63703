"""Keepers that wait for another run: what they hand on (nothing), and when they are gone."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from licet.supervise import (
    Launcher,
    ProcessOutcome,
    Program,
    Reason,
    Snippet,
    Spec,
    Stop,
    can_confine_signals,
    run,
    run_blocking,
)
from licet.supervise.launcher import MOST

pytestmark = pytest.mark.skipif(
    not can_confine_signals(), reason="keepers last where code can't reach them (Linux 6.12, Landlock)"
)

PARENT = "import os\nos.getppid()"


def start(
    launcher: Launcher, work: Snippet | Program | str, stop: Stop | None = None, **options: Any
) -> ProcessOutcome:
    work = Snippet(work) if isinstance(work, str) else work
    options = {"workdir": "/", "wall_time": 20.0, "confine_signals": True, **options}
    return run_blocking(Spec(work, **options), lambda stream, data: True, stop, launcher)


def value(launcher: Launcher, code: str, **options: Any) -> Any:
    outcome = start(launcher, code, **options)
    assert (outcome.reason, outcome.exit_code, outcome.swept) == (Reason.exited, 0, True), outcome
    return outcome.report.value


def is_gone(pid: int, within: float = 5.0) -> bool:
    """Whether a process has ended, or ends within so many seconds."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([fd], [], [], within)[0])
    finally:
        os.close(fd)


@pytest.fixture
def launcher() -> Iterator[Launcher]:
    """One whose first run is over, so that the next starts a keeper that lasts."""
    launcher = Launcher()
    value(launcher, "1")
    yield launcher
    launcher.close()


def test_a_keeper_serves_run_after_run_from_the_second_on() -> None:
    launcher = Launcher()
    first, *rest = [value(launcher, PARENT) for _ in range(4)]
    assert is_gone(first)
    assert len({*rest}) == 1
    launcher.close()
    assert is_gone(rest[0], within=0)


def test_runs_of_other_environments_directories_and_interpreters_share_it(
    launcher: Launcher, tmp_path: Path
) -> None:
    code = (
        "import os, sys\n"
        "[os.getppid(), dict(os.environ), open('/proc/self/environ').read(), os.getcwd(), sys.executable]"
    )
    other = tmp_path / "python"
    other.symlink_to(sys.executable)
    keeper = value(launcher, PARENT)
    for number in range(3):
        interpreter = (sys.executable, str(other))[number % 2]
        environment = {"N": str(number)} if number else {}
        folder = tmp_path / str(number)
        folder.mkdir()
        assert value(
            launcher, code, environment=environment, workdir=str(folder), interpreter=interpreter
        ) == [
            keeper,
            environment,
            "".join(f"{k}={v}\0" for k, v in environment.items()),
            str(folder),
            interpreter,
        ]


def test_runs_that_share_nothing_get_different_keepers(launcher: Launcher) -> None:
    start(launcher, "1")
    mine = [value(launcher, PARENT, sharing="a") for _ in range(2)]
    other = value(launcher, PARENT, sharing="b")
    assert mine[0] == mine[1] != other
    assert value(launcher, PARENT, sharing="a") == mine[0]  # it has waited meanwhile
    assert value(launcher, PARENT, sharing="b") == other
    assert value(launcher, PARENT, sharing="b", warm=False) not in (mine[0], other)
    assert value(launcher, PARENT, sharing="b") == other  # it still waits for others


STATE = """
import os, signal
fds = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
[
    sorted(os.readlink(fd).partition(":")[0] for fd in fds if os.path.exists(fd)),
    os.umask(0o22),
    sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
    [number for number in range(1, 65) if signal.getsignal(number) == signal.SIG_IGN],
    os.nice(0),
    os.getsid(0) == os.getpid(),
]
"""


def test_nothing_of_a_run_reaches_the_next(launcher: Launcher) -> None:
    first = value(launcher, STATE)
    start(launcher, "import os, resource, signal\nos.umask(0)\nos.nice(5)\nsignal.alarm(1)\nleft = 1")
    start(launcher, "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))", memory=1 << 30)
    assert value(launcher, STATE) == first
    assert value(launcher, "import resource\nresource.getrlimit(resource.RLIMIT_AS)[0]") == -1
    hashes = {value(launcher, "hash('a')") for _ in range(3)}
    assert len(hashes) == 3
    assert value(launcher, "'left' in globals()") is False


INHERITED = """
import os, resource, sys
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
keys = "Umask Uid Gid Groups SigIgn SigBlk CapEff CapBnd NoNewPrivs Seccomp Cpus_allowed".split()
[
    [status[key] for key in keys],
    [resource.getrlimit(number) for number in range(16)],
    os.nice(0),
    open("/proc/self/cgroup").read(),
    sys.flags[:],
    sys.path,
    sys.argv,
    dict(os.environ),
]
"""


def test_it_is_as_a_process_started_by_itself(launcher: Launcher) -> None:
    by_itself = run_blocking(
        Spec(Snippet(INHERITED), "/", confine_signals=True, environment={"A": "1"}), lambda stream, data: True
    )
    assert by_itself.report.value is not None
    for _ in range(2):
        assert value(launcher, INHERITED, environment={"A": "1"}) == by_itself.report.value


def test_a_program_that_is_no_python_starts_with_the_usual_signals(launcher: Launcher) -> None:
    value(launcher, "1")
    shell = "trap | wc -l; kill -PIPE $$; echo survived"
    outcome = start(launcher, Program(("/bin/sh", "-c", shell)))
    assert (outcome.reason, outcome.signal) == (Reason.exited, signal.SIGPIPE)


@pytest.mark.parametrize(
    "change",
    [
        "import os\nos.setpriority(os.PRIO_PROCESS, os.getppid(), 7)",
        "import os\nos.sched_setaffinity(os.getppid(), {min(os.sched_getaffinity(0))})",
        "import os, resource\nresource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (30, 30))",
    ],
    ids=["priority", "processors", "limits"],
)
def test_a_keeper_that_the_code_has_changed_serves_no_other_run(launcher: Launcher, change: str) -> None:
    keeper = value(launcher, PARENT)
    if "affinity" in change and len(os.sched_getaffinity(0)) == 1:
        pytest.skip("needs a machine with two processors")
    assert value(launcher, f"{change}\n{PARENT}") == keeper
    assert value(launcher, PARENT) != keeper


def test_a_keeper_that_is_changed_while_it_waits_serves_no_other_run(launcher: Launcher) -> None:
    keeper = value(launcher, PARENT)
    os.setpriority(os.PRIO_PROCESS, keeper, 7)
    assert value(launcher, "import os\n[os.getppid(), os.nice(0)]") != [keeper, 7]
    assert is_gone(keeper)


def test_a_host_that_has_changed_gets_another_keeper(launcher: Launcher) -> None:
    keeper = value(launcher, PARENT)
    before = os.umask(0o27)
    try:
        other = value(launcher, PARENT)
        assert other != keeper
        assert value(launcher, "import os\nos.umask(0)") == 0o27
    finally:
        os.umask(before)
    assert is_gone(keeper, within=0)
    assert value(launcher, "import os\nos.umask(0)") == before


@pytest.mark.parametrize("ending", ["while True: pass", "print('x' * 100)\nwhile True: pass"])
def test_a_keeper_whose_run_had_to_be_ended_serves_no_other(launcher: Launcher, ending: str) -> None:
    keeper = value(launcher, PARENT)
    outcome = start(launcher, ending, wall_time=0.3)
    assert (outcome.reason, outcome.swept) == (Reason.timeout, True)
    assert is_gone(keeper, within=0)
    assert value(launcher, PARENT) != keeper


def test_code_that_is_not_confined_gets_a_keeper_of_its_own(launcher: Launcher) -> None:
    keeper = value(launcher, PARENT)
    assert value(launcher, PARENT, confine_signals=False) != keeper
    assert value(launcher, PARENT) == keeper


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_keeper_that_is_struck_while_it_waits_costs_no_run(launcher: Launcher, number: int) -> None:
    keeper = value(launcher, PARENT)
    os.kill(keeper, number)
    if number == signal.SIGKILL:
        assert is_gone(keeper)
    other = value(launcher, PARENT)
    assert other != keeper
    assert is_gone(keeper, within=0)


def test_a_keeper_that_is_killed_is_a_lost_backend(launcher: Launcher) -> None:
    value(launcher, "1")

    def strike(stream: str, data: bytes) -> bool:
        os.kill(int(data), signal.SIGKILL)
        return True

    code = "import os\nos.write(1, b'%d' % os.getppid())\nwhile True: pass"
    spec = Spec(Snippet(code), "/", confine_signals=True)
    outcome = run_blocking(spec, strike, None, launcher)
    assert (outcome.reason, outcome.swept) == (Reason.backend_lost, False)
    assert value(launcher, "1 + 1") == 2


def test_a_keeper_ends_when_nobody_asks() -> None:
    launcher = Launcher(idle=0.5)
    value(launcher, "1")
    keeper = value(launcher, PARENT)
    assert is_gone(keeper)
    assert value(launcher, PARENT) != keeper
    launcher.close()


def test_a_run_that_takes_longer_than_a_keeper_waits_has_its_keeper_wait() -> None:
    launcher = Launcher(idle=0.5)
    value(launcher, "1")
    keeper = value(launcher, f"import time\ntime.sleep(0.6)\n{PARENT}")
    assert value(launcher, PARENT) == keeper
    launcher.close()


def test_closing_twice_and_running_after_it(launcher: Launcher) -> None:
    keeper = value(launcher, PARENT)
    launcher.close()
    launcher.close()
    assert is_gone(keeper, within=0)
    for _ in range(3):
        assert is_gone(value(launcher, PARENT), within=0)


def test_a_keeper_that_is_busy_when_its_launcher_closes_does_not_stay(launcher: Launcher) -> None:
    def close(stream: str, data: bytes) -> bool:
        launcher.close()
        return True

    spec = Spec(Snippet(f"print(1)\n{PARENT}"), "/", confine_signals=True)
    outcome = run_blocking(spec, close, None, launcher)
    assert outcome.reason is Reason.exited
    assert is_gone(outcome.report.value, within=0)


def test_a_launcher_that_is_forgotten_leaves_nothing() -> None:
    launcher = Launcher()
    keeper = [value(launcher, PARENT) for _ in range(2)][1]
    assert not is_gone(keeper, within=0)
    del launcher
    assert is_gone(keeper, within=0)


def test_fifty_runs_at_once(launcher: Launcher) -> None:
    with ThreadPoolExecutor(50) as pool:
        found = list(pool.map(lambda n: value(launcher, f"import os\n[{n}, os.getppid()]"), range(50)))
    assert [number for number, _ in found] == list(range(50))
    keepers = {keeper for _, keeper in found}
    assert sum(not is_gone(keeper, within=0) for keeper in keepers) <= MOST
    assert value(launcher, PARENT) in keepers
    launcher.close()
    assert all(is_gone(keeper, within=0) for keeper in keepers)


@pytest.mark.parametrize("warm", [False, True])
def test_cancelled_while_it_starts(launcher: Launcher, warm: bool) -> None:
    keeper = value(launcher, PARENT) if warm else None
    with Stop() as stop:
        stop.set()
        outcome = start(launcher, "while True: pass", stop)
    assert (outcome.reason, outcome.swept) == (Reason.cancelled, True)
    assert keeper is None or is_gone(keeper, within=0)
    assert value(launcher, "2") == 2


def test_cancelling_a_task_that_starts(launcher: Launcher) -> None:
    async def scenario() -> None:
        spec = Spec(Snippet("while True: pass"), "/", confine_signals=True)
        task = asyncio.create_task(run(spec, lambda stream, data: True, launcher))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    value(launcher, "1")
    asyncio.run(scenario())
    assert value(launcher, "2") == 2


def test_an_interpreter_that_was_removed_is_a_failed_launch(launcher: Launcher, tmp_path: Path) -> None:
    interpreter = tmp_path / "python"
    interpreter.symlink_to(sys.executable)
    assert value(launcher, "2", interpreter=str(interpreter)) == 2
    interpreter.unlink()
    outcome = start(launcher, "2", interpreter=str(interpreter))
    assert (outcome.reason, outcome.detail) == (
        Reason.launch_failed,
        f"`{interpreter}` can't be started: no such file or directory",
    )
    assert value(launcher, "2") == 2


def test_a_program_that_is_no_interpreter_is_a_failed_launch(launcher: Launcher) -> None:
    outcome = start(launcher, "2", interpreter="/bin/true")
    assert (outcome.reason, outcome.detail) == (
        Reason.launch_failed,
        "the interpreter ended before it ran anything",
    )


def test_memory_too_small_for_an_interpreter_is_a_memory_limit(launcher: Launcher) -> None:
    value(launcher, "1")
    outcome = start(launcher, "1", memory=1 << 20)
    assert (outcome.reason, outcome.swept) == (Reason.memory_limit, True)


def test_what_is_used_is_told_for_each_run(launcher: Launcher) -> None:
    value(launcher, "1")
    large = start(launcher, "x = bytearray(200 << 20)\nfor _ in range(3): x.count(1)")
    small = start(launcher, "1")
    assert large.used.peak_memory is not None
    assert small.used.peak_memory is not None
    assert small.used.peak_memory < 100 << 20 < large.used.peak_memory
    assert small.used.cpu_time is not None
    assert large.used.cpu_time is not None
    assert 0 < small.used.cpu_time < large.used.cpu_time


HOST = """\
import os, sys
from licet.supervise import Launcher, Snippet, Spec, run_blocking
launcher = Launcher()
def keeper():
    spec = Spec(Snippet("import os\\nos.getppid()"), "/", confine_signals=True)
    return run_blocking(spec, lambda stream, data: True, None, launcher).report.value
keeper()
print(keeper(), flush=True)
"""


def host(rest: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", HOST + rest], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("fork", ["", "os.fork()\n"], ids=["", "whose socket a fork holds"])
def test_a_keeper_that_waits_dies_with_its_host(fork: str) -> None:
    with host(fork + "sys.stdin.read()") as process:
        assert process.stdout is not None
        keeper = int(process.stdout.readline())
        assert not is_gone(keeper, within=0)
        process.kill()
        assert is_gone(keeper)


def test_a_keeper_that_waits_ends_when_its_host_exits() -> None:
    with host("") as process:
        assert process.stdout is not None
        keeper = int(process.stdout.readline())
        assert process.wait() == 0
        assert is_gone(keeper)


def test_a_fork_of_the_host_gets_keepers_of_its_own() -> None:
    rest = """
child = os.fork()
if child == 0:
    keeper()
    print(keeper(), keeper(), flush=True)
    launcher.close()
    os._exit(0)
os.waitpid(child, 0)
print(keeper(), flush=True)
"""
    with host(rest) as process:
        out, _ = process.communicate()
    assert process.returncode == 0
    first, child, again, last = out.split()
    assert (child == again, first == last, child == first) == (True, True, False)
    assert is_gone(int(child))


def test_no_thread_is_left(launcher: Launcher) -> None:
    before = threading.active_count()
    value(launcher, "1")
    assert threading.active_count() == before
