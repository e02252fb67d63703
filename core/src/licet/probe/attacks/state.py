"""What one run leaves to the next, and where a run starts."""

from __future__ import annotations

from functools import partial

from licet.contract import Control
from licet.plan import Opened
from licet.probe.attack import Attack, Proof, Scenario
from licet.probe.attacks.shared import ON_LINUX, UNREADABLE, no_os

_left = partial(
    Attack,
    Control.fresh_state,
    proofs=(Proof.text,),
    scenario=Scenario.after_prior,
)

_SEARCH = """\
import os
pread = os.pread
import re
mark, traces = re.compile(rb'plante[d]-([0-9]+)!'), 0
memory = os.open('/proc/self/mem', os.O_RDONLY)
for line in open('/proc/self/maps').read().splitlines():
    span, rights = line.split()[:2]
    if rights.startswith('rw'):
        first, last = (int(part, 16) for part in span.split('-'))
        for place in range(first, last, 1048576):
            found = mark.findall(pread(memory, min(1048576, last - place), place))
            traces += found.count(b'%d' % ({FACTOR} + {OTHER_FACTOR}))
if traces == 0:
    raise LookupError('no trace')
"""
"""Look through all that the process may write to for a text that neither program contains."""

ATTACKS = (
    _left(
        "names",
        "read a name that the run before has bound",
        prior="left_behind = '{SECRET}'",
        act="print(left_behind, flush=True)",
        held_by=("NameError: name 'left_behind' is not defined",),
        quick=True,
    ),
    _left(
        "modules",
        "read what the run before has put into a module",
        prior="import json\njson.left_behind = '{SECRET}'",
        act="import json\nprint(json.left_behind, flush=True)",
        held_by=("AttributeError: module 'json' has no attribute 'left_behind'",),
    ),
    _left(
        "environment",
        "read a variable that the run before has set",
        prior="import os\nos.environ['LEFT_BEHIND'] = '{SECRET}'",
        act="import os\nprint(os.environ['LEFT_BEHIND'], flush=True)",
        held_by=("KeyError: 'LEFT_BEHIND'",),
    ),
    _left(
        "files",
        "read a file that the run before has left outside of what is opened",
        prior="file = open('{CANARY_FILE}', 'w')\nfile.write('{SECRET}')\nfile.close()",
        act="print(open('{CANARY_FILE}').read(), flush=True)",
        held_by=UNREADABLE,
        quick=True,
        partial_may_leak=True,
    ),
    _left(
        "memory",
        "find in its own memory what the run before has had there",
        prior="remembered = ['planted' + '-' + str({FACTOR} + {OTHER_FACTOR}) + '!' for _ in range(1000)]",
        act=_SEARCH,
        held_by=("LookupError: no trace", *UNREADABLE),
        inexpressible=no_os("pread"),
        proofs=(Proof.done,),
        needs=ON_LINUX,
    ),
    Attack(
        Control.working_directory,
        "start",
        "start elsewhere than in the working directory",
        act="from pathlib import Path\nfound = str(Path('marker').absolute()).replace('\\\\', '/')\n"
        "print(found, flush=True)\n"
        "if found == '{WORK}/marker':\n    raise RuntimeError('in place')",
        held_by=("RuntimeError: in place",),
        opens=Opened(read=("{WORK}",)),
        quick=True,
    ),
)
