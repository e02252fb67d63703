"""Supervised processes: start, feed, drain, bound, end, and leave nothing.

For every backend that runs its code in a process, ours and strangers'. `run` (or `run_blocking`) takes a
`Spec` and answers with a `ProcessOutcome`; the pieces, from the outside in:

- `calls` and `aio`: how a run is called; `process`: the host's side of it, with its `wires` and its `keeper`;
  `windows`: the same there;
- `launcher`: has keepers wait for another run, where nobody could tell them from new ones;
- `_keeper` (with `_walls`, `_standby`) and `_guest` (with `_report`): what runs in the child, sent by
  `bootstrap`;
- `channel`: the private way for the value or the error of the code, and for its calls of tools;
- `calling`, `courier`: how such a call gets to the loop of the caller, and its reply back; `_tools` calls;
- `kernel`: what this host can do, `probe`: which interpreters there are.

What the code says over its channel is its own word: it can forge its value, its error, and nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from licet.lazy import attribute_importer

if TYPE_CHECKING:
    from licet.supervise.aio import run
    from licet.supervise.asking import Answered, Connect, OnCall
    from licet.supervise.calls import GRACE, OnOutput, run_blocking
    from licet.supervise.channel import Called
    from licet.supervise.kernel import can_confine_signals, can_move_cgroups, keeper_shortfall
    from licet.supervise.launcher import Launcher
    from licet.supervise.probe import Interpreter, InterpreterStatus, probe_interpreter
    from licet.supervise.spec import (
        INTERPRETER,
        Fault,
        ProcessOutcome,
        Program,
        Reason,
        Report,
        Snippet,
        Spec,
        Used,
    )
    from licet.supervise.stop import Stop

__all__ = [
    "GRACE",
    "INTERPRETER",
    "Answered",
    "Called",
    "Connect",
    "Fault",
    "Interpreter",
    "InterpreterStatus",
    "Launcher",
    "OnCall",
    "OnOutput",
    "ProcessOutcome",
    "Program",
    "Reason",
    "Report",
    "Snippet",
    "Spec",
    "Stop",
    "Used",
    "can_confine_signals",
    "can_move_cgroups",
    "keeper_shortfall",
    "probe_interpreter",
    "run",
    "run_blocking",
]

_HOMES = {
    "Answered": "asking",
    "Connect": "asking",
    "Called": "channel",
    "Fault": "spec",
    "GRACE": "calls",
    "INTERPRETER": "spec",
    "Interpreter": "probe",
    "InterpreterStatus": "probe",
    "Launcher": "launcher",
    "OnCall": "asking",
    "OnOutput": "calls",
    "ProcessOutcome": "spec",
    "Program": "spec",
    "Reason": "spec",
    "Report": "spec",
    "Snippet": "spec",
    "Spec": "spec",
    "Stop": "stop",
    "Used": "spec",
    "can_confine_signals": "kernel",
    "can_move_cgroups": "kernel",
    "keeper_shortfall": "kernel",
    "probe_interpreter": "probe",
    "run": "aio",
    "run_blocking": "calls",
}

__getattr__ = attribute_importer(__name__, _HOMES)
