"""Groups of control, for real: each limit stops a tree that succeeds without it, and says that it did.

They hold for whichever version of groups this host has; what only one version has is skipped on the other.
"""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator

import pytest
from grouped import apart, call, folders_of, here, own_folders, run, start
from licet.supervise.cgroups import Group, Groups, Home, Limits, Missing, Place, Resource, Ungrouped, look
from licet.supervise.cgroups.ending import kill, members

pytestmark = [here]

MIB = 1 << 20
SYS_CLONE3, CLONE_INTO_CGROUP = 435, 0x200000000

FORKS = """\
import signal
made = 0
try:
    while made < 40:
        if os.fork() == 0:
            signal.pause()
        made += 1
except BlockingIOError:
    pass
print(made, flush=True)
"""

THREADS = """\
import _thread
made, gate = 0, _thread.allocate_lock()
gate.acquire()
try:
    while made < 40:
        _thread.start_new_thread(gate.acquire, ())
        made += 1
except RuntimeError:
    pass
print(made, flush=True)
os._exit(0)
"""

# four children at a time hold 24 MiB each, of a kind that no limit of a single process adds up
TREE = """\
import mmap
kept = []
def heap():
    kept.append(bytearray(b"x") * (24 << 20))
def shared():
    kept.append(mmap.mmap(-1, 24 << 20))
    kept[-1].write(b"x" * (24 << 20))
def file():
    kept.append(os.memfd_create("kept"))
    for _ in range(24):
        os.write(kept[-1], b"x" * (1 << 20))
ready, waiting = os.pipe(), os.pipe()
children = []
for _ in range(4):
    child = os.fork()
    if child == 0:
        os.close(waiting[1])
        {kind}()
        os.write(ready[1], b"x")
        os.close(ready[1])
        os.read(waiting[0], 1)
        os._exit(0)
    children.append(child)
os.close(ready[1])
there = 0
while there < 4 and os.read(ready[0], 1):
    there += 1
os.close(waiting[1])
print(sorted(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children), flush=True)
"""


@pytest.fixture
def home() -> Iterator[Home]:
    with Home() as made:
        yield made


@pytest.fixture
def free(home: Home) -> Iterator[Group]:
    """A group without limits, for the twins."""
    with home.group(Limits()) as made:
        yield made


def test_forks_end_at_the_limit_and_go_on_without_it(home: Home, free: Group) -> None:
    with home.group(Limits(pids=10)) as group:
        assert run_and_leave(group, FORKS) == "9\n"
        assert group.usage().pids_refused == 1
        assert group.usage().oom_kills == 0
    assert run_and_leave(free, FORKS) == "40\n"
    assert free.usage().pids_refused == 0


def run_and_leave(group: Group, code: str) -> str:
    """What `code` prints first; those that it made are still there."""
    process = start(group, code)
    assert process.stdout is not None
    said = process.stdout.readline()
    group.kill()
    process.communicate(timeout=60)
    return said


def test_threads_are_counted_like_processes(home: Home, free: Group) -> None:
    with home.group(Limits(pids=10)) as group:
        assert run(group, THREADS) == (0, "9\n")
        assert (group.usage().pids_refused or 0) >= 1
    assert run(free, THREADS) == (0, "40\n")


@pytest.mark.parametrize("kind", ["heap", "shared", "file"])
def test_the_memory_of_a_tree_is_bounded_as_one(home: Home, free: Group, kind: str) -> None:
    code = TREE.format(kind=kind)
    with home.group(Limits(memory=80 * MIB)) as group:
        process = start(group, code)
        process.communicate(timeout=60)
        used = group.usage()
    assert used.oom_kills is not None and used.oom_kills >= 1
    assert used.peak_memory is not None and 60 * MIB <= used.peak_memory <= 80 * MIB
    assert run(free, code) == (0, "[0, 0, 0, 0]\n")
    used = free.usage()
    assert used.oom_kills == 0
    assert used.peak_memory is not None and used.peak_memory >= 96 * MIB


