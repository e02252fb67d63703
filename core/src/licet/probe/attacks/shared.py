"""Pieces that several attacks share: exact signs of walls, and texts that start other processes."""

from __future__ import annotations

from licet.probe.conditions import Condition

ON_POSIX = frozenset({Condition.posix})
ON_WINDOWS = frozenset({Condition.windows})
ON_LINUX = frozenset({Condition.posix, Condition.linux})

UNREADABLE = (
    "PermissionError EACCES",
    "PermissionError EPERM",
    "FileNotFoundError ENOENT",
    "PermissionError WinError 5",
    "FileNotFoundError WinError 2",
    "FileNotFoundError WinError 3",
)
"""A file kept from the code: by permission, or because its view of the file system lacks it."""

UNREACHABLE = (
    "ConnectionRefusedError ECONNREFUSED",
    "OSError ENETUNREACH",
    "PermissionError EACCES",
    "PermissionError EPERM",
    "ConnectionRefusedError WinError 10061",
    "OSError WinError 10051",
    "PermissionError WinError 10013",
    "TimeoutError: timed out",
)
"""A connection kept from the code: a network of its own, or a filter, which may be a silent one."""

NO_SUCH_SYSCALL = ("PermissionError EPERM", "PermissionError EACCES", "OSError ENOSYS")
"""A system call kept from the code."""

NO_SOCKET = ("ModuleNotFoundError: No module named 'socket'",)
NO_CTYPES = ("ModuleNotFoundError: No module named 'ctypes'",)


def in_each(item: str, items: str, act: str) -> str:
    """Try `act` with each of `items` until one gets through; else raise what refused the last."""
    lines = "\n".join(f"        {line}" for line in act.splitlines())
    return f"""\
for {item} in {items}:
    try:
{lines}
    except OSError as problem:
        refusal = problem
    else:
        break
else:
    raise refusal
"""


def no_os(name: str) -> tuple[str, ...]:
    """What a language says that has a module `os` without this function."""
    return (f"AttributeError: module 'os' has no attribute '{name}'",)


READY = "import time\nprint('\\n{SAY} ready', flush=True)\n"
"""Tell the prober that it may cancel the run, or kill its host."""

STAYED_TEXT = "stayed-{SUM}"
STAYED = "print('stayed-' + str({FACTOR} + {OTHER_FACTOR}), flush=True)\n"
"""What a program says that runs on although it was to be over by now, which its own clock tells."""

STAY_S = 3.0
"""Seconds for which it stays: more than a run may be late."""


def busy(seconds: float = STAY_S) -> str:
    """Compute for so many seconds, and say so; `time` is imported."""
    return f"end = time.monotonic() + {seconds}\nwhile time.monotonic() < end:\n    pass\n{STAYED}"


def sleeping(seconds: float = STAY_S) -> str:
    """Sleep for so many seconds, and say so; `time` is imported."""
    return f"time.sleep({seconds})\n{STAYED}"


LONG_S = 8.0
"""Seconds for which a process stays that is to be found after the run."""

_DAEMON = """\
import os
fork = os.fork
import time
reader, writer = os.pipe()
if fork() == 0:
    os.setsid()
    if fork() == 0:
        {STREAMS}
        os.write(writer, b'x')
        time.sleep(3)
        try:
            {WORD}
        except OSError as problem:
            pass
        time.sleep(5)
        os._exit(0)
    os._exit(0)
os.wait()
os.read(reader, 1)
print('\\n{SAY} ready', flush=True)
time.sleep(0.2)
"""
"""A process in a session of its own, whose parent is gone; it lives for 8 seconds."""

QUIET_DAEMON = _DAEMON.replace("{STREAMS}", "os.close(0), os.close(1), os.close(2)").replace("{WORD}", "pass")
HOLDING_DAEMON = _DAEMON.replace("{STREAMS}", "pass  # it keeps those of the run").replace(
    "{WORD}", STAYED.strip()
)
"""It says through the output of the run that it stays."""

CHILD = """\
import os
spawn = os.posix_spawn
import sys
code = 'try:\\n ' + {ACTION} + '\\nexcept OSError as p:\\n import os\\n os._exit(100 + p.errno)'
line = [sys.executable, '-I', '-S', '-E', '-c', code]
number = os.waitstatus_to_exitcode(os.waitpid(spawn(line[0], line, dict(os.environ)), 0)[1])
if number > 100:
    raise OSError(number - 100, os.strerror(number - 100))
if number != 0:
    raise RuntimeError('the other interpreter failed')
"""
"""The act in an interpreter of its own, with other flags than those the sandbox chose."""


def in_child(action: str) -> str:
    """`CHILD` with one statement to try."""
    return CHILD.replace("{ACTION}", repr(action))
