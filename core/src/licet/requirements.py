"""What a decision demands of a sandbox: the one place where permissions become controls.

Rules this module keeps:

- requirements are derived for each candidate from what it would open; what stays closed has to be held;
- a file system opened whole (`read /`, `write /`) demands no wall, and neither does `network any`; with
  anything kept back inside them, they do;
- with all files readable, the environment of other processes of the user is readable too, so only the
  run's own environment can be demanded.
"""

from __future__ import annotations

from collections.abc import Mapping

from licet import hosts
from licet.contract import Control, Level, Requirement
from licet.decide import Decision
from licet.plan import Opened
from licet.request import Action, Limits

_LIMITS: dict[str, tuple[Control, ...]] = {
    "wall_time": (Control.timeout, Control.process_tree_cleanup),
    "cpu_time": (Control.cpu_time_limit,),
    "memory": (Control.memory_limit,),
    "processes": (Control.process_count_limit,),
    "stdout": (Control.stdout_limit,),
    "stderr": (Control.stderr_limit,),
    "files": (Control.filesystem_bytes_limit,),
}


def openable(allowed: Opened, opens: frozenset[Action]) -> Opened:
    """What of `allowed` a backend opens that can open only the actions `opens`."""
    return Opened(
        read=allowed.read if "read" in opens else (),
        write=allowed.write if "write" in opens else (),
        read_masked=allowed.read_masked if "read" in opens else (),
        write_masked=allowed.write_masked if "write" in opens else (),
        sealed=allowed.sealed,
        network=allowed.network if "network" in opens else (),
        network_masked=allowed.network_masked if "network" in opens else (),
        shell=allowed.shell and "shell" in opens,
        tools=allowed.tools if "tool" in opens else (),
    )


def require(decision: Decision, limits: Limits, opened: Opened) -> Mapping[Control, Requirement]:
    """The controls that must hold for a run that opens `opened`, each with its reason."""
    asked = dict(_closed(opened))
    for name in limits.stated():
        for control in _LIMITS.get(name, ()):
            asked.setdefault(control, (Level.enforced, f"the limit `{name}`"))
    for control, level in decision.required.items():
        if control not in asked or level.rank > asked[control][0].rank:
            asked[control] = (level, "required by policy or request")
    return {
        control: Requirement(level, because, decision.evidence) for control, (level, because) in asked.items()
    }


def _closed(opened: Opened) -> Mapping[Control, tuple[Level, str]]:
    asked: dict[Control, tuple[Level, str]] = {}

    def hold(control: Control, because: str, level: Level = Level.enforced) -> None:
        asked[control] = (level, because)

    reads_all = "/" in opened.read and not opened.read_masked
    writes_all = "/" in opened.write and not opened.write_masked
    reaches_all = hosts.ANY in opened.network and not opened.network_masked
    if not reads_all:
        hold(Control.filesystem_read_deny, "not every `read` is opened")
    if not writes_all:
        hold(Control.filesystem_write_deny, "not every `write` is opened")
    if not opened.network:
        hold(Control.network_deny, "no `network` is opened")
    elif not reaches_all:
        hold(Control.network_filter, "only some hosts are opened")
    if not reaches_all:
        hold(Control.unix_socket_deny, "not every `network` is opened")
    if not opened.shell:
        hold(Control.shell_execution, "`shell` is not opened")
    hold(
        Control.environment_allowlist,
        "every run has the environment of its policy",
        Level.partial if reads_all else Level.enforced,
    )
    hold(Control.fresh_state, "every run starts fresh")
    hold(Control.cancellation, "every run can be cancelled")
    return asked
