"""The filter of system calls round a program that computes: what it lets through, in the kernel's own form.

Rules this module keeps:

- a list of what is let through: memory, threads, time, its own signals, descriptors that are open, and
  opening files, which another wall judges. All else is refused, so that a call is never forgotten;
- no socket is made, no process started, none looked into, and no interface to the kernel opened that this
  filter would not see into;
- a refused call fails with EPERM; one that this list is too old to know, and `clone3`, whose flags no filter
  can read, with ENOSYS, so that programs take the older way;
- a call by another calling convention than the machine's own ends the process.
"""

from __future__ import annotations

import struct

from licet.supervise.walls.calls import LAST, number

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

_MEMORY = ("brk", "mmap", "munmap", "mremap", "mprotect", "madvise", "msync", "membarrier")
_THREADS = (
    *("set_tid_address", "set_robust_list", "rseq", "futex", "futex_waitv", "gettid", "sched_yield"),
    *("sched_getaffinity", "sched_getparam", "sched_getscheduler"),
    *("sched_get_priority_max", "sched_get_priority_min", "getpriority", "getcpu"),
    *("arch_prctl", "exit", "exit_group", "restart_syscall"),
)
_TIME = (
    *("clock_gettime", "clock_getres", "clock_nanosleep", "nanosleep"),
    *("gettimeofday", "time", "times", "getitimer"),
)
_SIGNALS = (
    *("rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigpending", "rt_sigtimedwait"),
    *("rt_sigsuspend", "sigaltstack", "pause"),
)
_DESCRIPTORS = (
    *("read", "write", "readv", "writev", "pread64", "pwrite64", "preadv", "pwritev"),
    *("close", "close_range", "dup", "dup2", "dup3", "lseek", "fstat", "fsync", "fdatasync", "fadvise64"),
    *("poll", "ppoll", "select", "pselect6", "epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait"),
    *("eventfd2", "pipe", "pipe2", "getdents64"),
)
_FILES = (
    *("open", "openat", "access", "faccessat", "faccessat2", "stat", "lstat", "newfstatat", "statx"),
    *("readlink", "readlinkat", "getcwd", "chdir", "fchdir", "statfs", "fstatfs"),
)
_ITSELF = (
    *("getpid", "getppid", "getuid", "geteuid", "getgid", "getegid", "getgroups", "getresuid", "getresgid"),
    *("getpgid", "getpgrp", "getsid", "getrusage", "getrlimit", "uname", "sysinfo", "umask", "getrandom"),
    *("capget", "wait4", "waitid"),
    "execve",  # by which the launcher becomes the program; Landlock says which files can be executed
)
PERMITTED = (*_MEMORY, *_THREADS, *_TIME, *_SIGNALS, *_DESCRIPTORS, *_FILES, *_ITSELF)
"""Let through whatever their arguments are."""

OPERATIONS = {
    # name and version of a thread, names of memory; whether new privileges are renounced
    "prctl": (0, (15, 16, 39, 0x53564D41)),
    # duplicate, flags, size of a pipe: none that has signals sent, takes leases or locks
    "fcntl": (1, (0, 1, 2, 3, 4, 1030, 1032)),
    # ask for a terminal, count what can be read, close on exec, do not block
    "ioctl": (1, (0x5401, 0x541B, 0x5421, 0x5450, 0x5451)),
}
"""Let through where an argument, by its place, has one of these values."""

_THREAD, _NAMESPACES = 0x00010000, 0x7E020080
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_LOAD, _IF_EQUAL, _IF_ABOVE, _IF_ANY, _RETURN = 0x20, 0x15, 0x25, 0x45, 0x06
_ALLOW, _KILL, _REFUSE = 0x7FFF0000, 0x80000000, 0x00050000
_EPERM, _ENOSYS = 1, 38

_Line = tuple[int, int, int, int]


def program(machine: str, *, signals: bool) -> tuple[int, bytes]:
    """The filter for `machine`: how many instructions, and what they are.

    `signals` lets a program signal threads, where another wall keeps it from those of others.

    Raises:
        KeyError: the machine is not known here.
    """
    lines: list[_Line] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_IF_EQUAL, 1, 0, ARCHITECTURES[machine]),
        _answer(_KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_IF_ABOVE, 0, 1, LAST),
        _answer(_REFUSE | _ENOSYS),
    ]
    for name in (*PERMITTED, *(("tgkill",) if signals else ())):
        lines += _block(name, machine, [_answer(_ALLOW)])
    for name, (place, values) in OPERATIONS.items():
        lines += _block(name, machine, _any_of(place, values))
    # new limits are none of its business; looking at them is
    lines += _block("prlimit64", machine, _zero(2))
    lines += _block("clone", machine, _thread_alone())
    lines += _block("clone3", machine, [_answer(_REFUSE | _ENOSYS)])
    lines.append(_answer(_REFUSE | _EPERM))
    return len(lines), b"".join(struct.pack("<HBBI", *line) for line in lines)


def _block(name: str, machine: str, lines: list[_Line]) -> list[_Line]:
    """What is done at the call `name`: nothing goes on past its end."""
    found = number(name, machine)
    return [] if found is None else [(_IF_EQUAL, 0, len(lines), found), *lines]


def _answer(what: int) -> _Line:
    return _RETURN, 0, 0, what


def _low(place: int) -> int:
    return _ARGUMENTS + 8 * place


def _any_of(place: int, values: tuple[int, ...]) -> list[_Line]:
    tests = [(_IF_EQUAL, len(values) - n, 0, value) for n, value in enumerate(values)]
    return [(_LOAD, 0, 0, _low(place)), *tests, _answer(_REFUSE | _EPERM), _answer(_ALLOW)]


def _zero(place: int) -> list[_Line]:
    return [
        (_LOAD, 0, 0, _low(place)),
        (_IF_EQUAL, 0, 2, 0),
        (_LOAD, 0, 0, _low(place) + 4),
        (_IF_EQUAL, 1, 0, 0),
        _answer(_REFUSE | _EPERM),
        _answer(_ALLOW),
    ]


def _thread_alone() -> list[_Line]:
    """A thread of this process, in the namespaces that it has."""
    return [
        (_LOAD, 0, 0, _low(0)),
        (_IF_ANY, 0, 1, _THREAD),
        (_IF_ANY, 0, 1, _NAMESPACES),
        _answer(_REFUSE | _EPERM),
        _answer(_ALLOW),
    ]
