"""The keeper: the process between host and guest that no descendant of the guest outlives.

It runs in the child, sent by the host, before any code of the guest. Rules this module keeps:

- the keeper is the subreaper of its tree: whoever loses its parent becomes the keeper's child;
- it ends the tree when the guest ends, when the host says so or closes the control socket, and when the
  host dies, whatever else still holds the socket open;
- it reports the end only after no descendant is left;
- it reads nothing of the code. The guest of its first run goes on in a fork of its interpreter, which has no
  past; every further guest gets an interpreter of its own;
- it imports built-in modules and a few small extensions; anything more costs the start of every run.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]
import gc
import posix
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 4, 36


def main(settings: dict[str, Any], modules: dict[str, dict[str, Any]]) -> int:
    """Keep one run, or one after the other. Returns in a guest alone: where it finds its orders."""
    control, channel, workdir, *host = [int(number) for number in sys.argv[1:]]
    for fd in (control, channel, workdir, *host):
        posix.set_inheritable(fd, False)
    walls, standby, own = modules["walls"], None, 0.0
    ends: tuple[int, ...] = (0, 1, 2, channel, workdir)
    try:
        call = walls["libc"]()
        if call is not None:
            walls["must"](call("prctl", PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "become the reaper of its tree")
        if settings["standby"] is not None:
            standby = modules["standby"]["Standby"](control, host, modules["loader"]["read"])
        polite = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
        ignored = {number for number in polite if signal.getsignal(number) == signal.SIG_IGN}
        gc.freeze()  # spares the guest a copy of every page that its collector would touch
        while True:
            keeper = posix.getpid()
            guest = posix.fork()
            if guest == 0:
                stand = walls["put_up"](settings, ends[4], call, keeper)
                _say(control, f"ready {', '.join(stand)}\n")
                walls["execute"](settings, ends, ignored)
                for fd in (control, workdir, *host):
                    posix.close(fd)
                sys.argv[1:] = [str(channel)]
                return channel
            _let_go(ends)
            _harden(call)
            _say(control, f"started {guest}\n")
            used = _outlast(control, host, guest, modules["used"]["Used"](guest))
            own, before = _own_time(), own
            _say(control, f"ended {used.status} {used.peak} {used.time + own - before}\n")
            if standby is None:
                break
            settings, ends = standby.next(settings["standby"])
    except OSError as problem:
        _say(control, "failed " + str(problem.strerror).replace("\n", " ") + "\n")
    posix._exit(0)


def _let_go(ends: tuple[int, ...]) -> None:
    """Keep nothing open of the run."""
    if ends[0] == 0:
        null = posix.open("/dev/null", posix.O_RDWR)
        for fd in (0, 1, 2):
            posix.dup2(null, fd, False)
        ends = (null, *ends[3:])
    for fd in ends:
        posix.close(fd)


def _harden(call: Callable[..., int] | None) -> None:
    """Make the keeper deaf to polite signals, and its `/proc` entries unwritable for its own user."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    if call is not None:
        call("prctl", PR_SET_DUMPABLE, 0, 0, 0, 0)


def _outlast(control: int, host: list[int], guest: int, used: Any) -> Any:
    """Wait for the end of the guest and of its tree; say what they have used."""
    import resource  # noqa: F401 - while the guest begins; `wait4` needs it at the end

    _await_end(control, host, guest, used)
    _sweep(guest, used)
    return used


def _own_time() -> float:
    """Seconds that this keeper has used so far."""
    import resource

    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _await_end(control: int, host: list[int], guest: int, used: Any) -> None:
    """Wait until the guest ends, or the host ends it, or the host dies."""
    import select

    poll = select.poll()
    poll.register(control, select.POLLIN)
    if host:
        death = posix.pidfd_open(guest)
        poll.register(host[0], select.POLLIN)
        poll.register(death, select.POLLIN)
        poll.poll()
        posix.close(death)
        return
    while used.status is None and not poll.poll(20):
        used.reap()


def _sweep(guest: int, used: Any) -> None:
    """Kill and reap until no child is left; orphans become children, so this reaches every descendant.

    A process that forks and exits faster than it is found is caught in the end only if each look is short:
    the dead are taken away before every look, and the youngest is struck first.
    """
    import select

    _kill(-guest)
    if used.status is None:
        _kill(guest)
    pause = select.poll()
    try:
        while True:
            reaped = 0
            while used.reap():
                reaped += 1
            for child in reversed(_children()):
                _kill(child)
            if not reaped:
                pause.poll(1)
    except ChildProcessError:
        if used.status is None:
            used.status = signal.SIGKILL


def _children() -> list[int]:
    me = posix.getpid()
    try:
        return [int(pid) for pid in _read(f"/proc/self/task/{me}/children").split()]
    except FileNotFoundError:
        pass
    children = []
    try:
        for name in posix.listdir("/proc"):
            if name.isdecimal() and _parent(name) == me:
                children.append(int(name))
    except FileNotFoundError:
        pass
    return children


def _parent(pid: str) -> int:
    try:
        return int(_read(f"/proc/{pid}/stat").rpartition(b")")[2].split()[1])
    except (OSError, IndexError):
        return 0


def _kill(pid: int) -> None:
    try:  # noqa: SIM105 - contextlib is not there
        posix.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def _read(path: str) -> bytes:
    fd = posix.open(path, posix.O_RDONLY)
    data = b""
    try:
        while piece := posix.read(fd, 65536):
            data += piece
    finally:
        posix.close(fd)
    return data


def _say(control: int, line: str) -> None:
    try:  # noqa: SIM105
        posix.write(control, line.encode())
    except OSError:
        pass  # the host is gone; the tree ends all the same
