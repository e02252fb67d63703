"""What the host process holds: its variables, and those of its ancestors; its open files.

The variable has a name made up for each scene, so that only a list of what is allowed keeps it out.
"""

from __future__ import annotations

from functools import partial

from licet.contract import Control
from licet.probe.attack import Attack, Proof
from licet.probe.attacks.shared import ON_LINUX, ON_POSIX, UNREADABLE, no_os

_HANDED_ON = "import os\nassert os.environ['LICET_PROBE'] == '{TOKEN}'"
_NOT_THERE = "KeyError: 'not there'"
_ANCESTORS = """\
import os
pid = os.getppid()
refusal = KeyError('not there')
while pid > 0:
    try:
        %s
    except OSError as problem:
        refusal = problem
    status = open(f'/proc/{pid}/stat', errors='replace').read()
    pid = int(status.rpartition(')')[2].split()[1])
raise refusal
"""


_environment = partial(
    Attack,
    Control.environment_allowlist,
    proofs=(Proof.text,),
    allowed={"run": _HANDED_ON},
    host_apart=True,
    needs=ON_POSIX,
)

ATTACKS = (
    _environment(
        "child",
        "read a variable of the host",
        act="""\
import os
if '{VARIABLE}' not in os.environ:
    raise KeyError('not there')
print(os.environ['{VARIABLE}'], flush=True)
""",
        held_by=(_NOT_THERE,),
        quick=True,
    ),
    _environment(
        "own_process",
        "read the variables that the process was started with",
        act="""\
text = open('/proc/self/environ').read()
print(text.partition('{VARIABLE}')[2][:40], flush=True)
if '{VARIABLE}' not in text:
    raise KeyError('not there')
""",
        held_by=(_NOT_THERE, *UNREADABLE),
        needs=ON_LINUX,
    ),
    _environment(
        "ancestors",
        "read the variables of every process above",
        act=_ANCESTORS % "text = open(f'/proc/{pid}/environ', errors='replace').read()\n"
        "        print(text.partition('{VARIABLE}')[2][:40], flush=True)",
        held_by=(_NOT_THERE, *UNREADABLE),
        inexpressible=no_os("getppid"),
        needs=ON_LINUX,
        clean_twin=True,
        quick=True,
        partial_may_leak=True,
    ),
)

_NO_DESCRIPTOR = "OSError EBADF"


_handles = partial(
    Attack,
    Control.handle_isolation,
    proofs=(Proof.text,),
    host_apart=True,
    needs=ON_POSIX,
)

HANDLES = (
    _handles(
        "inherited",
        "read from an open file of the host",
        act="import os\npread = os.pread\nfor fd in range(3, 4096):\n    try:\n"
        "        print(pread(fd, 1000, 0), flush=True)\n    except OSError as problem:\n"
        "        refusal = problem\nraise refusal",
        held_by=(_NO_DESCRIPTOR,),
        inexpressible=no_os("pread"),
        quick=True,
    ),
    _handles(
        "ancestors",
        "read from the open files of every process above",
        act=_ANCESTORS % "for fd in os.listdir(f'/proc/{pid}/fd'):\n"
        "            if '{SECRET_FILE}' in os.readlink(f'/proc/{pid}/fd/{fd}'):\n"
        "                print(open(f'/proc/{pid}/fd/{fd}').read(), flush=True)",
        held_by=(_NOT_THERE, *UNREADABLE),
        inexpressible=no_os("getppid"),
        needs=ON_LINUX,
    ),
)
