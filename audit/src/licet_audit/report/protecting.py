"""What stood between a run and its host: asked, offered, configured, observed, unknown, and the evidence.

Rules this module keeps:

- the five columns are never merged: a claim is not an observation;
- what was asked for and not observed is called unknown, also where the record of the result is missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from licet.contract import Control
from licet.record import Record
from licet.workbench.history import bodies

from licet_audit.report.acting import quantity
from licet_audit.report.safe import Part, part

_MOST = 100
_MEASURED = frozenset(
    {
        Control.timeout.value,
        Control.cpu_time_limit.value,
        Control.memory_limit.value,
        Control.stdout_limit.value,
        Control.stderr_limit.value,
        Control.filesystem_bytes_limit.value,
    }
)
_ORDER = {control.value: place for place, control in enumerate(Control)}


@dataclass(frozen=True, slots=True)
class Row:
    """One control of a run; None where the records say nothing."""

    control: str
    asked: str | None
    offered: str | None
    configured: str | None
    observed: str | None
    unknown: bool

    @property
    def matters(self) -> bool:
        """Whether more is known of it than that the backend offers it."""
        return self.unknown or not (self.asked is None and self.configured is None and self.observed is None)


@dataclass(frozen=True, slots=True)
class Receipt:
    """What one attack on the backend showed."""

    attack: str
    outcome: str
    observed: str
    twin: str
    digest: str

    @property
    def tone(self) -> str:
        """How its outcome is shown."""
        return {"held": "good", "leaked": "bad"}.get(self.outcome, "warn")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A backend that was looked at, and what it fell short of."""

    name: str
    chosen: bool
    blockers: Part[str]
    refuted: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Protecting:
    """The protection of one run."""

    backend: str | None
    version: str | None
    isolation: str | None
    contract: str | None
    plan: str | None
    evidence: str | None
    rows: Part[Row]
    candidates: Part[Candidate]
    receipts: Part[Receipt]
    opened: tuple[str, ...]


def protecting(records: Sequence[Record]) -> Protecting:
    """Read what the records of a run say of its protection."""
    selection = _last(records, "selection")
    execution = _last(records, "execution")
    result = _last(records, "result")
    rows = _rows(selection, execution, result)
    return Protecting(
        backend=bodies.text(execution, "backend") or bodies.text(selection, "backend"),
        version=bodies.text(execution, "version"),
        isolation=bodies.text(execution, "isolation"),
        contract=bodies.text(execution, "contract"),
        plan=bodies.text(execution, "plan_digest") or bodies.text(selection, "plan_digest"),
        evidence=bodies.text(selection, "evidence"),
        rows=part(rows, _MOST),
        candidates=part(
            (
                _candidate(one, selection.get("backend"))
                for one in bodies.mappings(selection.get("candidates"))
            ),
            _MOST,
        ),
        receipts=part(
            (
                _receipt(one)
                for record in records
                if record.entry.kind == "probe"
                for one in bodies.mappings(record.entry.body.get("results"))
            ),
            _MOST,
        ),
        opened=_opened(execution.get("opened")),
    )


def _rows(selection: Mapping[str, Any], execution: Mapping[str, Any], result: Mapping[str, Any]) -> list[Row]:
    asked, offered = _texts(selection.get("required")), _texts(execution.get("claimed"))
    observed = _texts(result.get("observed"))
    configured = {
        name: quantity(name, value) if name in _MEASURED else value
        for name, value in _texts(result.get("configured")).items()
    }
    unknown = set(bodies.texts(result.get("unknown")))
    if execution and not result:
        unknown |= asked.keys()
    names = asked.keys() | offered.keys() | configured.keys() | observed.keys() | unknown
    rank = {name: (name not in asked, _ORDER.get(name, len(_ORDER)), name) for name in names}
    return [
        Row(
            name,
            asked.get(name),
            offered.get(name),
            configured.get(name),
            observed.get(name),
            name in unknown,
        )
        for name in sorted(names, key=rank.__getitem__)
    ]


def _candidate(one: Mapping[str, Any], chosen: object) -> Candidate:
    name = bodies.text(one, "name") or "?"
    blockers = part(bodies.texts(one.get("blockers")), _MOST)
    return Candidate(name, name == chosen, blockers, tuple(bodies.texts(one.get("refuted"))[:_MOST]))


def _receipt(one: Mapping[str, Any]) -> Receipt:
    told = (bodies.text(one, name) or "?" for name in ("attack", "outcome", "observed", "twin", "digest"))
    return Receipt(*told)


def _opened(value: object) -> tuple[str, ...]:
    if not isinstance(value, Mapping):
        return ()
    actions = {"read": "read", "write": "write", "network": "network", "tools": "tool"}
    found = [f"{word} {target}" for name, word in actions.items() for target in bodies.texts(value.get(name))]
    return (*found[:_MOST], *(("shell",) if value.get("shell") is True else ()))


def _texts(value: object) -> dict[str, str]:
    return {str(name): str(level) for name, level in value.items()} if isinstance(value, Mapping) else {}


def _last(records: Sequence[Record], kind: str) -> Mapping[str, Any]:
    return next((one.entry.body for one in reversed(records) if one.entry.kind == kind), {})
