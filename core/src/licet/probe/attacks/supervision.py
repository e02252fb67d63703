"""Staying: past the deadline, past a cancellation, past the death of the host.

What stays says so by its own clock, where anybody can still hear it: no time that a busy host takes is ever
held against a backend then.
"""

from __future__ import annotations

from functools import partial

from licet.contract import Control
from licet.probe.attack import Attack, Proof, Scenario
from licet.probe.attacks.shared import (
    HOLDING_DAEMON,
    LONG_S,
    ON_LINUX,
    ON_POSIX,
    QUIET_DAEMON,
    READY,
    STAYED,
    STAYED_TEXT,
    busy,
    no_os,
    sleeping,
)

_DEADLINE = 0.25
_DEAF = f"""\
import os
fork = os.fork
import signal, time
for number in set(signal.Signals) - {{signal.SIGKILL, signal.SIGSTOP}}:
    signal.signal(number, signal.SIG_IGN)
print('\\n{{SAY}} ready', flush=True)
end = time.monotonic() + 3
while time.monotonic() < end:
    time.sleep(0.1)
{STAYED}"""

_timeout = partial(
    Attack,
    Control.timeout,
    held_by=("timeout",),
    proofs=(Proof.text, Proof.overstayed),
    text=STAYED_TEXT,
    patience=_DEADLINE,
    limits={"wall_time": _DEADLINE},
)

TIMEOUT = (
    _timeout("busy", "compute past the deadline", act=f"import time\n{busy()}", quick=True),
    _timeout("sleep", "sleep past the deadline", act=f"import time\n{sleeping()}"),
    _timeout(
        "native",
        "compute past the deadline inside single operations",
        act=f"""\
import time
time.sleep(0.01)  # whatever was printed is out
number = 3 ** 4000000
end = time.monotonic() + 3
while time.monotonic() < end:
    number * number
{STAYED}""",
        held_by=("timeout", "memory_limit"),
    ),
    _timeout(
        "deaf",
        "ignore every signal that can be ignored",
        act=_DEAF,
        inexpressible=no_os("fork"),
        needs=ON_POSIX,
    ),
    _timeout(
        "stdin_wait",
        "wait for an input that never comes",
        act="import sys\nsys.stdin.read()\nraise EOFError('no more input')",
        held_by=("EOFError: no more input", "timeout"),
        inexpressible=("AttributeError: module 'sys' has no attribute 'stdin'",),
    ),
    _timeout(
        "held_pipe",
        "have a process in another session hold the output open past the deadline",
        act=HOLDING_DAEMON + sleeping(),
        inexpressible=no_os("fork"),
        needs=ON_LINUX,
    ),
    _timeout(
        "stops_parent",
        "stop the process that supervises the run",
        act=f"""\
import os
parent = os.getppid()
import time
if parent <= 1:
    raise ProcessLookupError('no parent in sight')
os.kill(parent, 19)
{busy()}""",
        held_by=(
            "timeout",
            "PermissionError EPERM",
            "ProcessLookupError ESRCH",
            "ProcessLookupError: no parent in sight",
        ),
        inexpressible=no_os("getppid"),
        needs=ON_LINUX,
        host_apart=True,
    ),
)

_cancelled = partial(
    Attack,
    Control.cancellation,
    held_by=("cancelled",),
    proofs=(Proof.text, Proof.overstayed),
    text=STAYED_TEXT,
    scenario=Scenario.cancelled,
    patience=0.0,
)

CANCELLATION = (
    _cancelled("busy", "compute on after the run was cancelled", act=READY + busy(), quick=True),
    _cancelled(
        "deaf",
        "ignore every signal that can be ignored",
        act=_DEAF,
        inexpressible=no_os("fork"),
        needs=ON_POSIX,
    ),
    _cancelled(
        "daemon",
        "have a process outlive the cancellation",
        act=HOLDING_DAEMON + sleeping(),
        proofs=(Proof.text, Proof.alive, Proof.overstayed),
        inexpressible=no_os("fork"),
        needs=ON_LINUX,
    ),
)

_KILLED_OR_ALONE = ("host killed", "PermissionError EPERM", "BlockingIOError EAGAIN")
"""The tree went with its host, or there never was one: no process could be started."""

_orphaned = partial(
    Attack,
    Control.orphan_cleanup,
    held_by=("host killed",),
    proofs=(Proof.alive,),
    scenario=Scenario.orphaned,
    needs=ON_LINUX,
    host_apart=True,
)
_TALKING = f"""\
{READY}end = time.monotonic() + {LONG_S}
while time.monotonic() < end:
    try:
        print('.', flush=True)
    except Exception as problem:
        pass
    time.sleep(0.05)
"""

ORPHANS = (
    _orphaned("talking", "print on after the host was killed", act=_TALKING, quick=True),
    _orphaned(
        "silent",
        "compute on in silence after the host was killed",
        act=READY + busy(LONG_S),
        quick=True,
        partial_may_leak=True,
    ),
    _orphaned(
        "daemon",
        "have a process outlive the host",
        act=QUIET_DAEMON + sleeping(LONG_S),
        held_by=_KILLED_OR_ALONE,
        inexpressible=no_os("fork"),
    ),
    _orphaned(
        "terminated",
        "have a process outlive the host when its whole group is asked to end",
        act=QUIET_DAEMON + sleeping(LONG_S),
        held_by=_KILLED_OR_ALONE,
        inexpressible=no_os("fork"),
        scenario=Scenario.terminated,
    ),
)
