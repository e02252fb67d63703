"""Where a program for Windows differs from all others: other programs, what is left behind, variables.

What is left behind there is known by what it does: it makes a file of the host, later.
"""

from __future__ import annotations

from functools import partial

from licet.contract import Control
from licet.probe.attack import Attack, Proof
from licet.probe.attacks.shared import ON_WINDOWS, UNREADABLE

_UNSTARTABLE = (
    "PermissionError WinError 5",
    "OSError WinError 1816",  # the quota of a job
    "OSError WinError 367",  # the policy of the process
)
_LATER = "import time\ntime.sleep(1.5)\nfile = open('{CANARY_FILE}', 'w')\nfile.write('x')\nfile.close()"
_DETACHED = 0x00000008 | 0x00000200  # DETACHED_PROCESS, CREATE_NEW_PROCESS_GROUP
_BREAKAWAY = 0x01000000

_on_windows = partial(Attack, needs=ON_WINDOWS)


def _leave(flags: int) -> str:
    """Start another interpreter, which strikes after the end of the run."""
    return f"""\
import subprocess, sys
line = [sys.executable, '-I', '-S', '-c', {_LATER!r}]
subprocess.Popen(line, creationflags={flags}, stdin=-3, stdout=-3, stderr=-3)
"""


SHELL = (
    _on_windows(
        Control.shell_execution,
        "command",
        "have the command interpreter do a sum",
        act="import subprocess\nline = 'cmd /d /c set /a {FACTOR} + {OTHER_FACTOR}'\n"
        "found = subprocess.run(line, stdin=-3, stdout=-1).stdout.decode()\n"
        "print('sum-' + found, flush=True)",
        held_by=(*_UNSTARTABLE, *UNREADABLE),
        proofs=(Proof.text,),
        text="sum-{SUM}",
        quick=True,
    ),
)

ENVIRONMENT = (
    _on_windows(
        Control.environment_allowlist,
        "profile",
        "read where the user of the host lives",
        act="import os\nprint(os.environ['USERPROFILE'], flush=True)",
        held_by=("KeyError: 'USERPROFILE'",),
        proofs=(Proof.text,),
        text="{HOST_FOLDER}",
        allowed={"run": "import os\nassert os.environ['LICET_PROBE'] == '{TOKEN}'"},
        quick=True,
    ),
)

_cleanup = partial(
    _on_windows,
    Control.process_tree_cleanup,
    held_by=("done", *_UNSTARTABLE),
    proofs=(Proof.struck,),
    aftermath=2.5,
)

CLEANUP = (
    _cleanup("detached", "leave a process behind without a console", act=_leave(_DETACHED), quick=True),
    _cleanup("breakaway", "leave the job of the run", act=_leave(_DETACHED | _BREAKAWAY)),
    _cleanup(
        "detached_deadline",
        "have a process outlive the deadline",
        act=_leave(_DETACHED) + "import time\ntime.sleep(3)\n",
        held_by=("timeout", *_UNSTARTABLE),
        limits={"wall_time": 0.6},
        quick=True,
    ),
)

COUNT = (
    _on_windows(
        Control.process_count_limit,
        "spawn",
        "start 24 processes where 16 are permitted",
        act="""\
import subprocess, sys
line = [sys.executable, '-I', '-S', '-c', 'import sys; sys.stdin.read()']
children = []
try:
    for _ in range(24):
        children.append(subprocess.Popen(line, stdin=-1, stdout=-3, stderr=-3))
finally:
    for child in children:
        child.stdin.close()
        child.wait()
""",
        held_by=(*_UNSTARTABLE, "process_limit"),
        limits={"processes": 16, "wall_time": 20.0},
        quick=True,
    ),
)
