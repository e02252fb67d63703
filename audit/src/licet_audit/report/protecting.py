"""What stood between a run and its host: asked, offered, configured, observed, unknown, and the evidence.

Rules this module keeps:

- the five columns are never merged: a claim is not an observation;
- what was asked for and not observed is called unknown, also where the record of the result is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from licet.record import Record
from licet.workbench.history import bodies

from licet_audit import controls
from licet_audit.controls import ControlRow
from licet_audit.report.safe import Part, part

_MOST = 100


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
class Levels:
    """The controls of one level."""

    level: str
    controls: Part[str]


@dataclass(frozen=True, slots=True)
class Protecting:
    """The protection of one run; `wanted` is what was asked for, `besides` what is only offered."""

    backend: str | None
    version: str | None
    isolation: str | None
    contract: str | None
    plan: str | None
    evidence: str | None
    rows: Part[ControlRow]
    wanted: tuple[Levels, ...]
    besides: tuple[Levels, ...]
    candidates: Part[Candidate]
    receipts: Part[Receipt]
    opened: tuple[str, ...]


def protecting(records: Sequence[Record]) -> Protecting:
    """Read what the records of a run say of its protection."""
    selection = _last(records, "selection")
    execution = _last(records, "execution")
    rows = controls.of_run(records)
    return Protecting(
        backend=bodies.text(execution, "backend") or bodies.text(selection, "backend"),
        version=bodies.text(execution, "version"),
        isolation=bodies.text(execution, "isolation"),
        contract=bodies.text(execution, "contract"),
        plan=bodies.text(execution, "plan_digest") or bodies.text(selection, "plan_digest"),
        evidence=bodies.text(selection, "evidence"),
        rows=part((row for row in rows if _matters(row)), _MOST),
        wanted=_levels((row.asked, row.control) for row in rows),
        besides=_levels((row.claimed, row.control) for row in rows if not _matters(row)),
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


def _matters(row: ControlRow) -> bool:
    """Whether more is known of it than that the backend offers it."""
    return row.unknown or not (row.asked is None and row.configured is None and row.observed is None)


def _levels(named: Iterable[tuple[str | None, str]]) -> tuple[Levels, ...]:
    """Controls by their level, those without one left out."""
    found: dict[str, list[str]] = {}
    for level, control in named:
        if level is not None:
            found.setdefault(level, []).append(control)
    return tuple(Levels(level, part(found[level], _MOST)) for level in list(found)[:_MOST])


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


def _last(records: Sequence[Record], kind: str) -> Mapping[str, Any]:
    return next((one.entry.body for one in reversed(records) if one.entry.kind == kind), {})
