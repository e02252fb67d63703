"""What the system shows of a guest is compared with what was set up: anything else, and no code begins."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator

import pytest
from licet.supervise import readback
from licet.supervise.readback import NotTaken, look

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")


def bound() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (7, 8))
    resource.setrlimit(resource.RLIMIT_AS, (1 << 40, 1 << 41))


@pytest.fixture
def child() -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, preexec_fn=bound) as one:
        yield one.pid
        one.communicate(b"\n")


def test_limits_in_force_are_told(child: int) -> None:
    seen = look(child, {resource.RLIMIT_CPU: (7, 8), resource.RLIMIT_AS: (1 << 40, 1 << 41)})
    assert seen["cpu_time_limit"] == "soft 7, hard 8"
    assert seen["memory_limit"] == f"soft {1 << 40}, hard {1 << 41}"
    assert seen["working_directory"] == f"in {os.getcwd()}"


@pytest.mark.parametrize("given", [(5, 6), (7, 9), (6, 8)])
def test_a_limit_that_is_not_in_force_is_told(given: tuple[int, int], child: int) -> None:
    with pytest.raises(NotTaken) as told:
        look(child, {resource.RLIMIT_CPU: given})
    assert str(told.value) == f"cpu_time_limit was set to {given[0]}, and the system has 7"


def test_who_is_gone_is_unknown() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
        assert look(gone.pid, {}) == {}


def test_what_the_system_does_not_show_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = {
        "limits": b"Limit  Soft Limit  Hard Limit  Units\n",
        "status": readback.read("/proc/self/status"),
    }
    monkeypatch.setattr(readback, "read", lambda path: shown[path.rpartition("/")[2]])
    assert look(os.getpid(), {resource.RLIMIT_CPU: (7, 8)}) == {}
