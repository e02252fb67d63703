"""What an attack is: a small program, what proves that it got through, and what it sees where a wall stands.

Rules this module keeps:

- an attack is data; its program says `done`, or the one exception that stopped it, and judges nothing;
- a wall counts only if the program saw exactly one of `held_by`: a crash, or another error, proves nothing;
- a leak is confirmed from the host's side wherever the host can see it (`proofs`);
- everything is bounded, so that a total leak does the host no harm: 64 processes, 256 MiB, one connection.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from licet.backend import Descriptor
from licet.contract import Control, Level
from licet.plan import Opened
from licet.probe.conditions import Condition
from licet.request import Action


class Proof(StrEnum):
    """What shows that an attack got through; of several, each is enough."""

    done = "done"
    """The program's own word, where nobody else can see the act."""
    text = "text"
    """`Attack.text`, which the program does not contain, arrived in its output."""
    struck = "struck"
    """A target on the host shows the blow: a connection, a file made or changed, a process that ended."""
    alive = "alive"
    """A process of the run is alive after its end."""
    overstayed = "overstayed"
    """The run was not over within `Attack.patience`."""
    flooded = "flooded"
    """More output reached the host than its limit admits, or made the host's own memory grow."""


class Scenario(StrEnum):
    """How a program is run; it prints `{SAY} ready` where a scenario waits for it."""

    once = "once"
    after_prior = "after_prior"
    """`Attack.prior` ran before, in a run of its own."""
    cancelled = "cancelled"
    """The run is cancelled once the program is ready."""
    orphaned = "orphaned"
    """The host process of the run is killed once the program is ready."""
    terminated = "terminated"
    """The group of that host process is asked to end (SIGTERM) once the program is ready."""


ENDS_EARLY = frozenset({Scenario.cancelled, Scenario.orphaned, Scenario.terminated})
"""Where a run is ended as soon as the program is ready."""


@dataclass(frozen=True, slots=True, eq=False)
class Attack:
    """One way past one control.

    `act` is what the program tries, `goal` the same for people. `allowed` are statements before it that must
    work, by the action that they need the backend to open (`run`: always). Placeholders such as
    `{SECRET_FILE}` are filled by the scene. `limits` and `opens` are those of the plan.

    `held_by` are observations: `done`, an exception as `Type ERRNO` or `Type: message`, or a termination.
    `inexpressible` are those that count in a language which lists all of its modules, and lacks this one.

    A run is late after `patience` seconds; `twin_patience` is how long a twin has to go on to show that
    nothing stops it. Targets are looked at `aftermath` seconds after the end. `host_apart` runs the sandbox
    from a process of its own (on POSIX), which holds the secret in a variable and in an open file;
    `clean_twin` keeps that variable from the twin's own environment. A `quick` attack is part of the evidence
    that selection asks for. What `partial_may_leak` shows is beyond a claim of `partial`. `alone` attacks run
    by themselves, since they watch the memory of the host.
    """

    control: Control
    variant: str
    goal: str
    act: str
    held_by: tuple[str, ...]
    proofs: tuple[Proof, ...] = (Proof.done,)
    inexpressible: tuple[str, ...] = ()
    text: str = "{SECRET}"
    scenario: Scenario = Scenario.once
    prior: str = ""
    allowed: Mapping[Action, str] = field(default_factory=dict)
    limits: Mapping[str, Any] = field(default_factory=dict)
    opens: Opened = field(default_factory=Opened)
    patience: float = 4.0
    twin_patience: float | None = None
    aftermath: float = 0.0
    host_apart: bool = False
    clean_twin: bool = False
    quick: bool = False
    partial_may_leak: bool = False
    alone: bool = False
    needs: frozenset[Condition] = frozenset()

    @property
    def twin_shows(self) -> float:
        """Seconds after which a twin that still runs has shown that nothing stops it."""
        return self.patience if self.twin_patience is None else self.twin_patience

    @property
    def wall_time(self) -> float:
        """Seconds that the plan permits."""
        return float(self.limits.get("wall_time", WALL_TIME))

    @property
    def key(self) -> tuple[str, str]:
        """What tells one attack from another: control and variant."""
        return self.control.value, self.variant

    def __str__(self) -> str:
        return f"{self.control.value}/{self.variant}"

    def program(self, opens: frozenset[Action] | None = None) -> str:
        """The whole text, placeholders unfilled; `opens` are the actions that the backend can open."""
        allowed = [
            text for action, text in self.allowed.items() if opens is None or action in {"run", *opens}
        ]
        lines = "\n".join(f"    {line}" for line in self.act.strip().splitlines())
        return "\n".join((*allowed, _FRAME.replace("{ACT}", lines)))

    def holds(self, observed: str, descriptor: Descriptor) -> bool:
        """Whether `observed` is one of the exact signs of a wall, for what a backend says of itself.

        A claim that the language can't express the act is borne out by nothing else than just that.
        """
        claim = descriptor.sandbox_enforcement_contract[self.control]
        if observed in self.held_by and claim.level is not Level.not_applicable:
            return True
        return descriptor.language.modules is not None and observed in self.inexpressible


WALL_TIME = 5.0
"""Seconds that a probe may take where the attack says nothing else."""

_FRAME = """\
print('{SAY} allowed', {FACTOR} * {OTHER_FACTOR}, flush=True)
try:
{ACT}
except Exception as problem:
    print('\\n{SAY} refused', type(problem).__name__, problem, flush=True)
else:
    print('\\n{SAY} done', flush=True)
"""
