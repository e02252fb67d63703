"""What the index knows of a run, gathered from its records.

Rules this module keeps:

- everything here stands in a record; content and digests of content do not;
- a body may hold anything: what is missing or of another type is None or left out;
- a run is for whom its first request says;
- a run is gathered record by record, so that an index can stop anywhere and go on later.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from licet.approvals.telling import OVER
from licet.record import Record
from licet.workbench.history.bodies import action_and_target, mappings, text

UNFINISHED = "unfinished"
"""The end of a run that has no result yet."""
WAITING = "waiting"
DENIED = "approval_denied"  # as the result says of a run that was there to hear of it
"""The end of a run that waits for an approval."""
PROBE = "probe"


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run; what its records do not say is None or empty.

    `time` is that of its first record, RFC 3339 in UTC. `effect` is what was decided, or `probe` for attacks
    on a backend that belong to no run. `backend` and `isolation` are those that ran it, `termination` is
    `unfinished` or `waiting` until there is a result, `duration` is seconds of wall time as the backend
    measured it. `rules` are the rules that applied, to the request or to a call, `hosts` and `tools` those
    that were asked for or used, `denied` the intents that were refused, before it ran or while it did.
    `approvals` are the ids of those that it asked for or used, `approval_state` is what became of the last of
    them, `approvers` are the persons whose answers count. `place` orders runs: that of the first record,
    counted from the beginning of the log as it is now.
    """

    run_id: str
    first_seq: int
    last_seq: int
    time: str
    subject: str | None
    subject_type: str | None
    tenant: str | None
    on_behalf_of: str | None
    effect: str | None
    backend: str | None
    isolation: str | None
    termination: str | None
    executed: bool
    duration: float | None
    policy: str | None
    rules: tuple[str, ...]
    hosts: tuple[str, ...]
    tools: tuple[str, ...]
    denied: tuple[str, ...]
    approvals: tuple[str, ...]
    approvers: tuple[str, ...]
    approval_state: str | None
    place: int


FIELDS = tuple(one.name for one in fields(RunRow))
LISTS = ("rules", "hosts", "tools", "denied", "approvals", "approvers")
_STATES = {
    "asked": "pending",
    "executed": "consumed",
    "failed_to_start": "consumed",
    "unknown": "consumed",
} | {name: name for name in ("granted", "denied", "expired", "withdrawn", "revoked", "consumed")}
"""The state of an approval after an event."""


