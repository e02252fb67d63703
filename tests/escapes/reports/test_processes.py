"""Reports about processes: what they inherit and read, when they end, and that nothing of them is left."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from licet import Limits, Termination
from licet.backend import GuestError
from licet.record import Entry, MemoryLog, Record
from licet.supervise import GRACE

CPYTHON = "controlled_process"
SOON = Limits(wall_time=1.0)
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux, to see other processes")


HOST = """\
import subprocess, sys
code, policy = sys.argv[1:]
if policy:
    from licet import Runtime
    with Runtime(policy) as runtime:
        print(runtime.run_sync(code).stdout, end="", flush=True)
else:
    subprocess.run([sys.executable, "-c", code])
print(sys.stdin.readline(), end="")
"""


def host(code: str, policy: Path | str = "", *, stdin: str = "") -> str:
    """What a host program prints that runs code and then reads its own standard input."""
    command = [sys.executable, "-c", HOST, code, str(policy)]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60).stdout


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """The policy of the first runtime that a test opened with `on`."""
    return tmp_path / "0.yaml"


# What is inherited


def test_report_environment_01_variables(
    row: Any, on: Any, naive: Any, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = {"SECRET_CANARY": "s1", "AWS_SECRET_ACCESS_KEY": "s2"}
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    assert all(name.encode() in naive(row.code).stdout for name in secrets)
    assert on(backend, pack="licet:trusted").run_sync(row.code).stdout == "[]\n"
    named = on(backend, "env: {GREETING: hello}", pack="licet:trusted")
    assert named.run_sync(row.code).stdout == "['GREETING']\n"


def test_report_environment_02_the_parents_variables(
    row: Any, on: Any, policy: Path, blockers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_CANARY", "s1")
    look = "import os\nprint('SECRET_CANARY' in open('/proc/%d/environ' % os.getppid()).read())"
    assert host(look) == "True\n"
    on(CPYTHON)
    assert host(look, policy) == "False\n"
    assert host(row.code, policy) == "\n"  # the parent was given no variables either
    # other processes can be seen, so a run that must not see them is not run here
    demanded = on(CPYTHON, require="{process_isolation: enforced}").run_sync(row.code)
    assert blockers(demanded) == [("process_isolation", "enforced", "not_enforced")]
    hidden = on("monty").run_sync("open('/proc/1/environ')")
    assert hidden.termination is Termination.policy_denied


def test_report_environment_04_modules_in_the_working_directory(
    row: Any, on: Any, naive: Any, blockers: Any
) -> None:
    for name in ("site", "io", "csv", "helper"):
        Path(f"{name}.py").write_text("raise SystemExit(99)")
    assert naive(row.code).returncode == 99
    runtime = on(CPYTHON)
    assert runtime.run_sync(row.code).stdout == "x\n"
    error = runtime.run_sync("import helper").error  # nothing asked for it
    assert error == GuestError("ModuleNotFoundError", "No module named 'helper'", 1)
    monty = on("monty")
    assert monty.run_sync("import csv\n'x'").value == "x"
    assert blockers(monty.run_sync("import helper")) == [("module", "helper", "Monty 1.4 lacks it")]


# Standard input


def test_report_stdin_01_nothing_to_read(row: Any, on: Any, naive: Any, blockers: Any) -> None:
    reader, writer = os.pipe()  # a terminal at which nobody types
    with os.fdopen(reader), os.fdopen(writer, "w"), pytest.raises(subprocess.TimeoutExpired):
        naive(row.code, stdin=reader, timeout=0.5)
    runtime = on(CPYTHON)
    result = runtime.run_sync(row.code)
    assert (result.termination, result.exit_code) == (Termination.exited, 1)
    assert result.error == GuestError("EOFError", "EOF when reading a line", 1)
    assert result.usage.wall_time < 1
    assert runtime.run_sync(row.code, stdin="Ada\n").stdout == "name? Ada\n"
    refused = blockers(on("monty").run_sync(row.code))
    assert ("stdin", "standard input", "Monty 1.4 has none") in refused


def test_report_stdin_02_the_hosts_own_input(row: Any, on: Any, policy: Path, backend: str) -> None:
    for code in (row.code, "print('ran')"):
        read = host(code, stdin="yes, delete it\n")
        assert read == ("'yes, delete it\\n'\n" if code == row.code else "ran\nyes, delete it\n")
    on(backend)
    assert host("print('ran')", policy, stdin="yes, delete it\n") == "ran\nyes, delete it\n"
    if backend == CPYTHON:
        assert host(row.code, policy, stdin="yes, delete it\n") == "''\nyes, delete it\n"


# Ends


def test_report_timeout_process_tree_01_the_tree(
    row: Any, on: Any, naive: Any, living: Any, tmp_path: Path
) -> None:
    canary, work = tmp_path / "canary", tmp_path / "work"
    code = row.code.replace("{CANARY_FILE}", str(canary))
    with pytest.raises(subprocess.TimeoutExpired):
        naive(code, timeout=1.0, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, capture_output=False)
    [left] = {os.getpgid(pid) for pid in living(work)}
    os.killpg(left, signal.SIGKILL)
    result = on(CPYTHON).run_sync(code, limits=SOON)
    assert result.termination is Termination.timeout
    assert 1.0 <= result.usage.wall_time < 1.0 + GRACE
    assert result.protection.observed["process_tree_cleanup"] == "no descendant left"
    assert living(work) == []
    assert not canary.exists()


def test_report_timeout_process_tree_03_output_so_far(row: Any, on: Any, backend: str) -> None:
    result = on(backend).run_sync(row.code, limits=SOON)
    assert (result.termination, result.stdout, result.stderr) == (Termination.timeout, "step 1\n", "")
    assert 1.0 <= result.usage.wall_time < 1.0 + GRACE


class WatchedLog(MemoryLog):
    """Tells when the last thing before an effect was recorded."""

    def __init__(self) -> None:
        super().__init__()
        self.before = asyncio.Event()

    async def append(self, entries: Sequence[Entry]) -> tuple[Record, ...]:
        records = await super().append(entries)
        if any(entry.phase == "before" for entry in entries):
            self.before.set()
        return records


@pytest.mark.parametrize("way", ["cancel", "close"])
def test_report_timeout_process_tree_06_cancellation(
    row: Any, on: Any, backend: str, living: Any, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, scratch = tmp_path / "work", tmp_path / "scratch"
    scratch.mkdir()
    os.mkfifo(work / "begun")
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    log = WatchedLog()
    runtime = on(backend, log=log)
    tell = "open('begun', 'w').close()\n" if backend == CPYTHON else ""

    async def scenario() -> None:
        task = asyncio.create_task(runtime.run(tell + row.code))
        await log.before.wait()
        if tell:
            await asyncio.to_thread((work / "begun").read_bytes)
        if way == "close":
            await runtime.aclose()
        else:
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    if backend != CPYTHON:
        runtime.close()  # workers that wait for the next run are nobody's children but the pool's
    assert living(work) == []
    [result] = [record for record in log.records() if record.entry.kind == "result"]
    assert result.entry.body["termination"] == "cancelled"
    assert list(scratch.iterdir()) == []
    assert [path.name for path in work.iterdir()] == ["begun"]


def test_report_timeout_process_tree_06_without_licet_the_child_goes_on(row: Any) -> None:
    async def scenario() -> bool:
        child = await asyncio.create_subprocess_exec(sys.executable, "-c", row.code)
        task = asyncio.create_task(child.wait())
        await asyncio.sleep(0)
        task.cancel()
        goes_on = child.returncode is None
        child.kill()
        return goes_on and await child.wait() == -signal.SIGKILL

    assert asyncio.run(scenario())


def test_report_timeout_process_tree_07_the_shutdown_counts(row: Any, on: Any) -> None:
    endless = "import atexit, time\nprint('done')\natexit.register(time.sleep, 600)"
    for code in (row.code, endless):
        result = on(CPYTHON).run_sync(code, limits=SOON)
        assert (result.termination, result.stdout) == (Termination.timeout, "done\n")
        assert 1.0 <= result.usage.wall_time < 1.0 + GRACE


@pytest.mark.parametrize("runs", [20, pytest.param(200, marks=pytest.mark.soak)])
def test_report_timeout_process_tree_08_nothing_adds_up(row: Any, on: Any, backend: str, runs: int) -> None:
    runtime = on(backend)
    for _ in range(5):
        assert runtime.run_sync(row.code).success
    before = _holdings()
    for _ in range(runs):
        assert runtime.run_sync(row.code).stdout == "x\n"
    assert _holdings() == before


def _holdings() -> tuple[int, list[str], list[bool]]:
    """Open descriptors, the names of threads, and for each child whether it is a zombie.

    The threads of asyncio's own pool are left out: it makes them up to its limit, as it happens to need them.
    """
    names = (thread.name for thread in threading.enumerate())
    threads = sorted(name for name in names if not name.startswith("asyncio_"))
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    dead = [Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] == "Z" for pid in children]
    return len(os.listdir("/proc/self/fd")), threads, sorted(dead)
