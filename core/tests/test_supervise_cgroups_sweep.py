"""What a host leaves that was killed is found and ended by the next; what a host that lives has is not."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from grouped import SOURCE, apart, here, own_folders
from licet.supervise.cgroups import Home, Limits, look, sweep
from licet.supervise.cgroups.folder import PREFIX

pytestmark = [here]

HOST = f"""\
import os, sys
sys.path.insert(0, {str(SOURCE)!r})
from licet.supervise.cgroups import Home, Limits
home = Home()
"""

WITH_A_GUEST = """\
group = home.group(Limits(pids=5))
if (guest := os.fork()) == 0:
    for entrance in group.descriptors:
        os.write(entrance, b"0")
    os.setsid()
    print(os.getpid(), flush=True)
    import signal
    signal.pause()
import time
time.sleep(600)
"""

WITHOUT_END = """\
print("begun", flush=True)
while True:
    with home.group(Limits(memory=64 << 20, pids=5)) as group:
        if os.fork() == 0:
            for entrance in group.descriptors:
                os.write(entrance, b"0")
            if os.fork() == 0:
                import signal
                signal.pause()
            os._exit(0)
        os.wait()
"""


@contextmanager
def host(code: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A host of groups that runs `code`, and the first line that it says."""
    with subprocess.Popen([sys.executable, "-c", HOST + code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def of(pid: int) -> list[str]:
    """The folders that the process has made and that are there."""
    return [one for one in own_folders(look()) if os.path.basename(one).startswith(f"{PREFIX}{pid}-")]


def test_what_a_killed_host_left_is_ended_and_removed() -> None:
    with host(WITH_A_GUEST) as (process, said):
        guest = os.pidfd_open(int(said))
        assert len(of(process.pid)) == len(look().bases())
        sweep()
        assert len(of(process.pid)) == len(look().bases()), "it lives"
        signal.pidfd_send_signal(guest, 0)
        process.kill()
        process.wait(timeout=60)
        signal.pidfd_send_signal(guest, 0)
        assert sweep() >= len(look().bases())
        assert of(process.pid) == []
        assert is_over(guest)
        os.close(guest)


def is_over(process: int) -> bool:
    """Whether the process ends within a minute."""
    import select

    poll = select.poll()
    poll.register(process, select.POLLIN)
    return bool(poll.poll(60_000))


def test_a_sweep_finds_nothing_where_all_live() -> None:
    with Home() as home, home.group(Limits()) as group:
        sweep()
        assert group.members() == set()
        assert len(of(os.getpid())) == len(look().bases())
    assert of(os.getpid()) == []


def test_a_fork_does_not_keep_what_its_host_left() -> None:
    code = """\
if os.fork() == 0:
    print(os.getpid(), flush=True)
    import signal
    signal.pause()
os.kill(os.getpid(), 9)
"""
    with host(code) as (process, fork):
        process.wait(timeout=60)
        try:
            assert of(process.pid) != []
            sweep()
            assert of(process.pid) == []
        finally:
            os.kill(int(fork), signal.SIGKILL)


def test_a_host_of_another_namespace_is_known_to_live() -> None:
    """There its number is 1, and here another process has it."""
    if os.geteuid() != 0:
        pytest.skip("only root makes a namespace of processes by itself")

    def act() -> str:
        from grouped import call

        call("unshare", 0x20000000)
        reader, writer = os.pipe()
        gate, way = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(way)
            with Home() as home, home.group(Limits()):
                os.write(writer, str(os.getpid()).encode())
                os.read(gate, 1)
            os._exit(0)
        number = int(os.read(reader, 16))
        sweep()
        found = len(of(number))
        os.close(way)
        os.waitpid(child, 0)
        return f"{number}: {found}, {len(of(number))}"

    assert apart(act) == f"1: {len(look().bases())}, 0"


def test_hosts_and_sweeps_beside_one_another() -> None:
    code = """\
from licet.supervise.cgroups import sweep
home.close()
for _ in range(25):
    with Home() as home:
        sweep()
        with home.group(Limits(memory=64 << 20, pids=5)) as group:
            sweep()
            assert group.usage().oom_kills == 0
print("done")
"""
    command = [sys.executable, "-c", HOST + code]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    said = [process.communicate(timeout=120)[0] for process in started]
    assert [process.returncode for process in started] == [0] * 4
    assert said == ["done\n"] * 4
    assert [of(process.pid) for process in started] == [[]] * 4


def killed_at_random(seed: int) -> None:
    chance = random.Random(seed)
    with host(WITHOUT_END) as (process, said):
        assert said == "begun"
        time.sleep(chance.uniform(0, 0.02))  # it is killed at a random moment: there is nothing to wait for
        process.kill()
        process.wait(timeout=60)
        sweep()
        assert of(process.pid) == [], f"seed {seed}"


def test_a_host_is_killed_at_random_moments() -> None:
    for seed in range(5):
        killed_at_random(seed)


@pytest.mark.soak
def test_a_host_is_killed_at_many_random_moments() -> None:
    for seed in range(5, 205):
        killed_at_random(seed)
