"""Other programs, and processes that outlive the run or are too many."""

from __future__ import annotations

from functools import partial

from licet.contract import Control
from licet.probe.attack import Attack, Proof
from licet.probe.attacks.shared import (
    HOLDING_DAEMON,
    ON_LINUX,
    ON_POSIX,
    QUIET_DAEMON,
    READY,
    STAYED_TEXT,
    busy,
    no_os,
    sleeping,
)

_UNSTARTABLE = ("PermissionError EACCES", "PermissionError EPERM")
_NO_SHELL = (*_UNSTARTABLE, "FileNotFoundError ENOENT")
_NO_FORK = (*_UNSTARTABLE, "BlockingIOError EAGAIN")
_ECHO = "['/bin/sh', '-c', 'echo sum-$(({FACTOR} + {OTHER_FACTOR}))']"

_shell = partial(
    Attack,
    Control.shell_execution,
    held_by=_NO_SHELL,
    proofs=(Proof.text,),
    text="sum-{SUM}",
    needs=ON_POSIX,
)

SHELL = (
    _shell(
        "spawn",
        "start a shell",
        act=f"import os\nos.waitpid(os.posix_spawn('/bin/sh', {_ECHO}, dict(os.environ)), 0)",
        inexpressible=no_os("posix_spawn"),
        quick=True,
    ),
    _shell(
        "interpreter",
        "start another interpreter",
        act="""\
import os
spawn = os.posix_spawn
import sys
code = "print('sum-%d' % ({FACTOR} + {OTHER_FACTOR}))"
os.waitpid(spawn(sys.executable, [sys.executable, '-I', '-S', '-c', code], dict(os.environ)), 0)
""",
        held_by=_UNSTARTABLE,  # it is running, so that it can't be missing
        inexpressible=no_os("posix_spawn"),
        quick=True,
    ),
    _shell(
        "replace",
        "become a shell",
        act=f"import os\nreplace = os.execv\nreplace('/bin/sh', {_ECHO})",
        inexpressible=no_os("execv"),
    ),
    _shell(
        "internals",
        "start a shell with the module below `os`",
        act=f"import posix\nposix.waitpid(posix.posix_spawn('/bin/sh', {_ECHO}, dict(posix.environ)), 0)",
        inexpressible=("ModuleNotFoundError: No module named 'posix'",),
    ),
)

_cleanup = partial(
    Attack,
    Control.process_tree_cleanup,
    held_by=("done", *_NO_FORK),
    inexpressible=no_os("fork"),
    proofs=(Proof.alive,),
    needs=ON_LINUX,
)
_STAYS = (Proof.text, Proof.alive, Proof.overstayed)

CLEANUP = (
    _cleanup("daemon", "leave a process behind", act=QUIET_DAEMON, quick=True),
    _cleanup(
        "pipe",
        "leave a process behind that holds the output of the run open",
        act=HOLDING_DAEMON,
        proofs=_STAYS,
        text=STAYED_TEXT,
        patience=1.0,
    ),
    _cleanup(
        "deadline",
        "have a process outlive the deadline",
        act=HOLDING_DAEMON + sleeping(),
        held_by=("timeout", *_NO_FORK),
        proofs=_STAYS,
        text=STAYED_TEXT,
        limits={"wall_time": 0.6},
        patience=0.6,
        quick=True,
    ),
    _cleanup(
        "worker",
        "compute on past the deadline, in whatever process the backend uses",
        act=READY + busy(),
        held_by=("timeout",),
        proofs=_STAYS,
        text=STAYED_TEXT,
        limits={"wall_time": 0.8},
        patience=0.8,
        host_apart=True,
    ),
    _cleanup(
        "relay",
        "move from process to process, each gone before it is found",
        act="""\
import os
fork = os.fork
import time
end = time.monotonic() + 8
if fork() == 0:
    os.setsid()
    os.close(0), os.close(1), os.close(2)
    while time.monotonic() < end:
        if fork() > 0:
            os._exit(0)
        time.sleep(0.05)
    os._exit(0)
print('\\n{SAY} ready', flush=True)
time.sleep(0.2)
""",
    ),
    _cleanup(
        "strikes_parent",
        "kill the process that supervises the run, and stay",
        act=f"""\
import os
parent = os.getppid()
{QUIET_DAEMON}
if parent <= 1:
    raise ProcessLookupError('no parent in sight')
os.kill(parent, 9)
time.sleep(2)
""",
        held_by=(*_NO_FORK, "ProcessLookupError ESRCH", "ProcessLookupError: no parent in sight"),
        inexpressible=no_os("getppid"),
        host_apart=True,
    ),
)

COUNT = (
    Attack(
        Control.process_count_limit,
        "fork",
        "start 64 processes where 16 are permitted",
        act="""\
import os
fork = os.fork
reader, writer = os.pipe()
children = []
try:
    for _ in range(64):
        child = fork()
        if child == 0:
            os.close(writer)
            os.read(reader, 1)
            os._exit(0)
        children.append(child)
finally:
    os.close(writer)
    for child in children:
        os.waitpid(child, 0)
""",
        held_by=("BlockingIOError EAGAIN", "PermissionError EPERM", "process_limit"),
        inexpressible=no_os("fork"),
        limits={"processes": 16},
        needs=ON_POSIX,
        quick=True,
    ),
)
