"""What a guest goes through between its birth as a fork of its keeper and its code.

It runs in the child, sent by the host. Rules this module keeps:

- a wall that was asked for and can't stand is an `OSError`, and the code does not begin;
- a guest that goes on in an interpreter of its own takes nothing of this process into it but its walls, the
  descriptors of its run, and the dispositions of signals that its keeper was born with.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]
import posix
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS = 1, 38
LANDLOCK_CREATE_RULESET, LANDLOCK_RESTRICT_SELF = 444, 446  # the same on every architecture
LANDLOCK_SCOPE_SIGNAL = 2
RESTORED = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ)


def put_up(settings: dict[str, Any], workdir: int, call: Callable[..., int] | None, keeper: int) -> list[str]:
    """Confine this process to what `settings` leave it; return the walls that stand."""
    walls = ["own session"]
    posix.setsid()
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    posix.fchdir(workdir)
    if call is not None:
        must(call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "be killed with its keeper")
        if posix.getppid() != keeper:
            posix._exit(1)
        must(call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "renounce new privileges")
        walls += ["subreaper", "no new privileges"]
    limits = settings["limits"]
    if limits:
        import resource

        for kind, (soft, hard) in limits.items():
            resource.setrlimit(kind, (soft, hard))
            walls.append(f"limit {kind} at {soft}")
    if settings["confine_signals"]:
        _confine_signals(call)
        walls.append("signals confined")
    return walls


def execute(settings: dict[str, Any], ends: tuple[int, ...], ignored: set[int]) -> None:
    """Replace this process by the program to run; returns if the guest goes on in this interpreter."""
    argv, channel = settings["argv"], ends[3]
    if argv is None:
        return
    for number in RESTORED:
        signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)
    for number, fd in enumerate(ends[:3]):
        if fd != number:
            posix.dup2(fd, number)
    if settings["reports"]:
        posix.set_inheritable(channel, True)
        argv = [*argv, str(channel)]
    try:
        posix.execve(argv[0], argv, settings["environment"])
    except OSError as problem:
        why = (problem.strerror or "").lower()
        raise OSError(problem.errno, f"`{argv[0]}` can't be started: {why}") from None


def _confine_signals(call: Callable[..., int] | None) -> None:
    """Let the guest neither signal nor trace a process outside its own tree (Landlock scope)."""
    if call is None:
        raise OSError(38, "this system can't confine signals")
    ruleset = bytes(16) + LANDLOCK_SCOPE_SIGNAL.to_bytes(8, sys.byteorder)
    fd = call("syscall", LANDLOCK_CREATE_RULESET, ruleset, len(ruleset), 0)
    must(fd, "confine signals")
    must(call("syscall", LANDLOCK_RESTRICT_SELF, fd, 0), "confine signals")
    posix.close(fd)


def libc() -> Callable[..., int] | None:
    """Return a caller of C functions, None where none is called; `_ctypes` costs a tenth of `ctypes`."""
    if sys.platform != "linux":
        return None
    import _ctypes

    library = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]

    def call(name: str, *args: int | bytes) -> int:
        result: int = _ctypes.call_function(_ctypes.dlsym(library, name), args)
        return result

    return call


def must(result: int, what: str) -> None:
    """Raise `OSError` if a call has failed."""
    if result < 0:
        raise OSError(1, f"the process could not {what}")
