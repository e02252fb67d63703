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
import posix
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NEW_USERS, NEW_MOUNTS, NEW_PROCESSES = 0x10000000, 0x20000, 0x20000000
NEW_APART = 0x40000000 | 0x8000000 | 0x4000000  # network, shared memory, names
NEW_CGROUPS = 0x2000000
CHILD_ENDED = 17
DUMPABLE, NO_NEW_PRIVILEGES = 4, 38
CAPABILITIES = 0x20080522
NEEDED = (0, 1, 3, 6, 7, 8, 21)  # owners, users, groups, the bound of capabilities, mounts and namespaces
LONGEST_IDLE = 30  # seconds


def main(settings: dict[str, Any], modules: dict[str, dict[str, Any]]) -> int:
    """Serve runs until the host is done. Returns in a guest alone: where it finds its code."""
    orders = modules["orders"]
    posix.close(int(sys.argv[1]))
    control = orders["socket"](int(sys.argv[2]))
    settings["host"] = host = [int(sys.argv[3])]
    for fd in (control.fileno(), *host):
        posix.set_inheritable(fd, False)
    try:
        _withdraw(settings, modules)
    except OSError as problem:
        control.send(b"failed " + (problem.strerror or str(problem)).encode("utf-8", "replace")[:900])
        posix._exit(0)
    control.send(b"ready")
    gc.disable()
    gc.freeze()
    rooms = Rooms(settings, modules, control)
    while rooms.ready():
        ends = orders["take"](control)
        try:
            rooms.give(ends)
        except OSError as problem:
            _refuse(ends[0], problem)
        for fd in ends:
            posix.close(fd)
    gc.enable()
    sys.argv[1:] = [str(rooms.channel)]
    return rooms.channel or 0


class Rooms:
    """The rooms of a launcher: at most one waits for its run, and is made while nobody waits for it.

    `channel` is set in a guest: where it finds its code.
    """

    def __init__(self, settings: dict[str, Any], modules: dict[str, dict[str, Any]], control: Any) -> None:
        self.channel: int | None = None
        self._settings, self._modules, self._control = settings, modules, control
        self._ahead = list(settings["ahead"])
        self._waiting: tuple[int, Any] | None = None
        self._rooms: set[int] = set()
        self._used = False
        self._problem: OSError | None = None
        users = NEW_USERS if settings["users"] else 0
        self._flags = NEW_MOUNTS | NEW_PROCESSES | NEW_APART | NEW_CGROUPS | users | CHILD_ENDED

    def ready(self) -> bool:
        """Wait until there is an order and a room for it; False in a guest. Ends this process if nobody asks.

        The room is made before the order is taken, so that nothing of a run is in it but what it is given.
        """
        import select

        poll, host = select.poll(), self._settings["host"][0]
        for fd in (self._control.fileno(), host):
            poll.register(fd, select.POLLIN)
        idle = 0
        while not (events := poll.poll(0 if self._can_prepare() else 1000)):
            self._bury()
            if self._can_prepare():
                self._prepare()
            else:
                idle = 0 if self._rooms else idle + 1
            if self.channel is not None:
                return False
            if idle > LONGEST_IDLE:
                posix._exit(0)
        self._bury()
        if events != [(self._control.fileno(), select.POLLIN)]:
            posix._exit(0)
        self._used = True
        self._try_to_make()
        return self.channel is None

    def give(self, ends: list[int]) -> None:
        """Give an order to the room that waits.

        Raises:
            OSError: there is none, and why.
        """
        if self._waiting is None:
            raise self._problem or OSError(32, "the room ended before it was used")
        room, hand = self._waiting
        self._waiting = None
        self._rooms.add(room)
        try:
            self._modules["orders"]["give"](hand, ends)
        finally:
            hand.close()

    def _can_prepare(self) -> bool:
        return (
            self._settings["warm"]
            and self._used
            and bool(self._ahead or (self._waiting is None and self._problem is None))
        )

    def _prepare(self) -> None:
        """Do one thing ahead: import a module, or make a room."""
        if not self._ahead:
            self._try_to_make()
            return
        try:  # noqa: SIM105 - contextlib is not there
            __import__(self._ahead.pop(0))
        except ImportError:
            pass
        if not self._ahead:
            gc.freeze()

    def _try_to_make(self) -> None:
        if self._waiting is None:
            try:
                self._make()
                self._problem = None
            except OSError as problem:
                self._problem = problem

    def _make(self) -> None:
        """Make a room; returns in its guest as well."""
        ours, theirs = self._modules["orders"]["pair"]()
        call = self._modules["system"]["call"]
        room = call("make a room", "syscall", self._settings["clone"], self._flags, 0, 0, 0, 0)
        if room == 0:
            self._control.close()
            ours.close()
            self.channel = self._modules["room"]["enter"](self._settings, theirs.detach(), self._modules)
        else:
            theirs.close()
            self._waiting = room, ours

    def _bury(self) -> None:
        """Bury rooms that ended."""
        try:
            while (gone := posix.waitpid(-1, posix.WNOHANG)[0]) != 0:
                self._rooms.discard(gone)
                if self._waiting is not None and self._waiting[0] == gone:
                    self._waiting[1].close()
                    self._waiting = None
        except ChildProcessError:
            self._rooms.clear()


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


def _refuse(control: int, problem: OSError) -> None:
    try:  # noqa: SIM105
        posix.write(control, b"failed " + str(problem.strerror).encode("utf-8", "replace") + b"\n")
    except OSError:
        pass  # nobody is there to hear it
