"""What one run leaves to the next, and where a run starts."""

from __future__ import annotations

from functools import partial

from licet.contract import Control
from licet.plan import Opened
from licet.probe.attack import Attack, Proof, Scenario
from licet.probe.attacks.shared import UNREADABLE

_left = partial(
    Attack,
    Control.fresh_state,
    proofs=(Proof.text,),
    scenario=Scenario.after_prior,
)

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
