"""Who enforces each setting of a policy: the language, the kernel, the broker, licet, or the screen alone.

Rules this module keeps:

- a setting that a sandbox has to hold is told with the claim of the backend that a plain run would choose,
  and with what that claim rests on;
- a setting that only the static screen sees says so: nothing holds it once the code runs;
- a setting that nobody holds says so, and is never left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from licet.contract import Boundary, Control, Enforcement
from licet.decide import Decision
from licet.policy import PolicyStack
from licet.request import ACTIONS, Limits
from licet.requirements import LIMIT_CONTROLS, openable, require
from licet.select import Chosen

SCREEN_ALONE = "the screen alone"
NOBODY = "nobody"

_BOUNDARIES: Mapping[Boundary, str] = {
    "none": NOBODY,
    "language": "the language",
    "supervisor": "the supervisor",
    "kernel": "the kernel",
    "separate_kernel": "a kernel of its own",
    "remote": "a remote machine",
}
_CLOSED: tuple[tuple[str, tuple[Control, ...]], ...] = (
    ("read", (Control.filesystem_read_deny,)),
    ("write", (Control.filesystem_write_deny,)),
    ("network", (Control.network_deny, Control.network_filter, Control.unix_socket_deny)),
    ("shell", (Control.shell_execution,)),
)
_KEPT: Mapping[str, tuple[str, str]] = {
    "code": ("licet", "refuses more before it runs"),
    "stdin": ("licet", "refuses more before it runs"),
    "output": ("licet", "counts both streams and ends the run"),
    "tool_calls": ("licet", "counts each call and ends the run"),
    "recursion": ("the language", "the interpreter raises `RecursionError`"),
}


@dataclass(frozen=True, slots=True)
class Enforcer:
    """Who holds one `setting`: `who` in words, the `control` if it is one, and how (`mechanism`).

    `evidence` is what the claim rests on, `missing` if it is still to be attacked on this host; None where
    licet itself or the screen does it. `gaps` are what the claim leaves open.
    """

    setting: str
    who: str
    mechanism: str
    control: Control | None = None
    boundary: Boundary | None = None
    level: str | None = None
    evidence: str | None = None
    gaps: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """By name."""
        return asdict(self)


def enforcers(
    stack: PolicyStack, decision: Decision, limits: Limits, chosen: Chosen | None
) -> tuple[Enforcer, ...]:
    """Who holds what in the `chosen` sandbox, for a run with these `limits`, decided under `stack`."""
    return tuple(_enforcers(stack, decision, limits, chosen))


def _enforcers(
    stack: PolicyStack, decision: Decision, limits: Limits, chosen: Chosen | None
) -> Iterator[Enforcer]:
    required = _required(decision, limits, chosen)
    for action, controls in _CLOSED:
        held = [control for control in controls if control in required]
        yield from (_held(action, control, chosen) for control in held)
        if not held:
            yield Enforcer(action, NOBODY, "the policy opens all of it")
    for name in limits.stated():
        if name in _KEPT:
            yield Enforcer(f"limits.{name}", *_KEPT[name])
        yield from (_held(f"limits.{name}", control, chosen) for control in LIMIT_CONTROLS.get(name, ()))
    yield _held("env", Control.environment_allowlist, chosen)
    for control in stack.requirements:
        yield _held(f"sandbox.require.{control}", control, chosen)
    yield from _surroundings(stack)
    yield from _of_licet(stack)


def _required(decision: Decision, limits: Limits, chosen: Chosen | None) -> frozenset[Control]:
    """The controls that are asked for, of the chosen backend or of one that could open everything."""
    if chosen is not None:
        return frozenset(chosen.requirements)
    every = openable(decision.opened, frozenset(ACTIONS))
    return frozenset(require(decision, limits, every))


def _held(setting: str, control: Control, chosen: Chosen | None) -> Enforcer:
    if chosen is None:
        return Enforcer(setting, NOBODY, "no backend here holds all that this policy demands", control)
    claim: Enforcement = chosen.descriptor.sandbox_enforcement_contract[control]
    who = _BOUNDARIES[claim.boundary]
    if control is Control.network_filter and claim.boundary == "supervisor":
        who = "the broker"
    return Enforcer(
        setting,
        who,
        claim.mechanism,
        control,
        claim.boundary,
        claim.level.value,
        "missing" if control in chosen.missing else claim.evidence.value,
        claim.gaps,
    )


def _surroundings(stack: PolicyStack) -> Iterator[Enforcer]:
    """What code is to see of the world; a backend that can be chosen then gets it from licet alone."""
    if stack.clock == "frozen":
        yield Enforcer("clock", "licet", "answers each reading with the instant of the request")
    if stack.random == "seeded":
        yield Enforcer("random", "licet", "gives the bytes that follow from host and plan")
    if stack.python is not None:
        yield Enforcer("python", "licet", "finds what was built or installed, and refuses a run without it")


def _of_licet(stack: PolicyStack) -> Iterator[Enforcer]:
    """What no sandbox has to hold."""
    if stack.screen_mode == "refuse":
        yield Enforcer("screen.mode", SCREEN_ALONE, "refuses what it reads in the code, before it runs")
    if stack.denied_modules:
        yield Enforcer(
            "screen.modules.deny", SCREEN_ALONE, "sees imports in the text; nothing holds them at run time"
        )
    if any(entry.action == "tool" for document in stack.documents for entry in document.entries):
        yield Enforcer("tool", "licet", "decides each call when it is made")
    if stack.has_rules:
        yield Enforcer("rules", "licet", "looks at them before each run, and at each call")
    kept = "nothing runs" if stack.audit_mode == "required" else "a gap is recorded"
    yield Enforcer("audit", "licet", f"without a record on disk, {kept}")
    if stack.content_mode == "kept":
        yield Enforcer("audit.content", "licet", "code, inputs, arguments and output stay, until erased")
