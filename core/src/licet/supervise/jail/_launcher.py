"""A launcher: a clean interpreter behind walls of its own, which has each run begin in a fork of itself.

It runs in a child of the host, sent by the host. Rules this module keeps:

- it has seen no code and no secret: its environment is empty, and what it forks is as it was born, but for
  modules of the library that were imported ahead;
- it lives in the root that its runs have, as nobody, without privileges and without a network;
- it ends when the host closes its socket or dies, and each room it made ends with it.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]
import gc
import marshal
import posix
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NEW_USERS, NEW_MOUNTS, NEW_PROCESSES = 0x10000000, 0x20000, 0x20000000
NEW_APART = 0x40000000 | 0x8000000 | 0x4000000  # network, shared memory, names
CHILD_ENDED = 17
DUMPABLE, NO_NEW_PRIVILEGES = 4, 38
SCOPES = 3
CAPABILITIES = 0x20080522
NEEDED = (0, 1, 3, 6, 7, 8, 21)  # owners, users, groups, the bound of capabilities, mounts and namespaces
MOST_ENDS = 16
LONGEST_IDLE = 30  # seconds
MOST_ORDER = 1 << 16


def main(settings: dict[str, Any], modules: dict[str, dict[str, Any]]) -> int:
    """Serve runs until the host is done. Returns in a guest alone: where it finds its code."""
    import _socket

    posix.close(int(sys.argv[1]))
    control = _socket.socket(fileno=int(sys.argv[2]))
    settings["host"] = host = [int(sys.argv[3])]
    for fd in (control.fileno(), *host):
        posix.set_inheritable(fd, False)
    try:
        _withdraw(settings, modules)
    except OSError as problem:
        control.send(b"failed " + (problem.strerror or str(problem)).encode("utf-8", "replace")[:900])
        posix._exit(0)
    control.send(b"ready")
    flags = NEW_MOUNTS | NEW_PROCESSES | NEW_APART | (NEW_USERS if settings["users"] else 0) | CHILD_ENDED
    clone, ahead = modules["system"]["call"], list(settings["ahead"])
    gc.disable()
    gc.freeze()
    while True:
        order, ends = _next(control, host[0], ahead)
        try:
            room = clone("make a room", "syscall", settings["clone"], flags, 0, 0, 0, 0)
        except OSError as problem:
            _refuse(ends[0], problem)
            room = -1
        if room == 0:
            control.close()
            channel: int = modules["room"]["enter"](settings, order, ends, modules)
            gc.enable()
            sys.argv[1:] = [str(channel)]
            return channel
        for fd in ends:
            posix.close(fd)


def _withdraw(settings: dict[str, Any], modules: dict[str, dict[str, Any]]) -> None:
    """Leave the host's namespaces, root, rights and signals behind."""
    system = modules["system"]
    call, user = system["call"], settings["user"]
    maps = None
    if settings["root"]:
        call("leave the host's namespaces", "unshare", NEW_MOUNTS | NEW_APART)
        if settings["users"]:
            maps = _owner_map(modules, settings["outside"])
    else:
        me = posix.getuid(), posix.getgid()
        call("leave the host's namespaces", "unshare", NEW_USERS | NEW_MOUNTS | NEW_APART)
        modules["room"]["_map_users"](user, me)
    modules["root"]["build"](settings, system, maps)
    if maps is not None:
        posix.close(maps)
    if settings["root"] and settings["users"]:
        posix.setgroups([])
        posix.setresgid(*[settings["outside"]] * 3)
        posix.setresuid(*[settings["outside"]] * 3)
        call("see itself", "prctl", DUMPABLE, 1, 0, 0, 0)
    if not settings["users"]:
        header = CAPABILITIES.to_bytes(4, "little") + bytes(4)
        kept = sum(1 << capability for capability in NEEDED).to_bytes(4, "little")
        call("give up capabilities", "capset", header, kept + kept + bytes(16))
    call("renounce new privileges", "prctl", NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    settings["me"] = posix.getuid(), posix.getgid()
    if settings["scopes"] is not None:
        modules["room"]["_confine"]({"ruleset": settings["scopes"], "rules": ()}, call)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def _owner_map(modules: dict[str, dict[str, Any]], outside: int) -> int:
    """A map by which what belongs to root is shown as the code's own."""
    reader, writer = posix.pipe()
    child = posix.fork()
    if child == 0:
        try:
            modules["system"]["call"]("map owners", "unshare", NEW_USERS)
            posix.write(writer, b"x")
            posix.read(reader, 1)  # until it is killed
        finally:
            posix._exit(0)
    posix.close(writer)
    try:
        posix.read(reader, 1)
        for kind in ("uid_map", "gid_map"):
            modules["room"]["_write"](f"/proc/{child}/{kind}", b"0 %d 1" % outside)
        return posix.open(f"/proc/{child}/ns/user", posix.O_RDONLY | 0x80000)
    finally:
        posix.close(reader)
        posix.kill(child, signal.SIGKILL)
        posix.waitpid(child, 0)


def _next(control: Any, host: int, ahead: list[str]) -> tuple[dict[str, Any], list[int]]:
    """Wait for the next order, and bury rooms that ended; ends this process if there will be none."""
    import select

    poll = select.poll()
    for fd in (control.fileno(), host):
        poll.register(fd, select.POLLIN)
    idle = 0
    while True:
        ready = poll.poll(0 if ahead else 1000)
        alive = _bury()
        if ready:
            break
        idle = 0 if alive else idle + 1
        if idle > LONGEST_IDLE:
            posix._exit(0)
        if ahead:
            try:  # noqa: SIM105 - contextlib is not there
                __import__(ahead.pop(0))
            except ImportError:
                pass
            if not ahead:
                gc.freeze()
    if ready != [(control.fileno(), select.POLLIN)]:
        posix._exit(0)
    data, ancillary, _, _ = control.recvmsg(MOST_ORDER, 4 * MOST_ENDS + 64, 0x40000000)
    if not data or not ancillary:
        posix._exit(0)
    packed = ancillary[0][2]
    ends = [int.from_bytes(packed[at : at + 4], "little") for at in range(0, len(packed), 4)]
    return marshal.loads(data), ends


def _bury() -> bool:
    """Bury rooms that ended; whether one is left."""
    try:
        while posix.waitpid(-1, posix.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _refuse(control: int, problem: OSError) -> None:
    try:  # noqa: SIM105
        posix.write(control, b"failed " + str(problem.strerror).encode("utf-8", "replace") + b"\n")
    except OSError:
        pass  # nobody is there to hear it
