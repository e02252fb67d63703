"""What a decision demands of a sandbox: the one place where permissions become controls.

Rules this module keeps:

- requirements are derived for each candidate from what it would open; what stays closed has to be held;
- a host that is asked about when the code connects may come to be opened: it demands the same filter;
- a file system opened whole (`read /`, `write /`) demands no wall, and neither do `network any` and `network
  private` together; with anything kept back inside them by policy, they do;
- a run to which everything is opened, `network any` among it, may do what any process of the user may do, to
  its supervisor too: of supervision, only what a cooperating process gets is demanded of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from licet import hosts
from licet.contract import Control, Evidence, Level, Requirement
from licet.decide import Decision
from licet.plan import Opened
from licet.request import Action, Limits

LIMIT_CONTROLS: Mapping[str, tuple[Control, ...]] = {
    "wall_time": (Control.timeout, Control.process_tree_cleanup),
    "cpu_time": (Control.cpu_time_limit,),
    "memory": (Control.memory_limit,),
    "processes": (Control.process_count_limit,),
    "stdout": (Control.stdout_limit,),
    "stderr": (Control.stderr_limit,),
    "files": (Control.filesystem_bytes_limit,),
}
"""The controls that hold each limit; a limit that is not here is kept by licet or by the language."""

_ALWAYS: dict[Control, str] = {
    Control.environment_allowlist: "every run has the environment of its policy",
    Control.fresh_state: "every run starts fresh",
    Control.cancellation: "every run can be cancelled",
}
_SUPERVISION = frozenset({Control.timeout, Control.process_tree_cleanup, *_ALWAYS})
"""Controls that code with all rights of the user can undermine from inside."""


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
        network_asked=allowed.network_asked if "network" in opens else (),
        shell=allowed.shell and "shell" in opens,
        tools=allowed.tools if "tool" in opens else (),
    )


def require(decision: Decision, limits: Limits, opened: Opened) -> Mapping[Control, Requirement]:
    """The controls that must hold for a run that opens `opened`, each with its reason."""
    return demand(tuple(decision.required.items()), decision.evidence, limits, opened)


def demand(
    required: tuple[tuple[Control, Level], ...], evidence: Evidence, limits: Limits, opened: Opened
) -> Mapping[Control, Requirement]:
    """`require`, from the parts of a decision that count."""
    asked = dict(_closed(opened))
    supervision = Level.partial if _opens_everything(opened) else Level.enforced
    for control, because in _ALWAYS.items():
        asked[control] = (supervision, because)
    for name in limits.stated():
        for control in LIMIT_CONTROLS.get(name, ()):
            level = supervision if control in _SUPERVISION else Level.enforced
            asked.setdefault(control, (level, f"the limit `{name}`"))
    for control, level in required:
        if control not in asked or level.rank > asked[control][0].rank:
            asked[control] = (level, "required by policy or request")
    return {control: Requirement(level, because, evidence) for control, (level, because) in asked.items()}


def _closed(opened: Opened) -> Iterable[tuple[Control, tuple[Level, str]]]:
    if not _opens_all(opened.read, opened.read_masked):
        yield Control.filesystem_read_deny, (Level.enforced, "not every `read` is opened")
    if not _opens_all(opened.write, opened.write_masked):
        yield Control.filesystem_write_deny, (Level.enforced, "not every `write` is opened")
    if not opened.connects:
        yield Control.network_deny, (Level.enforced, "no `network` is opened")
    elif not _reaches_all(opened):
        yield Control.network_filter, (Level.enforced, "only some hosts are opened")
    if not _reaches_all(opened):
        yield Control.unix_socket_deny, (Level.enforced, "not every `network` is opened")
    if not opened.shell:
        yield Control.shell_execution, (Level.enforced, "`shell` is not opened")


def _opens_all(roots: tuple[str, ...], masked: tuple[str, ...]) -> bool:
    """Whether a file action is opened whole; what only licet itself keeps back does not count."""
    return "/" in roots and not masked


def _reaches_all(opened: Opened) -> bool:
    """Whether no host has to be held back: both words are there, or `any` beside everything else there is."""
    inside = hosts.PRIVATE in opened.network or _opens_everything(opened)
    return hosts.ANY in opened.network and not opened.network_masked and inside


def _opens_everything(opened: Opened) -> bool:
    files = _opens_all(opened.read, opened.read_masked) and _opens_all(opened.write, opened.write_masked)
    return files and hosts.ANY in opened.network and not opened.network_masked and opened.shell
