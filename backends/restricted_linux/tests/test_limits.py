"""Each limit ends a run under its own name, and the same code without it comes to its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from licet.supervise import Reason
from licet.supervise.cgroups import Resource, look

Run = Callable[..., Any]

GROUPED = frozenset(look().places)
needs_memory = pytest.mark.skipif(Resource.memory not in GROUPED, reason="needs a control group for memory")
needs_cpu = pytest.mark.skipif(Resource.cpu not in GROUPED, reason="needs a control group for time")

_FORKS = """\
import os
children = []
for _ in range(8):
    child = os.fork()
    if child == 0:
        os.read(0, 1) or __import__('time').sleep(20)
        os._exit(0)
    children.append(child)
for child in children:
    os.kill(child, 9), os.waitpid(child, 0)
"""
_THREADS = """\
import threading
ready = threading.Event()
for _ in range(8):
    threading.Thread(target=ready.wait, daemon=True).start()
"""
_HOG = "block = bytearray(200 << 20)\nblock[::4096] = b'x' * len(block[::4096])"


def ended(ran: Any) -> tuple[Reason, int | None, int | None]:
    return ran.ended.reason, ran.ended.exit_code, ran.ended.signal


ENDED = (Reason.exited, 0, None)


@pytest.mark.parametrize("code", [_FORKS, _THREADS])
def test_too_many_processes_or_threads(run: Run, code: str) -> None:
    assert ended(run(code, processes=4)) == (Reason.process_limit, None, None)
    assert ended(run(code, processes=16)) == ENDED


@needs_memory
def test_memory_of_one_process(run: Run) -> None:
    assert ended(run(_HOG, memory=64 << 20)) == (Reason.memory_limit, None, None)
    assert ended(run(_HOG, memory=512 << 20)) == ENDED


@needs_memory
def test_memory_of_a_tree_whose_parent_waits(run: Run) -> None:
    code = "import os\nif os.fork() == 0:\n" + "".join(f"    {line}\n" for line in _HOG.splitlines())
    code += "    os._exit(0)\nos.wait()"
    assert ended(run(code, memory=64 << 20)) == (Reason.memory_limit, None, None)
    assert ended(run(code, memory=512 << 20)) == ENDED


@needs_memory
def test_files_in_memory_count(run: Run) -> None:
    code = "open('/dev/shm/x', 'wb').write(bytes(100 << 20))"
    assert run(code, memory=64 << 20).ended.reason is Reason.memory_limit
    assert ended(run(code, memory=512 << 20)) == ENDED


@needs_cpu
def test_time_of_a_tree(run: Run) -> None:
    code = "import os, time\nfor _ in range(4):\n    os.fork()\nwhile time.process_time() < 2:\n    pass"
    assert ended(run(code, cpu_time=0.4)) == (Reason.cpu_limit, None, None)


def test_a_deadline(run: Run) -> None:
    assert ended(run("while True: pass", wall_time=0.5)) == (Reason.timeout, None, None)


def test_storage(run: Run) -> None:
    code = "with open('/tmp/x', 'wb') as file:\n    file.write(bytes(3 << 20))"
    assert ended(run(code, {"storage": 1 << 20})) == (Reason.file_limit, None, None)
    assert ended(run(code, {"storage": 8 << 20})) == ENDED


def test_a_handled_shortage_is_no_limit(run: Run) -> None:
    code = (
        "try:\n    open('/tmp/x', 'wb').write(bytes(3 << 20))\nexcept OSError as problem:\n    problem.errno"
    )
    ran = run(code, {"storage": 1 << 20})
    assert (*ended(ran), ran.ended.report.value) == (*ENDED, None)


def test_what_was_used_is_told(run: Run) -> None:
    used = run("open('/tmp/x', 'wb').write(bytes(1 << 20))\nblock = bytearray(32 << 20)").ended.used
    assert used.bytes_written == 1 << 20
    assert used.peak_memory is not None and used.peak_memory > 32 << 20
    assert used.cpu_time is not None and 0 < used.cpu_time < 10
