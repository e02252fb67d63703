"""How a supervised run is ended on Windows, and that nothing of it is left; for real or under Wine."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from licet.supervise import Reason, Snippet, Spec
from licet.supervise import run as run_async
from licet.supervise.spec import INTERPRETER
from licet.supervise.windows import launch, process, winapi

if sys.platform == "win32":
    import _winapi

if sys.platform != "win32":
    pytest.skip("needs Windows; `.ci/wine` runs it under Wine", allow_module_level=True)

WAIT = "import time\nwhile True: time.sleep(60)"
DETACHED = 0x00000008 | 0x00000200
BREAKAWAY = 0x01000000

CHILD = "import os, time; [os.write(fd, b'pid %d\\n' % os.getpid()) for fd in (1, 2)]; time.sleep(600)"
ESCAPE = f"""\
import os, subprocess, sys
os.write(1, b'pid %d\\n' % os.getpid())
command = [sys.executable, "-I", "-S", "-c", {CHILD!r}]
children = [
    subprocess.Popen(command, creationflags=flags, stdout=1, stderr=subprocess.PIPE)
    for flags in (0, {DETACHED})
]
for child in children:
    child.stderr.readline()
"""
"""Tells its own pid and starts two children, which hold standard output, one of them without a console."""
TELL = "import os\nos.write(1, b'pid %d\\n' % os.getpid())\n"


@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        WAIT,
        "import atexit, time\natexit.register(time.sleep, 600)",
        "import signal\nfor n in (signal.SIGINT, signal.SIGBREAK, signal.SIGTERM): signal.signal(n, 1)\n"
        + WAIT,
        "import re\nre.match('(a+)+$', 'a' * 60 + 'b')",
    ],
)
def test_the_deadline_ends_the_run(run: Any, code: str) -> None:
    ran = run(TELL + code, wall_time=4.0)
    assert (ran.outcome.reason, ran.outcome.exit_code, ran.outcome.swept) == (Reason.timeout, None, True)
    assert run.watched.dead() == [True]
    assert ran.outcome.used.wall_time >= 1.5


@pytest.mark.parametrize(
    ("code", "reason", "wall_time"),
    [(WAIT, Reason.timeout, 8.0), ("'end'", Reason.exited, 60.0), ("1/0", Reason.exited, 60.0)],
)
def test_no_descendant_outlives_the_run_or_holds_it_up(
    run: Any, code: str, reason: Reason, wall_time: float
) -> None:
    ran = run(ESCAPE + code, wall_time=wall_time)
    assert (ran.outcome.reason, ran.outcome.swept) == (reason, True)
    assert run.watched.dead() == [True] * 3


def test_the_twin_of_that_escape_survives_without_supervision(run: Any) -> None:
    twin = [sys.executable, "-I", "-S", "-c", ESCAPE]
    with subprocess.Popen(twin, stdout=subprocess.PIPE) as started:
        assert started.stdout is not None
        started.stdout.readline()
        lines = [started.stdout.readline() for _ in range(2)]
        run.watched.hear(b"".join(lines))
        started.wait()
        assert run.watched.dead(within=0.2) == [False, False]
        for line in lines:
            end(int(line.split()[1]))
        assert run.watched.dead(within=20) == [True, True]


def end(pid: int) -> None:
    handle = _winapi.OpenProcess(0x0001, False, pid)
    _winapi.TerminateProcess(handle, 1)
    _winapi.CloseHandle(handle)


def test_nothing_breaks_away_from_its_job(run: Any) -> None:
    attempt = f"subprocess.run([sys.executable, '-I', '-S', '-c', ''], creationflags={BREAKAWAY}).returncode"
    ran = run(f"import subprocess, sys\n{attempt}")
    assert ran.outcome.report.error.type == "PermissionError"
    assert "[WinError 5]" in ran.outcome.report.error.message
    twin = [sys.executable, "-I", "-c", f"import subprocess, sys; print({attempt})"]
    assert subprocess.run(twin, capture_output=True, check=True).stdout.split() == [b"0"]


def test_a_cancelled_run_is_gone_when_its_caller_knows(run: Any, tmp_path: Path) -> None:
    async def scenario() -> None:
        started = asyncio.Event()
        loop = asyncio.get_running_loop()

        def on_output(stream: str, data: bytes) -> bool:
            run.watched.hear(data)
            if len(run.watched.handles) == 3:
                loop.call_soon_threadsafe(started.set)
            return True

        task = asyncio.create_task(run_async(Spec(Snippet(ESCAPE + WAIT), str(tmp_path)), on_output))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert run.watched.dead() == [True] * 3

    asyncio.run(scenario())
    assert [thread.name for thread in threading.enumerate() if thread.name == "licet-run"] == []


def test_a_stranger_who_holds_the_pipe_delays_the_end_by_a_moment_alone(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host itself keeps a copy of the writing end, as a process outside the job could."""
    held: list[int] = []

    def start(command: Any, job: Any, stdio: tuple[int, ...], *rest: Any) -> int:
        here = _winapi.GetCurrentProcess()
        held.append(_winapi.DuplicateHandle(here, stdio[1], here, 0, False, _winapi.DUPLICATE_SAME_ACCESS))
        return launch.start(command, job, stdio, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(process, "launch", SimpleNamespace(start=start, Command=launch.Command))
    ran = run("print(1)\n'end'")
    _winapi.CloseHandle(held[0])
    assert (ran.outcome.report.value, ran.outcome.swept, ran.stdout) == ("end", True, b"1\n")


HOST_PROGRAM = """\
import sys
from licet.supervise import Snippet, Spec, run_blocking
def show(stream, data):
    sys.stdout.write(data.decode()); sys.stdout.flush(); return True
run_blocking(Spec(Snippet(sys.argv[1]), sys.argv[2]), show)
"""


def test_the_tree_dies_with_its_host(run: Any, tmp_path: Path) -> None:
    host = [sys.executable, "-c", HOST_PROGRAM, ESCAPE + WAIT, str(tmp_path)]
    with subprocess.Popen(host, stdout=subprocess.PIPE) as started:
        assert started.stdout is not None
        run.watched.hear(b"".join(started.stdout.readline() for _ in range(3)))
        assert run.watched.dead() == [False] * 3
        started.kill()
        started.wait()
        assert run.watched.dead(within=20) == [True] * 3


def test_a_process_that_is_not_in_its_job_runs_nothing(
    run: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The look before the first instruction, with a job that does not know its process."""
    from licet.supervise.windows.job import Job

    monkeypatch.setattr(Job, "holds", lambda self, process: False)
    outcome = run("open('ran', 'w')").outcome
    assert (outcome.reason, outcome.detail) == (
        Reason.launch_failed,
        f"`{INTERPRETER}` can't be started: the new process is not in its job",
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "call",
    ["CreateJobObjectW", "CreateIoCompletionPort", "SetInformationJobObject", "QueryInformationJobObject",
     "CreateNamedPipeW", "CreateFileW", "InitializeProcThreadAttributeList", "UpdateProcThreadAttribute",
     "CreateProcessW", "IsProcessInJob", "ResumeThread"],
)  # fmt: skip
def test_each_call_that_fails_is_a_failed_launch_that_leaves_nothing(
    run: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, call: str
) -> None:
    real = winapi.kernel32()

    class Failing:
        def __getattr__(self, name: str) -> Any:
            failed = 0xFFFFFFFF if name == "ResumeThread" else 0
            return (lambda *given: failed) if name == call else getattr(real, name)

    monkeypatch.setattr(winapi, "kernel32", Failing)
    monkeypatch.setattr(winapi, "last_error", lambda: 5)
    outcome = run("open('ran', 'w')").outcome
    assert (outcome.reason, outcome.detail) == (
        Reason.launch_failed,
        f"`{INTERPRETER}` can't be started: permission denied",
    )
    assert list(tmp_path.iterdir()) == []
