"""Controls, and the contract in which a backend says how far it enforces each.

Rules this module keeps:

- one field a control on `SandboxEnforcementContract`; a new contract enforces nothing;
- levels are ordered, and a claim counts only as far as its evidence reaches what was asked for;
- `not_applicable` says that the language can't even express the act: it satisfies any level, if its
  evidence is as strong as the evidence asked for;
- isolation is derived from the controls, never declared.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, Literal

from licet.plain import plain_body

Boundary = Literal["none", "language", "supervisor", "kernel", "separate_kernel", "remote"]


class Level(StrEnum):
    """How far a control is enforced, weakest first; `not_applicable` stands outside the order."""

    not_enforced = "not_enforced"
    planned = "planned"
    partial = "partial"
    enforced = "enforced"
    not_applicable = "not_applicable"

    rank: int
    """Place in the order; `not_applicable` ranks as `enforced`, since the act can't happen."""


class Evidence(StrEnum):
    """What a claim rests on, weakest first."""

    declared = "declared"
    read_back = "read_back"
    probed = "probed"

    rank: int
    """Place in the order."""


for _place, _level in enumerate((Level.not_enforced, Level.planned, Level.partial, Level.enforced)):
    _level.rank = _place
Level.not_applicable.rank = Level.enforced.rank
for _place, _evidence in enumerate(Evidence):
    _evidence.rank = _place


class Control(StrEnum):
    """The names of the controls, which are the fields of the contract."""

    shell_execution = "shell_execution"
    timeout = "timeout"
    cancellation = "cancellation"
    stdout_limit = "stdout_limit"
    stderr_limit = "stderr_limit"
    environment_allowlist = "environment_allowlist"
    working_directory = "working_directory"
    process_tree_cleanup = "process_tree_cleanup"
    process_count_limit = "process_count_limit"
    cpu_time_limit = "cpu_time_limit"
    memory_limit = "memory_limit"
    filesystem_read_deny = "filesystem_read_deny"
    filesystem_write_deny = "filesystem_write_deny"
    network_deny = "network_deny"
    network_filter = "network_filter"
    unix_socket_deny = "unix_socket_deny"
    filesystem_bytes_limit = "filesystem_bytes_limit"
    orphan_cleanup = "orphan_cleanup"
    process_isolation = "process_isolation"
    privilege_drop = "privilege_drop"
    syscall_filter = "syscall_filter"
    handle_isolation = "handle_isolation"
    fresh_state = "fresh_state"
    separate_kernel = "separate_kernel"


@dataclass(frozen=True, slots=True)
class Enforcement:
    """What a backend claims for one control."""

    level: Level = Level.not_enforced
    boundary: Boundary = "none"
    mechanism: str = ""
    gaps: tuple[str, ...] = ()
    evidence: Evidence = Evidence.declared

    def reaches(self, asked: Requirement) -> bool:
        """Whether level and evidence are as strong as asked."""
        return self.level.rank >= asked.level.rank and self.evidence.rank >= asked.evidence.rank


@dataclass(frozen=True, slots=True)
class Requirement:
    """What is asked of one control, and why."""

    level: Level
    because: str
    evidence: Evidence = Evidence.declared


@dataclass(frozen=True, slots=True)
class Blocker:
    """One shortfall of a candidate: `what` fell short, what was `asked`, what was `offered`."""

    what: str
    asked: str
    offered: str
    because: str


_NOTHING = Enforcement()


