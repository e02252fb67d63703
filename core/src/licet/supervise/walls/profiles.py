"""What programs are let through to the kernel for, by the kind of program.

Rules this module keeps:

- a program that computes has memory, threads, time, its own signals, descriptors that are open, and opening
  files, which another wall judges. It makes no socket, starts no process, and looks into none;
- an interpreter has its own processes, signals among them, and all that is done with files besides. It makes
  no namespace, traces nobody, loads nothing into the kernel, gets no key, and opens no interface to the
  kernel that the filter would not see into;
- it has sockets only in pairs, and of kinds that can't be connected anew: a pair of datagram sockets could
  still be sent to others. With a `network`, it makes TCP sockets, and whoever made the filter connects them:
  nothing that it sends connects a socket by itself;
- it starts programs only with `programs`;
- attributes of files can be read and not be set: layers of files keep their own marks in them.
"""

from __future__ import annotations

from collections.abc import Mapping

from licet.supervise.walls.seccomp import OneOf, Profile, Tests, Zero

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
_COMPUTING = (*_MEMORY, *_THREADS, *_TIME, *_SIGNALS, *_DESCRIPTORS, *_FILES, *_ITSELF)

_OPERATIONS: Mapping[str, Tests] = {
    # name and version of a thread, names of memory; whether new privileges are renounced
    "prctl": (OneOf(0, (15, 16, 39, 0x53564D41)),),
    # duplicate, flags, size of a pipe: none that has signals sent, takes leases or locks
    "fcntl": (OneOf(1, (0, 1, 2, 3, 4, 1030, 1032)),),
    # ask for a terminal, count what can be read, close on exec, do not block
    "ioctl": (OneOf(1, (0x5401, 0x541B, 0x5421, 0x5450, 0x5451)),),
    # new limits are none of its business; looking at them is
    "prlimit64": (Zero(2),),
}


def computing(*, signals: bool) -> Profile:
    """A program that computes; `signals` lets it signal threads, where another wall knows whose they are."""
    return Profile((*_COMPUTING, *(("tgkill",) if signals else ())), _OPERATIONS)


_OWN_PROCESSES = (
    *("fork", "vfork", "setpgid", "kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"),
    *("signalfd", "signalfd4", "pidfd_open", "pidfd_send_signal", "setrlimit", "setsid"),
    *("sched_setaffinity", "sched_rr_get_interval", "setpriority"),
)
_TIMERS = (
    *("alarm", "setitimer", "timer_create", "timer_settime", "timer_gettime", "timer_getoverrun"),
    *("timer_delete", "timerfd_create", "timerfd_settime", "timerfd_gettime"),
)
_MORE_MEMORY = ("mincore", "mlock", "munlock", "memfd_create")
_MORE_DESCRIPTORS = (
    *("eventfd", "epoll_create", "epoll_pwait2", "preadv2", "pwritev2", "readahead", "sendfile"),
    *("copy_file_range", "splice", "tee", "sync_file_range", "sync", "syncfs", "fallocate", "ftruncate"),
    *("flock", "inotify_init", "inotify_init1", "inotify_add_watch", "inotify_rm_watch", "getdents"),
)
_MORE_FILES = (
    *("creat", "truncate", "mkdir", "mkdirat", "rmdir", "rename", "renameat", "renameat2", "link", "linkat"),
    *("symlink", "symlinkat", "unlink", "unlinkat", "chmod", "fchmod", "fchmodat", "chown", "fchown"),
    *("lchown", "fchownat", "utime", "utimes", "utimensat", "futimesat", "openat2"),
    *("getxattr", "lgetxattr", "fgetxattr", "listxattr", "llistxattr", "flistxattr"),
)
_OPEN_SOCKETS = (
    *("recvmsg", "recvfrom", "recvmmsg", "shutdown", "getsockname", "getpeername"),
    *("getsockopt", "setsockopt"),
)
_INTERPRETING = (
    *(name for name in _COMPUTING if name != "execve"),
    *_OWN_PROCESSES,
    *_TIMERS,
    *_MORE_MEMORY,
    *_MORE_DESCRIPTORS,
    *_MORE_FILES,
    *_OPEN_SOCKETS,
)
_STREAM, _IN_ORDER, _KIND = 1, 5, 0xF
_FAST_OPEN = 0x20000000
_FORMAT, _PLAIN, _PIPE = 0xF000, 0x8000, 0x1000
_MORE_OPERATIONS: Mapping[str, Tests] = {
    # as above; what it dies with, dumps, slack of timers, huge pages, reaping: of itself alone
    "prctl": (OneOf(0, (15, 16, 39, 0x53564D41, 1, 2, 3, 7, 21, 23, 27, 29, 30, 36, 37, 41, 42)),),
    # as above; locks of files, seals of its own files in memory
    "fcntl": (OneOf(1, (0, 1, 2, 3, 4, 1030, 1031, 1032, 5, 6, 7, 36, 37, 38, 1033, 1034)),),
    # as above; the size and the group of a terminal
    "ioctl": (OneOf(1, (0x5401, 0x541B, 0x5421, 0x5450, 0x5451, 0x5413, 0x540F)),),
    "prlimit64": (Zero(0),),
    "socketpair": (OneOf(0, (1,)), OneOf(1, (_STREAM, _IN_ORDER), _KIND)),
    # what does not connect by the way
    "sendto": (OneOf(3, (0,), _FAST_OPEN),),
    "sendmsg": (OneOf(2, (0,), _FAST_OPEN),),
    "sendmmsg": (OneOf(3, (0,), _FAST_OPEN),),
    # plain files and named pipes: neither devices nor sockets
    "mknod": (OneOf(1, (0, _PLAIN, _PIPE), _FORMAT),),
    "mknodat": (OneOf(2, (0, _PLAIN, _PIPE), _FORMAT),),
    "personality": (OneOf(0, (0xFFFFFFFF,)),),
}
_INTERNET: Mapping[str, Tests] = {
    # TCP over IPv4 and IPv6
    "socket": (OneOf(0, (2, 10)), OneOf(1, (_STREAM,), _KIND), OneOf(2, (0, 6))),
}


def interpreting(*, programs: bool, network: bool) -> Profile:
    """An interpreter, which may start `programs`, and may have connections made for it over a `network`."""
    return Profile(
        (*_INTERPRETING, *(("execve", "execveat") if programs else ())),
        {**_MORE_OPERATIONS, **(_INTERNET if network else {})},
        threads=False,
        asked=("connect",) if network else (),
    )