@dataclass(slots=True)
class Gathered:
    """A run as far as its records were seen; fields as those of `RunRow`, lists as keys in order."""

    run_id: str
    first_seq: int
    last_seq: int
    time: str
    place: int
    subject: str | None = None
    subject_type: str | None = None
    tenant: str | None = None
    on_behalf_of: str | None = None
    effect: str | None = None
    backend: str | None = None
    isolation: str | None = None
    termination: str | None = UNFINISHED
    executed: bool = False
    duration: float | None = None
    policy: str | None = None
    rules: dict[str, None] = field(default_factory=dict)
    hosts: dict[str, None] = field(default_factory=dict)
    tools: dict[str, None] = field(default_factory=dict)
    denied: dict[str, None] = field(default_factory=dict)
    approvals: dict[str, None] = field(default_factory=dict)
    approvers: dict[str, None] = field(default_factory=dict)
    approval_state: str | None = None

    @classmethod
    def of(cls, row: RunRow) -> Gathered:
        """Go on where a row stopped."""
        values = {name: getattr(row, name) for name in FIELDS}
        return cls(**values | {name: dict.fromkeys(values[name]) for name in LISTS})

    def row(self) -> RunRow:
        """What is known now."""
        values = {name: getattr(self, name) for name in FIELDS}
        return RunRow(**values | {name: tuple(values[name]) for name in LISTS})

    def note(self, seq: int, kind: str, phase: str | None, body: Mapping[str, Any]) -> None:
        """Take in the next record of the run."""
        self.last_seq = seq
        match kind:
            case "request":
                self._asked(body.get("subject"))
            case "decision":
                self.effect, self.policy = text(body, "effect"), text(body, "policy")
                self._decided(body, mappings(body.get("verdicts")))
            case "probe" if self.subject is None:
                self.effect, self.backend = PROBE, text(body, "backend")
                self.termination = UNFINISHED if "results" not in body else f"{body.get('leaked')} refuted"
            case "execution":
                self.backend, self.isolation = text(body, "backend"), text(body, "isolation")
                self.executed = True
            case "tool_call" if phase == "before":
                self._called(body)
            case "access" if phase is None:
                self._accessed(body)
            case "approval":
                self._approved(body)
            case "result":
                self.termination = text(body, "termination")
                usage = body.get("usage")
                self.duration = seconds(usage.get("wall_time")) if isinstance(usage, dict) else None

    def _asked(self, subject: object) -> None:
        if isinstance(subject, dict) and self.subject is None and self.on_behalf_of is None:
            self.subject, self.subject_type = text(subject, "id"), text(subject, "type")
            self.tenant, self.on_behalf_of = text(subject, "tenant"), text(subject, "on_behalf_of")

    def _decided(self, body: Mapping[str, Any], verdicts: list[Mapping[str, Any]]) -> None:
        for hit in mappings(body.get("rules")):
            if hit.get("truth") != "false" and (name := text(hit, "rule")) is not None:
                self.rules[name] = None
        for verdict in verdicts:
            intent = text(verdict, "intent")
            if intent is None or verdict.get("source") == "granted":  # policy offers it, nobody asked
                continue
            self._wanted(*action_and_target(intent))
            if verdict.get("effect") == "deny":
                self.denied[intent] = None

    def _called(self, body: Mapping[str, Any]) -> None:
        if (name := text(body, "tool")) is not None:
            self.tools[name] = None
            if body.get("effect") == "deny":
                self.denied[f"tool {name}"] = None
        verdict = body.get("verdict")
        self._decided(body, [verdict] if isinstance(verdict, dict) else [])

    def _accessed(self, body: Mapping[str, Any]) -> None:
        action, target = text(body, "action"), text(body, "target")
        if action is not None and target is not None:
            self._wanted(action, target)
            if body.get("allowed") is not True:
                self.denied[f"{action} {target}"] = None

    def _approved(self, body: Mapping[str, Any]) -> None:
        event, approval, person = text(body, "event"), text(body, "approval"), body.get("person")
        if approval is not None:
            self.approvals[approval] = None
        if event in ("waiting", "resumed") and self.termination in (UNFINISHED, WAITING):
            self.termination = WAITING if event == "waiting" else UNFINISHED
        elif event in OVER and self.termination == WAITING:
            self.termination = DENIED
        if event == "answered" and body.get("counts") is True and isinstance(person, dict):
            if (who := text(person, "id")) is not None:
                self.approvers[who] = None
        elif event in _STATES and approval == next(reversed(self.approvals), None):
            self.approval_state = _STATES[event]

    def _wanted(self, action: str, target: str | None) -> None:
        if target is not None and action == "network":
            self.hosts[host_of(target)] = None
        elif target is not None and action == "tool":
            self.tools[target] = None


def host_of(endpoint: str) -> str:
    """The host of `HOST:PORT`, without the brackets of an IPv6 address."""
    host, colon, port = endpoint.rpartition(":")
    return host.removeprefix("[").removesuffix("]") if colon and not port.endswith("]") else endpoint


def seconds(value: object) -> float | None:
    """A duration as records hold it: text where it has a fraction; None for what is none."""
    if not isinstance(value, (str, int)) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and number >= 0 else None


def gathered(records: Iterable[Record]) -> list[RunRow]:
    """The runs in all records of a log, in memory; for logs that have no index."""
    runs: dict[str, Gathered] = {}
    for place, record in enumerate(records):
        entry = record.entry
        if entry.run_id:
            new = Gathered(entry.run_id, record.seq, record.seq, entry.time, place)
            run = runs.setdefault(entry.run_id, new)
            run.note(record.seq, entry.kind, entry.phase, entry.body)
    return [run.row() for run in runs.values()]