@dataclass(frozen=True, slots=True)
class SandboxEnforcementContract:
    """One field a control; whatever is left out is not enforced.

    `digest` covers every claim with mechanism, gaps and evidence; `levels` are the bare levels by name, and
    `levels_digest` covers those alone.
    """

    shell_execution: Enforcement = _NOTHING
    timeout: Enforcement = _NOTHING
    cancellation: Enforcement = _NOTHING
    stdout_limit: Enforcement = _NOTHING
    stderr_limit: Enforcement = _NOTHING
    environment_allowlist: Enforcement = _NOTHING
    working_directory: Enforcement = _NOTHING
    process_tree_cleanup: Enforcement = _NOTHING
    process_count_limit: Enforcement = _NOTHING
    cpu_time_limit: Enforcement = _NOTHING
    memory_limit: Enforcement = _NOTHING
    filesystem_read_deny: Enforcement = _NOTHING
    filesystem_write_deny: Enforcement = _NOTHING
    network_deny: Enforcement = _NOTHING
    network_filter: Enforcement = _NOTHING
    unix_socket_deny: Enforcement = _NOTHING
    filesystem_bytes_limit: Enforcement = _NOTHING
    orphan_cleanup: Enforcement = _NOTHING
    process_isolation: Enforcement = _NOTHING
    privilege_drop: Enforcement = _NOTHING
    syscall_filter: Enforcement = _NOTHING
    handle_isolation: Enforcement = _NOTHING
    fresh_state: Enforcement = _NOTHING
    separate_kernel: Enforcement = _NOTHING
    digest: str = field(init=False, compare=False)
    levels: Mapping[str, str] = field(init=False, compare=False)
    levels_digest: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        claims = {control.value: self[control] for control in Control}
        levels = {name: claim.level.value for name, claim in claims.items()}
        object.__setattr__(self, "levels", plain_body(levels))  # every run records them
        object.__setattr__(self, "digest", _hash({name: asdict(claim) for name, claim in claims.items()}))
        object.__setattr__(self, "levels_digest", _hash(levels))

    def __getitem__(self, control: Control) -> Enforcement:
        found: Enforcement = getattr(self, control.value)
        return found

    def items(self) -> Iterator[tuple[Control, Enforcement]]:
        """Every control with its claim, in the order of the fields."""
        return ((control, self[control]) for control in Control)

    @property
    def claimed_digest(self) -> str:
        """The digest of all that is claimed, whatever it rests on by now: evidence comes, and gets old."""
        bare = {control.value: replace(claim, evidence=Evidence.declared) for control, claim in self.items()}
        return _hash({name: asdict(claim) for name, claim in bare.items()})

    def satisfies(self, requirements: Mapping[Control, Requirement]) -> tuple[Blocker, ...]:
        """Return every shortfall against `requirements`; empty means satisfied."""
        return tuple(
            _shortfall(control, self[control], asked)
            for control, asked in requirements.items()
            if not self[control].reaches(asked)
        )

    @property
    def isolation(self) -> str:
        """The weakest boundary that keeps code from files and network; `none` if there is no such wall."""
        return self.isolation_by(Evidence.declared)

    def isolation_by(self, evidence: Evidence) -> str:
        """The same, from claims alone that rest on so much evidence."""
        wall = Requirement(Level.enforced, "", evidence)
        if self.separate_kernel.level is Level.enforced and self.separate_kernel.reaches(wall):
            return "separate_kernel"
        walls = (self.filesystem_read_deny, self.filesystem_write_deny, self.network_deny)
        if not all(claim.reaches(wall) for claim in walls):
            return "none"
        return min((claim.boundary for claim in walls), key=_BOUNDARY_ORDER.index)

    def as_json(self) -> dict[str, Any]:
        """The form of `--json`: a mapping a control, and the digest."""
        return {**{control.value: asdict(claim) for control, claim in self.items()}, "digest": self.digest}


_BOUNDARY_ORDER: list[Boundary] = ["none", "supervisor", "language", "kernel", "separate_kernel", "remote"]


def _hash(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def _shortfall(control: Control, claim: Enforcement, asked: Requirement) -> Blocker:
    wanted, offered = asked.level.value, claim.level.value
    if claim.level.rank >= asked.level.rank:
        wanted, offered = f"{wanted} ({asked.evidence})", f"{offered} ({claim.evidence})"
    return Blocker(control.value, wanted, offered, asked.because)


def strongest(demands: Iterable[Mapping[Control, Level]]) -> dict[Control, Level]:
    """The highest level that any of `demands` asks of each control."""
    asked: dict[Control, Level] = {}
    for demand in demands:
        for control, level in demand.items():
            asked[control] = max(level, asked.get(control, level), key=lambda one: one.rank)
    return asked