def test_files_in_memory_count_though_no_process_has_them_open(home: Home, tmp_path: object) -> None:
    code = """\
name = f"/dev/shm/licet-{os.getpid()}"
try:
    for number in range(6):
        with open(f"{name}-{number}", "wb") as file:
            for _ in range(16):
                file.write(b"x" * (1 << 20))
    print("all", flush=True)
finally:
    for number in range(6):
        if os.path.exists(f"{name}-{number}"):
            os.unlink(f"{name}-{number}")
"""
    if not os.path.ismount("/dev/shm"):
        pytest.skip("no file system in memory is mounted at /dev/shm")
    with home.group(Limits(memory=64 * MIB)) as group:
        process = start(group, code)
        printed, _ = process.communicate(timeout=60)
        assert (process.returncode, printed) == (-signal.SIGKILL, "")
        assert group.usage().oom_kills == 1
        for name in os.listdir("/dev/shm"):
            if name.startswith(f"licet-{process.pid}-"):
                os.unlink(f"/dev/shm/{name}")
    with home.group(Limits(memory=256 * MIB)) as group:
        assert run(group, code) == (0, "all\n")
        assert group.usage().oom_kills == 0


def test_time_of_children_counts_that_nobody_waited_for(free: Group) -> None:
    code = """\
import resource, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
reader, writer = os.pipe()
for _ in range(2):
    if os.fork() == 0:
        while time.process_time() < 0.3:
            pass
        os._exit(0)
os.close(writer)
os.read(reader, 1)
spent = resource.getrusage(resource.RUSAGE_CHILDREN)
print(spent.ru_utime + spent.ru_stime)
"""
    status, printed = run(free, code)
    assert status == 0
    assert float(printed) == 0.0, "the system itself forgets them"
    spent = free.cpu_seconds()
    assert spent is not None and 0.6 <= spent < 5
    assert free.usage().cpu == pytest.approx(spent, abs=0.5)


def test_a_process_that_is_killed_by_another_reached_no_limit(home: Home) -> None:
    with home.group(Limits(memory=64 * MIB, pids=5)) as group:
        status, _ = run(group, "import signal; os.kill(os.getpid(), signal.SIGKILL)")
        used = group.usage()
    assert status == -signal.SIGKILL, "as the kernel's own kill for memory ends it"
    assert (used.oom_kills, used.pids_refused) == (0, 0)


def test_nothing_is_told_of_an_earlier_run(home: Home) -> None:
    for _ in range(3):
        with home.group(Limits(memory=64 * MIB, pids=10)) as group:
            used = group.usage()
            assert (used.cpu, used.oom_kills, used.pids_refused) == (0, 0, 0)
            assert used.peak_memory is not None and used.peak_memory < MIB
            run(group, TREE.format(kind="heap"))
            run_and_leave(group, FORKS)
            used = group.usage()
            assert used.oom_kills and used.pids_refused and used.cpu


def test_a_process_can_be_put_in_from_outside(home: Home) -> None:
    with home.group(Limits(pids=3)) as group:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", "import os\ninput()\n" + FORKS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdin is not None and process.stdout is not None
        group.add(process.pid)
        assert group.members() == {process.pid}
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "2\n"
        group.kill()
        process.communicate(timeout=60)
        with pytest.raises(ProcessLookupError):
            group.add(process.pid)


STORM = """\
print("begun", flush=True)
while True:
    try:
        if os.fork() == 0:
            os.setsid()
            os.close(0), os.close(1)
        elif os.fork():
            os._exit(0)
    except OSError:
        pass
"""


def test_a_storm_of_forks_is_ended_with_the_group(home: Home) -> None:
    group = home.group(Limits(pids=30))
    process = start(group, STORM)
    assert process.stdout is not None and process.stdout.readline() == "begun\n"
    assert group.close(20.0)
    process.communicate(timeout=60)
    assert [os.listdir(folder) for folder in folders_of(home) if "1" in os.listdir(folder)] == []


def test_what_is_asked_of_a_closed_group_is_nothing(home: Home) -> None:
    group = home.group(Limits())
    assert group.close()
    assert group.close()
    assert group.descriptors == ()
    assert (group.cpu_seconds(), group.usage().peak_memory) == (None, None)


def test_no_descriptor_of_a_group_is_left_or_handed_on(home: Home) -> None:
    before = descriptors()
    with home.group(Limits(memory=64 * MIB, pids=5)) as group:
        assert not any(os.get_inheritable(fd) for fd in group.descriptors)
        added = descriptors() - before
        assert added and not any(os.get_inheritable(fd) for fd in added)
    assert descriptors() == before


def descriptors() -> set[int]:
    """Those that are open in this process."""
    listed = map(int, os.listdir("/proc/self/fd"))  # and the one that listed them, which is closed by now
    return {fd for fd in listed if os.path.exists(f"/proc/self/fd/{fd}")}


