"""The room of one run: fresh namespaces, fresh storage, and a guest that can leave neither.

It runs in a fork of the launcher, the first process of its namespaces, sent by the host. Rules this module
keeps:

- the first process reads nothing of the code; it makes the room, starts the guest, waits for a run, reaps
  whatever loses its parent, and ends the room with itself: when the guest ends, when the host says so or
  dies, or when its launcher dies;
- what does not depend on a run is done before there is one: the guest waits behind its walls;
- a wall that was asked for and can't stand is an `OSError`, and the code does not begin;
- the guest gets its code once all walls stand, and they stand for all that it starts.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]
import posix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DIES_WITH_PARENT, DUMPABLE, NO_NEW_PRIVILEGES, DROP_BOUND = 1, 4, 38, 24
CAPABILITIES, LAST_CAPABILITY = 0x20080522, 63
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
PATH_ONLY = 0x280000
ENVIRONMENT = 47  # where it begins, counted from the state of a process
STORAGE, LOWER = b"/dev/.storage", b"/dev/.lower"
CHANNEL, ORDER, GROUPS = 4, 5, 6  # of what a run is given; before them come control and three streams
SHARED = (b"/tmp", b"/dev/shm")
REAPED_EACH = 100  # milliseconds
NOTHING_ODD = 2 | 4 | 8  # no rights by programs, no devices, nothing to execute


def enter(launcher: dict[str, Any], hand: int, modules: dict[str, dict[str, Any]]) -> int:
    """Live as the first process of a room, and end this process; returns in the guest alone, its channel."""
    orders, problem, guest = modules["orders"], None, 0
    to_guest, order_of_guest = orders["pair"]()
    kept: list[int] = []
    try:
        _make(launcher, modules["system"], kept)
        guest = posix.fork()
        if guest == 0:
            to_guest.close()
            for fd in (hand, *kept):
                posix.close(fd)
            return _begin(launcher, order_of_guest.detach(), modules)
        modules["system"]["call"]("be untouchable", "prctl", DUMPABLE, 0, 0, 0, 0)
    except OSError as found:
        problem = found  # whoever wants the room is told
    order_of_guest.close()
    ends = orders["receive"](hand, launcher["host"])
    control = orders["socket"](ends[0])
    try:
        control.send(b"taken\n")
        if problem is not None:
            raise problem
        _join(ends[GROUPS:])
        orders["give"](control, kept, b"furnished %d\n" % len(kept))
        orders["give"](to_guest, ends)
        to_guest.close()
        for fd in (*kept, *ends[1:]):
            posix.close(fd)
        used = modules["used"]["Used"](guest)
        _outlast(control, launcher["host"], guest, used)
        control.send(b"ended %d %d %f\n" % (used.status, used.peak, used.time))
    except OSError as found:
        _fail(control, found)
    posix._exit(0)


def _fail(control: Any, problem: OSError) -> None:
    reason = problem.strerror or str(problem)
    try:  # noqa: SIM105 - contextlib is not there
        control.send(b"failed " + reason.replace("\n", " ").encode("utf-8", "replace")[:900] + b"\n")
    except OSError:
        pass  # nobody is there to hear it


def _join(groups: list[int]) -> None:
    """Be in the control groups of the run."""
    for group in groups:
        posix.write(group, b"0")


def _make(launcher: dict[str, Any], system: dict[str, Any], kept: list[int]) -> None:
    """Make the room; `kept` gets descriptors of its storage, and of what counts in it."""
    call = system["call"]
    call("be killed with its launcher", "prctl", DIES_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
    if launcher["users"]:
        _map_users(launcher["user"], launcher["me"])
    kept += _furnish(launcher, system)
    _become_nobody(launcher, call)
    call("be killed with its launcher", "prctl", DIES_WITH_PARENT, signal.SIGKILL, 0, 0, 0)


def _map_users(user: int, mine: tuple[int, int]) -> None:
    """Be one user, who is nobody inside, and no other."""
    _write("/proc/self/setgroups", b"deny")
    _write("/proc/self/uid_map", b"%d %d 1" % (user, mine[0]))
    _write("/proc/self/gid_map", b"%d %d 1" % (user, mine[1]))


def _furnish(launcher: dict[str, Any], system: dict[str, Any]) -> list[int]:
    """Give the room its own storage, processes and name; return descriptors of it, and of what counts."""
    system["call"]("have a name", "sethostname", b"licet", 5)
    system["mount"](b"tmpfs", STORAGE, NOTHING_ODD, launcher["storage"])
    covers = [(_found(system, kind, path), kind, path, counts) for kind, path, counts in launcher["covers"]]
    written, lowers = [posix.open(STORAGE, posix.O_RDONLY | posix.O_DIRECTORY | 0x80000)], 0
    for number, (there, kind, path, counts) in enumerate(covers):
        place = STORAGE + b"/%d" % number
        _ensure(path, folder=posix.stat(there).st_mode & 0o170000 == 0o040000)
        if kind == "keep":
            system["attach"](there, path)
            continue
        if kind == "folder":
            posix.close(there)
            continue
        _own_folder(launcher, place, 0o1777 if path in SHARED else 0o755)
        if kind in ("overlay", "seal"):
            _overlay(launcher, system, lowers, place, path, sealed=kind == "seal")
            lowers += 1
        elif kind == "bare":
            system["bind"](place, path)
        else:
            _copy(launcher, there, place, path, system, full=kind == "file")
        if counts:
            upper = place + b"/upper" if kind == "overlay" else place
            written.append(posix.open(upper, posix.O_RDONLY | posix.O_DIRECTORY | 0x80000))
        posix.close(there)
    system["mount"](b"proc", b"/proc", NOTHING_ODD, b"subset=pid")
    system["unmount"](STORAGE)
    if lowers:
        system["mount"](b"tmpfs", LOWER, NOTHING_ODD | 1, b"size=4k,mode=0")
    return written


def _found(system: dict[str, Any], kind: str, path: bytes) -> int:
    """What stands at `path` before anything covers it: what is to be shown again, or to be looked at."""
    fd: int = system["tree"](path) if kind == "keep" else posix.open(path, PATH_ONLY)
    return fd


def _own_folder(launcher: dict[str, Any], path: bytes, mode: int) -> None:
    posix.mkdir(path)
    posix.chmod(path, mode)
    if not launcher["users"]:
        posix.chown(path, launcher["user"], launcher["user"])


def _overlay(
    launcher: dict[str, Any], system: dict[str, Any], lower: int, place: bytes, path: bytes, *, sealed: bool
) -> None:
    """Lay a layer over a folder: one to write to, or a `sealed` one, whose named pipes lead nowhere."""
    options = b"lowerdir=%s/%d" % (LOWER, lower)
    if sealed:
        options += b":" + place
    else:
        for name in (b"/upper", b"/work"):
            _own_folder(launcher, place + name, 0o755)
        options += b",upperdir=%s/upper,workdir=%s/work" % (place, place)
    system["mount"](b"overlay", path, 1 | 2 | 4 if sealed else 2 | 4, options + b",userxattr")


def _copy(
    launcher: dict[str, Any], source: int, place: bytes, path: bytes, system: dict[str, Any], *, full: bool
) -> None:
    """Let a single file be written: a copy, in the place of what is there."""
    copy = place + b"/" + path.rpartition(b"/")[2]
    there = posix.open(copy, posix.O_WRONLY | posix.O_CREAT | 0x80000, 0o644)
    if full:
        here = posix.open(b"/proc/self/fd/%d" % source, posix.O_RDONLY | 0x80000)
        while posix.sendfile(there, here, None, 1 << 24):
            pass
        posix.close(here)
    if not launcher["users"]:
        posix.chown(there, launcher["user"], launcher["user"])
    posix.close(there)
    system["bind"](copy, path)


def _ensure(path: bytes, *, folder: bool) -> None:
    """Make sure that there is something to mount at, where another mount has covered what was there."""
    steps = path.split(b"/")[1:]
    for count in range(1, len(steps) + (1 if folder else 0)):
        try:  # noqa: SIM105
            posix.mkdir(b"/" + b"/".join(steps[:count]), 0o755)
        except OSError:
            pass  # it is there, or mounting will tell
    if not folder:
        try:  # noqa: SIM105
            posix.close(posix.open(path, posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL | 0x80000, 0o644))
        except OSError:
            pass


def _become_nobody(launcher: dict[str, Any], call: Any) -> None:
    """Give up every right, for good."""
    for capability in range(LAST_CAPABILITY + 1):
        try:
            call("renounce a capability", "prctl", DROP_BOUND, capability, 0, 0, 0)
        except OSError:
            break  # the kernel has no more of them
    if not launcher["users"]:
        posix.setgroups([])
        posix.setresgid(*[launcher["user"]] * 3)
        posix.setresuid(*[launcher["user"]] * 3)
    call("renounce new privileges", "prctl", NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    header = CAPABILITIES.to_bytes(4, "little") + bytes(4)
    call("give up its capabilities", "capset", header, bytes(24))


def _begin(launcher: dict[str, Any], hand: int, modules: dict[str, dict[str, Any]]) -> int:
    """Be the guest: go behind the walls, wait for the run, and return where its code comes from."""
    problem, listener = None, None
    try:
        listener = _go_behind(launcher, modules["system"])
    except OSError as found:
        problem = found
    ends = modules["orders"]["receive"](hand, launcher["host"])
    control = modules["orders"]["socket"](ends[0])
    try:
        if problem is not None:
            raise problem
        _settle(modules["orders"]["read"](ends[ORDER]), ends, modules["system"]["call"])
    except OSError as found:
        _fail(control, found)
        posix._exit(0)
    walls = b"ready " + ", ".join(launcher["walls"]).encode() + b"\n"
    listeners = [] if listener is None else [listener]
    modules["orders"]["give"](control, listeners, walls)
    control.close()
    for fd in (*listeners, *launcher["host"]):
        posix.close(fd)
    channel: int = ends[CHANNEL]
    return channel


def _go_behind(launcher: dict[str, Any], system: dict[str, Any]) -> int | None:
    """Go behind every wall that does not depend on the run; return the listener, if there is one."""
    call = system["call"]
    posix.setsid()
    for number in (signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    call("be killed with its room", "prctl", DIES_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
    call("see itself", "prctl", DUMPABLE, 1, 0, 0, 0)
    try:  # noqa: SIM105 - contextlib is not there
        _write("/proc/self/oom_score_adj", b"1000")
    except OSError:
        pass  # where it can't be the first victim, all of its room may be
    posix.chdir(launcher["workdir"])
    posix.umask(0o022)
    _confine(launcher, call)
    words = launcher["filter"]
    return None if words is None else _filter(launcher, words, system)


def _settle(order: dict[str, Any], ends: list[int], call: Any) -> None:
    """Take what is this run's own: its groups, streams, limits and variables."""
    import resource

    _join(ends[GROUPS:])
    for number, fd in enumerate(ends[1:CHANNEL]):
        posix.dup2(fd, number)
    for fd in (*ends[1:CHANNEL], *ends[ORDER:]):
        posix.close(fd)
    for kind, bounds in order["limits"].items():
        resource.setrlimit(kind, bounds)
    _feel_at_home(order["environment"], call)


def _write(path: str, text: bytes) -> None:
    fd = posix.open(path, posix.O_WRONLY)
    try:
        posix.write(fd, text)
    finally:
        posix.close(fd)


def _feel_at_home(variables: dict[bytes, bytes], call: Any) -> None:
    """Have exactly the variables of the run, and show them where the system shows those of a process."""
    import os

    for name in tuple(os.environb):
        del os.environb[name]
    for name, value in variables.items():
        os.environb[name] = value
    posix.environ.clear()
    posix.environ.update(variables)
    with open("/proc/self/stat", "rb") as file:  # noqa: PTH123
        fields = file.read().rpartition(b")")[2].split()
    start, end = int(fields[ENVIRONMENT]), int(fields[ENVIRONMENT + 1])
    shown = b"".join(b"%s=%s\0" % pair for pair in variables.items())[: end - start]
    call("show its variables", "memcpy", start, shown + bytes(end - start - len(shown)), end - start)


def _confine(launcher: dict[str, Any], call: Any) -> None:
    """Stand behind Landlock, where there is any: files by path, TCP, signals, abstract sockets."""
    if launcher["ruleset"] is None:
        return
    ruleset = call("make a wall round files", "syscall", CREATE_RULESET, launcher["ruleset"],
                   len(launcher["ruleset"]), 0)  # fmt: skip
    for rights, path in launcher["rules"]:
        try:
            fd = posix.open(path, PATH_ONLY)
        except OSError:
            continue  # what is not there needs no rule
        folder = posix.stat(fd).st_mode & 0o170000 == 0o040000
        granted = rights if folder else rights & launcher["of_files"]
        rule = granted.to_bytes(8, "little") + fd.to_bytes(4, "little")
        call("open a path in that wall", "syscall", ADD_RULE, ruleset, 1, rule, 0)
        posix.close(fd)
    call("go behind a wall round files", "syscall", RESTRICT_SELF, ruleset, 0)
    posix.close(ruleset)


def _filter(launcher: dict[str, Any], words: tuple[int, bytes], system: dict[str, Any]) -> int | None:
    """Let nothing through but the system calls that are listed."""
    count, lines = words
    block = system["block"](lines)
    program = count.to_bytes(2, "little") + bytes(6) + system["address"](block).to_bytes(8, "little")
    flags = launcher["listening"]  # a listener for what the host answers
    found: int = system["call"]("filter its system calls", "syscall", launcher["seccomp"], 1, flags, program)
    return found if flags else None


def _outlast(control: Any, host: list[int], guest: int, used: Any) -> None:
    """Wait until the guest ends, or who has it run; then for the end of everything else in the room."""
    import select

    poll = select.poll()
    death = posix.pidfd_open(guest)
    for fd in (control.fileno(), death, *host):
        poll.register(fd, select.POLLIN)
    try:
        while used.status is None and not poll.poll(REAPED_EACH):
            while used.reap():
                pass
        posix.kill(-1, signal.SIGKILL)
        while True:
            if not used.reap():
                poll.poll(1)
    except (ChildProcessError, ProcessLookupError):
        pass
    posix.close(death)
