"""The keeper: the process between host and guest that no descendant of the guest outlives.

It runs in the child, sent by the host, before any code of the guest. Rules this module keeps:

- the keeper is the subreaper of its tree: whoever loses its parent becomes the keeper's child;
- it ends the tree when the guest ends, when the host says so or closes the control socket, and when the
  host dies, whatever else still holds the socket open;
- it reports the end only after no descendant is left;
- it imports built-in modules and three small extensions; anything more costs the start of every run.
"""

from __future__ import annotations

import gc
import posix
import select
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

SIGHUP, SIGINT, SIGKILL, SIGTERM = 1, 2, 9, 15
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 4, 36, 38
LANDLOCK_CREATE_RULESET, LANDLOCK_RESTRICT_SELF = 444, 446  # the same on every architecture
LANDLOCK_SCOPE_SIGNAL = 2


def start(settings: dict[str, Any]) -> list[str]:
    """Fork the guest. Returns in the guest alone, with the walls that are up; the keeper never returns."""
    control = settings["control"]
    try:
        posix.fchdir(settings["workdir"])
        posix.close(settings["workdir"])
        linux = sys.platform == "linux"
        call = _libc() if linux else None
        if call is not None:
            _must(call("prctl", PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "become the reaper of its tree")
        host = _watch(settings["host"], posix.getppid()) if linux else None
        keeper = posix.getpid()
        gc.freeze()  # spares the guest a copy of every page that its collector would touch
        guest = posix.fork()
    except OSError as problem:
        _say(control, f"failed {problem.strerror}\n")
        posix._exit(0)
    if guest == 0:
        posix.close(control)
        if host is not None:
            posix.close(host)
        return _become_guest(settings, call, keeper)
    try:
        for fd in (0, 1, 2, settings["channel"]):
            posix.close(fd)
        _harden(call)
        _say(control, f"started {guest}\n")
        status = _await_end(control, host, guest)
        status = _sweep(guest, status)
        _say(control, f"ended {status} {_peak_memory()}\n")
    finally:
        posix._exit(0)


def _become_guest(settings: dict[str, Any], call: Callable[..., int] | None, keeper: int) -> list[str]:
    """Put up the walls of the guest, in the guest; it dies if one that was asked for can't stand."""
    applied = ["own session"]
    posix.setsid()
    posix.set_inheritable(settings["channel"], False)
    if call is not None:
        _must(call("prctl", PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0), "be killed with its keeper")
        if posix.getppid() != keeper:
            posix._exit(1)
        _must(call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "renounce new privileges")
        applied += ["subreaper", "no new privileges"]
    limits = settings["limits"]
    if limits:
        import resource

        for kind, (soft, hard) in limits.items():
            resource.setrlimit(kind, (soft, hard))
            applied.append(f"limit {kind} at {soft}")
    if settings["confine_signals"]:
        _confine_signals(call)
        applied.append("signals confined")
    return applied


def _confine_signals(call: Callable[..., int] | None) -> None:
    """Let the guest neither signal nor trace a process outside its own tree (Landlock scope)."""
    if call is None:
        raise OSError(38, "this system can't confine signals")
    ruleset = bytes(16) + LANDLOCK_SCOPE_SIGNAL.to_bytes(8, sys.byteorder)
    fd = call("syscall", LANDLOCK_CREATE_RULESET, ruleset, len(ruleset), 0)
    _must(fd, "confine signals")
    _must(call("syscall", LANDLOCK_RESTRICT_SELF, fd, 0), "confine signals")
    posix.close(fd)


def _libc() -> Callable[..., int]:
    """Return a caller of C functions; `_ctypes` alone costs a tenth of `ctypes`."""
    import _ctypes

    library = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]

    def call(name: str, *args: int | bytes) -> int:
        result: int = _ctypes.call_function(_ctypes.dlsym(library, name), args)
        return result

    return call


def _must(result: int, what: str) -> None:
    if result < 0:
        raise OSError(1, f"the process could not {what}")


def _watch(host: int, parent: int) -> int:
    """Open a descriptor that is readable once the host is dead."""
    fd = posix.pidfd_open(host)
    if parent != host:
        posix._exit(0)
    return fd


def _harden(call: Callable[..., int] | None) -> None:
    """Make the keeper deaf to polite signals, and its `/proc` entries unwritable for its own user."""
    import _signal  # type: ignore[import-not-found]

    for number in (SIGHUP, SIGINT, SIGTERM):
        _signal.signal(number, _signal.SIG_IGN)
    if call is not None:
        call("prctl", PR_SET_DUMPABLE, 0, 0, 0, 0)


def _await_end(control: int, host: int | None, guest: int) -> int | None:
    """Wait until the guest ends, or the host ends it, or the host dies; give the status if it was reaped."""
    poll = select.poll()
    poll.register(control, select.POLLIN)
    if host is not None:
        poll.register(host, select.POLLIN)
        poll.register(posix.pidfd_open(guest), select.POLLIN)
        poll.poll()
        return None
    while not poll.poll(20):
        pid, status = posix.waitpid(guest, posix.WNOHANG)
        if pid:
            return status
    return None


def _sweep(guest: int, status: int | None) -> int:
    """Kill and reap until no child is left; orphans become children, so this reaches every descendant.

    A process that forks and exits faster than it is found is caught in the end only if each look is short:
    the dead are taken away before every look, and the youngest is struck first.
    """
    _kill(-guest)
    if status is None:
        _kill(guest)
    pause = select.poll()
    try:
        while True:
            reaped = 0
            while (found := posix.waitpid(-1, posix.WNOHANG))[0]:
                reaped += 1
                if found[0] == guest:
                    status = found[1]
            for child in reversed(_children()):
                _kill(child)
            if not reaped:
                pause.poll(1)
    except ChildProcessError:
        return status if status is not None else SIGKILL


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
        posix.kill(pid, SIGKILL)
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


def _peak_memory() -> int:
    """Bytes of the largest process of the tree; the keeper's own figure would count its parent's."""
    import resource

    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _say(control: int, line: str) -> None:
    try:  # noqa: SIM105
        posix.write(control, line.encode())
    except OSError:
        pass  # the host is gone; the tree ends all the same
