"""Walls of the kernel, put up by a launcher: each stops an act that succeeds without it, by itself."""

from __future__ import annotations

import errno
import os
import signal
import struct
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from licet.supervise.kernel import landlock_version
from licet.supervise.walls import Confinement, Launcher, Wall, Walls, landlock, look, seccomp, seen
from licet.supervise.walls.calls import LAST, MACHINES, number
from licet.supervise.walls.image import FAILURES, FIRST, Image
from licet.supervise.walls.memory import executable, path_of
from licet.supervise.walls.profiles import computing, interpreting

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="these walls are Linux's")
walled = pytest.mark.skipif(not look().standing, reason=f"no walls here: {look().missing.get(Wall.apart)}")
all_walls = pytest.mark.skipif(set(Wall) - look().standing != set(), reason="a wall is missing here")

PYTHON = os.path.realpath(sys.executable)
FLAGS = ("-I", "-S", "-B", "-c")
ALLOW, EPERM, ENOSYS, KILL = 0x7FFF0000, 0x00050001, 0x00050026, 0x80000000
ASK = 0x7FC00000


def only(*walls: Wall) -> Walls:
    """These walls alone, as strong as this kernel has them."""
    return Walls(frozenset(walls), {}, look().landlock if Wall.files in walls else 0)


def confined(code: str, walls: Walls, readable: tuple[str, ...] = ()) -> Confinement:
    paths = sysconfig.get_paths()
    folders = (paths["stdlib"], paths["platstdlib"], "/lib", "/lib64", "/usr/lib", "/usr/lib64")
    library = sysconfig.get_config_var("LIBDIR")
    return Confinement(
        (PYTHON, *FLAGS, code),
        walls,
        programs=(PYTHON, "/lib64", "/lib"),
        readable=("/etc/ld.so.cache", *readable),
        folders=(*folders, *([library] if sysconfig.get_config_var("Py_ENABLE_SHARED") else [])),
    )


def run(code: str, walls: Walls) -> str:
    """What `code` prints behind `walls`."""
    launcher = Launcher(confined(code, walls))
    try:
        done = subprocess.run(
            [launcher.path], capture_output=True, text=True, timeout=60, close_fds=False, check=False
        )
    finally:
        launcher.close()
    assert done.returncode == 0, (done.returncode, launcher.failed_to(done.returncode))
    return done.stdout


def tried(act: str) -> str:
    """A program that says `done`, or which error stopped `act`."""
    return (
        "import os\ntry:\n "
        + act.replace("\n", "\n ")
        + "\nexcept OSError as problem:\n print(problem.errno)\nelse:\n print('done')"
    )


NATIVE = """\
import ctypes
library = ctypes.CDLL(None, use_errno=True)
if library.{} < 0:
    raise OSError(ctypes.get_errno(), 'refused')
"""


@all_walls
@pytest.mark.parametrize(
    ("act", "wall", "number"),
    [
        ("open('/etc/passwd')", Wall.files, errno.EACCES),
        ("os.listdir('/')", Wall.files, errno.EACCES),
        ("open('/proc/1/cmdline')", Wall.files, errno.EACCES),
        ("open('/dev/null', 'w')", Wall.files, errno.EACCES),
        ("os.posix_spawn('/bin/true', ['true'], {})", Wall.files, errno.EACCES),
        ("os.posix_spawn('/bin/true', ['true'], {})", Wall.calls, errno.EPERM),
        ("if os.fork() == 0: os._exit(0)", Wall.calls, errno.EPERM),
        ("import socket\nsocket.socket()", Wall.calls, errno.EPERM),
        ("import socket\nsocket.socketpair()", Wall.calls, errno.EPERM),
        ("os.memfd_create('x')", Wall.calls, errno.EPERM),
        ("os.kill(os.getppid(), 0)", Wall.calls, errno.EPERM),
        ("os.utime('/proc/self/fd/1')", Wall.calls, errno.EPERM),
        ("os.setpriority(os.PRIO_PROCESS, 0, 1)", Wall.calls, errno.EPERM),
        (NATIVE.format("syscall(435, 0, 0)"), Wall.calls, errno.ENOSYS),
        (NATIVE.format("prctl(4, 1, 0, 0, 0)"), Wall.calls, errno.EPERM),
        ("os.fstat(3)", Wall.apart, errno.EBADF),
    ],
)
def test_each_wall_stops_what_succeeds_without_it(act: str, wall: Wall, number: int) -> None:
    reader, writer = os.pipe()
    os.set_inheritable(reader, True)
    try:
        assert run(tried(act), only(wall)).strip() == str(number)
        if wall is not Wall.apart and "435" not in act:
            assert run(tried(act), only(Wall.apart)).strip() == "done"
    finally:
        os.close(reader)
        os.close(writer)


@all_walls
@pytest.mark.skipif(os.geteuid() != 0, reason="only root has capabilities to lose")
def test_root_has_no_capability_and_gains_none() -> None:
    act = "os.setgroups([])"
    assert run(tried(act), only(Wall.apart)).strip() == "done"
    assert run(tried(act), only(Wall.privileges)).strip() == str(errno.EPERM)
    again = (
        "print(os.stat('/proc/self').st_uid, open('/proc/self/status').read().split('CapPrm:')[1].split()[0])"
    )
    assert run(f"import os\n{again}", only(Wall.privileges)) == f"0 {'0' * 16}\n"


@all_walls
def test_an_ordinary_program_runs_behind_all_walls() -> None:
    code = """\
import json, threading, time, random
found = []
thread = threading.Thread(target=lambda: found.append(sum(range(10))))
thread.start()
thread.join()
time.sleep(0.001)
print(json.dumps([found, len(bytearray(1 << 22)), 0 <= random.random() < 1]))
"""
    assert run(code, look()) == "[[45], 4194304, true]\n"


@walled
def test_a_program_stands_apart_from_its_host() -> None:
    code = """\
import os, resource, sys
print(os.getcwd(), os.getsid(0) == os.getpid(), os.environ.get('HOME'), len(sys.argv), os.umask(0))
print(os.readlink('/proc/self/fd/2'), [resource.getrlimit(kind) for kind in (1, 4, 7)])
print(open('/proc/self/oom_score_adj').read().strip())
print('not seen', file=sys.stderr)
"""
    assert run(code, only(Wall.apart)) == ("/ True None 1 63\n/dev/null [(0, 0), (0, 0), (64, 64)]\n1000\n")


SPAWN = """\
import subprocess, sys, threading, time
sys.path[:0] = {path!r}
from licet.supervise.walls import Confinement, Launcher, Wall, Walls
program = ("/bin/sleep", "60")
launcher = Launcher(Confinement(program, Walls(frozenset({{Wall.apart}}))))
line = [launcher.path] if {walled} else list(program)
print(subprocess.Popen(line, close_fds=False, stdout=subprocess.DEVNULL).pid, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def left() -> Iterator[list[int]]:
    """Processes that a test has to end itself."""
    pids: list[int] = []
    yield pids
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


@walled
def test_a_program_ends_with_its_host_and_an_unwalled_one_does_not(left: list[int]) -> None:
    for is_walled in (True, False):
        host = subprocess.Popen(
            [sys.executable, "-c", SPAWN.format(path=sys.path, walled=is_walled)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        with host:
            assert host.stdout is not None
            pid = int(host.stdout.readline())
            program = os.pidfd_open(pid)
            host.kill()
            host.wait()
        try:
            if is_walled:
                _await_end(program, 30.0)
                continue
            left.append(pid)
            assert os.stat(f"/proc/{pid}")
        finally:
            os.close(program)


@walled
def test_a_program_ends_with_the_thread_that_started_it() -> None:
    code = "import time; print('up', flush=True); time.sleep(60)"
    launcher = Launcher(confined(code, only(Wall.apart)))
    started: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        process = subprocess.Popen([launcher.path], close_fds=False, stdout=subprocess.PIPE)
        started.append(process)
        assert process.stdout is not None
        process.stdout.readline()

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    with started[0] as process:
        assert process.wait(timeout=30) == -signal.SIGKILL
    launcher.close()


def _await_end(process: int, seconds: float) -> None:
    import select

    poll = select.poll()
    poll.register(process, select.POLLIN)
    assert poll.poll(seconds * 1000) != []


@walled
def test_what_could_not_be_done_is_told_and_the_program_does_not_begin() -> None:
    launcher = Launcher(Confinement(("/nowhere/program",), only(Wall.apart)))
    done = subprocess.run([launcher.path], close_fds=False, capture_output=True, check=False)
    assert launcher.failed_to(done.returncode) == "start the program"
    assert [launcher.failed_to(code) for code in (0, 1, FIRST - 1, 255)] == [None] * 4
    launcher.close()
    launcher.close()


@walled
def test_a_launcher_serves_the_children_of_its_own_process_alone() -> None:
    launcher = Launcher(Confinement(("/bin/true",), only(Wall.apart)))
    script = "import subprocess, sys; sys.exit(subprocess.run([sys.argv[1]], close_fds=False).returncode)"
    descriptor = int(launcher.path.rpartition("/")[2])
    done = subprocess.run([sys.executable, "-c", script, launcher.path], pass_fds=(descriptor,), check=False)
    assert launcher.failed_to(done.returncode) == "find its host alive"
    launcher.close()


@walled
def test_what_stands_is_read_back(left: list[int]) -> None:
    launcher = Launcher(confined("import sys; print('up', flush=True); sys.stdin.read()", look()))
    with subprocess.Popen(
        [launcher.path], close_fds=False, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        assert look().unseen(seen(process.pid)) == []
        process.kill()
    launcher.close()
    assert only(Wall.privileges, Wall.calls).unseen({"NoNewPrivs": "1", "CapEff": "0" * 16}) == [
        "Seccomp unknown"
    ]
    assert only(Wall.privileges).unseen({"NoNewPrivs": "0", "CapEff": "1" * 16}) == [
        "NoNewPrivs 0",
        f"CapEff {'1' * 16}",
    ]
    assert Walls().unseen({}) == []
    assert seen(0) == {}


@walled
def test_a_file_in_memory_can_be_executed_and_not_be_changed() -> None:
    descriptor = executable(Path("/bin/true").read_bytes())
    try:
        assert not os.get_inheritable(descriptor)
        with pytest.raises(PermissionError), open(path_of(descriptor), "r+b", buffering=0) as file:
            file.write(b"x")  # root may open it, and change nothing all the same
        with pytest.raises(PermissionError):
            os.truncate(path_of(descriptor), 0)
        assert subprocess.run([path_of(descriptor)], close_fds=False, check=False).returncode == 0
    finally:
        os.close(descriptor)


@on_linux
def test_looking_says_why_a_wall_is_missing() -> None:
    found = look()
    assert found.standing | set(found.missing) == set(Wall)
    assert found.standing & set(found.missing) == set()
    assert found.landlock == (landlock_version() if Wall.files in found.standing else 0)
    assert look() is found


class Filter:
    """The kernel's interpreter of filters, as far as these use it."""

    def __init__(self, machine: str, profile: seccomp.Profile) -> None:
        count, text = seccomp.program(machine, profile)
        self.lines = [struct.unpack_from("<HBBI", text, 8 * n) for n in range(count)]
        assert len(text) == 8 * count <= 8 * 4096
        self.machine = machine
        self.architecture = seccomp.ARCHITECTURES[machine]

    def __call__(self, call: str | int, *arguments: int, architecture: int | None = None) -> int:
        which = number(call, self.machine) if isinstance(call, str) else call
        assert which is not None
        filled = (*arguments, *(0 for _ in range(6 - len(arguments))))
        told = architecture or self.architecture
        data = struct.pack("<IIQ6Q", which & 0xFFFFFFFF, told, 0, *(word % (1 << 64) for word in filled))
        place, value = 0, 0
        while True:
            code, if_true, if_false, k = self.lines[place]
            place += 1
            if code == 0x20:
                (value,) = struct.unpack_from("<I", data, k)
            elif code == 0x54:
                value &= k
            elif code == 0x06:
                return int(k)
            else:
                found = {0x15: value == k, 0x25: value > k, 0x45: bool(value & k)}[code]
                place += if_true if found else if_false


@pytest.mark.parametrize("machine", MACHINES)
def test_a_filter_lets_a_program_compute_and_nothing_else(machine: str) -> None:
    profile = computing(signals=False)
    judge = Filter(machine, profile)
    listed = (*profile.permitted, *profile.tested)
    allowed = {name for name in listed if number(name, machine) is not None}
    by_argument = set(profile.tested) | {"clone", "prlimit64", "clone3", "tgkill"}
    assert {name for name in allowed if judge(name) == ALLOW} >= allowed - by_argument
    named = {number(name, machine) for name in (*allowed, *by_argument)}
    others = {call: judge(call) for call in range(LAST + 1) if call not in named}
    assert set(others.values()) == {EPERM}
    assert len(others) > 250
    assert {judge(call) for call in (LAST + 1, 1000, 0x40000000, 0xFFFFFFFF)} == {ENOSYS}
    assert judge("read", architecture=0x40000003) == KILL


@pytest.mark.parametrize("machine", MACHINES)
def test_a_filter_looks_at_arguments(machine: str) -> None:
    judge = Filter(machine, computing(signals=False))
    thread, new_user, new_network, vfork = 0x003D0F00, 0x10000000, 0x40000000, 0x4100
    assert judge("clone", thread) == ALLOW
    assert [judge("clone", flags) for flags in (17, vfork, thread | new_user, thread | new_network)] == [
        EPERM
    ] * 4
    assert judge("clone3") == ENOSYS
    assert judge("prlimit64", 0, 7, 0, 1 << 40) == ALLOW
    assert [judge("prlimit64", 0, 7, new) for new in (1, 1 << 32, (1 << 64) - 1)] == [EPERM] * 3
    assert [judge("prctl", option) for option in (15, 39)] == [ALLOW] * 2
    assert [judge("prctl", option) for option in (1, 4, 22, 24, 47)] == [EPERM] * 5
    assert judge("fcntl", 0, 3) == ALLOW
    assert [judge("fcntl", 0, command) for command in (6, 8, 10, 15, 1024, 1026)] == [EPERM] * 6
    assert judge("ioctl", 0, 0x5401) == ALLOW
    assert [judge("ioctl", 0, request) for request in (0x5412, 0x541C, 0x8927)] == [EPERM] * 3
    signalling = Filter(machine, computing(signals=True))
    assert (judge("tgkill", 1, 1, 9), signalling("tgkill", 1, 1, 9)) == (EPERM, ALLOW)


SHUT = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsmount": (432, 432),
    "mount_setattr": (442, 442),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "seccomp": (317, 277),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "socket": (41, 198),
    "bind": (49, 200),
    "listen": (50, 201),
    "accept": (43, 202),
    "connect": (42, 203),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
    "open_by_handle_at": (304, 265),
    "setxattr": (188, 5),
    "fsetxattr": (190, 7),
    "capset": (126, 91),
    "setuid": (105, 146),
    "setresuid": (117, 147),
    "setgroups": (116, 159),
    "landlock_create_ruleset": (444, 444),
    "syslog": (103, 116),
    "fanotify_init": (300, 262),
    "execve": (59, 221),
    "execveat": (322, 281),
}
"""Calls that no interpreter gets, whatever their arguments: their numbers, not taken from the code."""


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("network", [False, True])
@pytest.mark.parametrize("programs", [False, True])
def test_an_interpreters_filter_lists_what_it_lets_through(
    machine: str, programs: bool, network: bool
) -> None:
    profile = interpreting(programs=programs, network=network)
    judge = Filter(machine, profile)
    opened = {"connect"} if network else set()
    opened |= {"execve", "execveat"} if programs else set()
    named = {number(name, machine) for name in (*profile.permitted, *profile.tested, *profile.asked)}
    named |= {number(name, machine) for name in ("clone", "clone3")}
    assert {judge(call) for call in range(LAST + 1) if call not in named} == {EPERM}
    answers = {name: judge(pair[MACHINES.index(machine)]) for name, pair in SHUT.items()}
    assert {name for name, answer in answers.items() if answer != EPERM} == opened
    # by another convention: that of x32 on this machine, and every call of another one
    assert {judge(call | 0x40000000) for call in range(LAST + 1)} == {ENOSYS}
    for other in (0x40000003, 0x40000028, *(set(seccomp.ARCHITECTURES.values()) - {judge.architecture})):
        assert {judge(call, architecture=other) for call in range(LAST + 1)} == {KILL}


@pytest.mark.parametrize("machine", MACHINES)
def test_an_interpreters_filter_looks_at_arguments(machine: str) -> None:
    judge = Filter(machine, interpreting(programs=False, network=False))
    thread, fork, vfork = 0x003D0F00, 0x01200011, 0x4111
    assert [judge("clone", flags) for flags in (thread, fork, vfork, 17)] == [ALLOW] * 4
    apart = (0x80, *(1 << bit for bit in range(25, 31)), 0x20000)  # time, groups, names … mounts
    assert [judge("clone", base | flag) for base in (17, thread, fork) for flag in apart] == [EPERM] * 24
    assert judge("clone3") == ENOSYS
    terminal, injection, keyboard, settings, console = 0x5401, 0x5412, 0x541C, 0x5402, 0x541D
    assert judge("ioctl", 0, terminal) == ALLOW
    assert [judge("ioctl", 0, one) for one in (injection, keyboard, settings, console)] == [EPERM] * 4
    # the kernel looks at the lower half alone, and so has the filter to
    assert judge("ioctl", 0, injection | 1 << 32) == EPERM
    assert judge("ioctl", 0, terminal | 1 << 32) == ALLOW
    dumpable, seccomp_filter, bound, ambient, tracer, new_privileges = 4, 22, 24, 47, 0x59616D61, 38
    shut = (dumpable, seccomp_filter, bound, ambient, tracer, new_privileges, 8, 28, 35, 40)
    assert [judge("prctl", option) for option in shut] == [EPERM] * len(shut)
    assert [judge("prctl", option) for option in (1, 3, 15, 39)] == [ALLOW] * 4
    assert judge("prlimit64", 0, 7, 1 << 40) == ALLOW
    assert [judge("prlimit64", pid, 7) for pid in (1, 1 << 32, 77)] == [EPERM] * 3
    device, character, socket = 0x6000, 0x2000, 0xC000
    assert [judge("mknodat", 0, 0, kind | 0o600) for kind in (0, 0x8000, 0x1000)] == [ALLOW] * 3
    assert [judge("mknodat", 0, 0, kind | 0o600) for kind in (device, character, socket)] == [EPERM] * 3
    assert judge("personality", 0xFFFFFFFF) == ALLOW
    assert [judge("personality", one) for one in (0, 0x0400000, 0x0040000)] == [EPERM] * 3


@pytest.mark.parametrize("machine", MACHINES)
def test_an_interpreters_filter_knows_kinds_of_sockets(machine: str) -> None:
    shut = Filter(machine, interpreting(programs=False, network=False))
    asking = Filter(machine, interpreting(programs=False, network=True))
    local, ip, ipv6, netlink, packet, keys, vsock, alg, xdp = 1, 2, 10, 16, 17, 15, 40, 38, 44
    stream, datagram, raw, in_order, close_on_exec = 1, 2, 3, 5, 0x80000
    for judge in (shut, asking):
        pairs = [
            judge("socketpair", local, kind | close_on_exec) for kind in (stream, datagram, in_order, raw)
        ]
        assert pairs == [ALLOW, EPERM, ALLOW, EPERM]
        assert [judge("socketpair", family, stream) for family in (ip, ipv6, netlink, vsock)] == [EPERM] * 4
        for family in (local, netlink, packet, keys, vsock, alg, xdp, 0, 3, 4, 5, 9, 21, 29, 31, 45):
            assert {judge("socket", family, kind) for kind in range(1, 11)} == {EPERM}
    assert {shut("socket", family, stream) for family in range(64)} == {EPERM}
    assert [asking("socket", family, stream | close_on_exec) for family in (ip, ipv6)] == [ALLOW] * 2
    assert [asking("socket", ip, kind) for kind in (datagram, raw, in_order)] == [EPERM] * 3
    multipath, udp, sctp = 262, 17, 132
    assert [asking("socket", ip, stream, protocol) for protocol in (multipath, udp, sctp)] == [EPERM] * 3
    assert [asking("socket", ip, stream, protocol) for protocol in (0, 6)] == [ALLOW] * 2
    assert (shut("connect"), asking("connect")) == (EPERM, ASK)


def test_a_ruleset_asks_of_each_version_what_it_knows() -> None:
    words = {version: struct.unpack(f"<{len(one) // 8}Q", one) for version, one in _rulesets().items()}
    assert words == {
        1: (0x1FFF,),
        2: (0x3FFF,),
        3: (0x7FFF,),
        4: (0x7FFF, 3),
        5: (0xFFFF, 3),
        6: (0xFFFF, 3, 3),
        7: (0xFFFF, 3, 3),
    }


def _rulesets() -> dict[int, bytes]:
    return {version: landlock.ruleset(version) for version in range(1, landlock.KNOWN + 1)}


@pytest.mark.parametrize(("machine", "elf"), [("x86_64", 62), ("aarch64", 183)])
def test_an_image_is_a_program_of_its_machine(machine: str, elf: int) -> None:
    image = Image(machine)
    place = image.text("abc")
    image.call("write", 1, place, 3, least=3, most=3, what="say so")
    image.call("close", -1, least=FAILURES)
    content = image.content()
    assert content[:4] == b"\x7fELF"
    kind, found, version, entry = struct.unpack_from("<HHIQ", content, 16)
    assert (kind, found, version) == (2, elf, 1)
    table = content.index(struct.pack("<QQ", number("write", machine) or 0, 1))
    write = struct.unpack_from("<9Q", content, table)
    base = entry - (64 + 2 * 56)
    assert content[write[2] - base :][:4] == b"abc\0"
    assert write[3:] == (3, 0, 0, 0, 3, 3)
    close = struct.unpack_from("<9Q", content, table + 72)
    assert (close[1], close[7]) == ((1 << 64) - 1, (1 << 64) + FAILURES)
    assert [image.failed_at(code) for code in (FIRST, FIRST + 1, FIRST + 2)] == ["say so", "close", None]


def test_what_a_machine_lacks_is_not_made_up() -> None:
    assert (number("open", "aarch64"), number("open", "x86_64")) == (None, 2)
    with pytest.raises(KeyError):
        Image("aarch64").call("open")
    with pytest.raises(KeyError):
        Image("riscv64")
    with pytest.raises(KeyError):
        number("read", "riscv64")
    with pytest.raises(KeyError):
        seccomp.program("riscv64", computing(signals=False))


@pytest.mark.skipif(os.uname().machine not in MACHINES, reason="no image is known for this machine")
@on_linux
def test_an_image_does_one_call_after_the_other_and_stops_at_the_first_that_fails() -> None:
    image = Image(os.uname().machine)
    for word in (b"one ", b"two "):
        image.call("write", 1, image.data(word), 4, least=4, most=4)
    image.call("close", 99, least=FAILURES)
    image.call("close", 99, what="close nothing")
    image.call("write", 1, image.data(b"never"), 5)
    descriptor = executable(image.content())
    try:
        done = subprocess.run([path_of(descriptor)], close_fds=False, capture_output=True, check=False)
    finally:
        os.close(descriptor)
    assert (done.stdout, image.failed_at(done.returncode)) == (b"one two ", "close nothing")