def test_a_limit_that_can_not_be_held_is_refused() -> None:
    known = look()
    lacking = Groups(
        {Resource.pids: known.places[Resource.pids]}, {Resource.memory: Missing("it is not counted")}
    )
    with Home(lacking) as home:
        with pytest.raises(Ungrouped, match=r"^it is not counted$"):
            home.group(Limits(memory=MIB))
        with home.group(Limits(pids=4)) as group:
            assert run_and_leave(group, FORKS) == "3\n"
            assert group.usage().peak_memory is None


def test_a_limit_that_the_kernel_does_not_take_leaves_no_group(home: Home) -> None:
    with pytest.raises(Ungrouped, match=r"can't be made|and the kernel shows"):
        home.group(Limits(pids=1 << 40))
    assert all(not os.path.exists(os.path.join(folder, "1")) for folder in folders_of(home))


@pytest.mark.parametrize("limits", [{"memory": 0}, {"pids": 0}, {"pids": -1}])
def test_a_limit_of_nothing_is_an_error(limits: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="has to be above 0"):
        Limits(**limits)


def test_a_home_leaves_nothing() -> None:
    home = Home()
    folders = folders_of(home)
    group = home.group(Limits(pids=3))
    process = start(group, "import signal; print('in', flush=True); signal.pause()")
    assert process.stdout is not None and process.stdout.readline() == "in\n"
    home.close()
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert [folder for folder in folders if os.path.exists(folder)] == []
    home.close()


def test_a_fork_has_to_make_a_home_of_its_own(home: Home) -> None:
    def act() -> str:
        try:
            home.group(Limits())
        except Ungrouped as problem:
            home.close()
            return str(problem)
        return "made"

    assert apart(act) == "these groups are those of the process that this one was forked from"
    assert set(folders_of(home)) <= set(own_folders(look()))


def test_a_guest_sees_no_group_above_its_own(home: Home) -> None:
    code = """\
import ctypes
def groups():
    lines = [line.strip().split(":", 2) for line in open("/proc/self/cgroup")]
    return {name: path for number, name, path in lines if name in ("memory", "pids", "cpuacct", "")}
print(max(len(path) for path in groups().values()) > 1)
assert ctypes.CDLL(None).unshare(0x02000000) == 0
print(sorted(set(groups().values())))
"""
    if os.geteuid() != 0:
        pytest.skip("only root makes a namespace of groups by itself")
    with home.group(Limits()) as group:
        assert run(group, code) == (0, "True\n['/']\n")


@pytest.fixture
def second() -> Groups:
    """Groups of version 2, wherever it is mounted, if only to count time."""
    for folder in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup"):
        if os.path.exists(f"{folder}/cgroup.controllers") and os.access(folder, os.W_OK):
            return Groups({Resource.cpu: Place(2, folder)})
    pytest.skip("no hierarchy of version 2 can be written to here")


def test_a_process_is_born_in_a_group_of_version_2(second: Groups) -> None:
    with Home(second) as home, home.group(Limits()) as group:
        assert group.folder is not None
        gate, way = os.pipe()
        words = (CLONE_INTO_CGROUP, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, 0, 0, group.folder)
        pid = call("syscall", SYS_CLONE3, struct.pack("<11Q", *words), 88)
        if pid == 0:
            os.close(way)
            os.read(gate, 1)
            os._exit(0)
        assert group.members() == {pid}
        os.close(way)
        os.close(gate)
        os.waitpid(pid, 0)
        assert group.members() == set()
        assert (group.cpu_seconds() or 0) > 0


def test_all_are_killed_at_once_in_version_2(second: Groups) -> None:
    with Home(second) as home, home.group(Limits()) as group:
        assert group.folder is not None and os.access("cgroup.kill", os.W_OK, dir_fd=group.folder)
        process = start(group, FORKS)
        assert process.stdout is not None and process.stdout.readline() == "40\n"
        group.kill()
        process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL


def test_a_group_without_its_own_way_to_kill_is_ended_one_by_one(home: Home) -> None:
    if look().places[Resource.pids].version == 2:
        pytest.skip("groups of version 2 have their own")
    with home.group(Limits()) as group:
        process = start(group, FORKS)
        assert process.stdout is not None and process.stdout.readline() == "40\n"
        at = group._branches[0].folder
        assert len(members(at)) == 41
        kill(at)
        process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL
