"""The contract of a run, control by control: asked, claimed, configured, observed, or unknown.

Rules this module keeps: the four are told apart as the records hold them; what nothing was observed of is
unknown, whatever was claimed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from licet.record import Record
from licet.workbench.history.bodies import texts


@dataclass(frozen=True, slots=True)
class ControlRow:
    """One control: the level asked for and the one claimed, what was set up and what was seen of it.

    None where a record says nothing. `unknown` says that it was asked for and nothing was observed of it.
    """

    control: str
    asked: str | None
    claimed: str | None
    configured: str | None
    observed: str | None
    unknown: bool

    @property
    def short(self) -> bool:
        """Whether less is claimed than was asked for, as the records stand."""
        return self.asked is not None and self.claimed not in (self.asked, "enforced", "not_applicable")


def of_run(records: Iterable[Record]) -> tuple[ControlRow, ...]:
    """The controls of one run: those that were asked for, then the others, each group by name."""
    bodies: dict[str, Mapping[str, Any]] = {one.entry.kind: one.entry.body for one in records}
    asked = _mapping(bodies, "selection", "required")
    claimed = _mapping(bodies, "execution", "claimed")
    configured = _mapping(bodies, "result", "configured")
    observed = _mapping(bodies, "result", "observed")
    unknown = set(texts(bodies.get("result", {}).get("unknown")))
    names = sorted(
        {*asked, *claimed, *configured, *observed, *unknown}, key=lambda one: (one not in asked, one)
    )
    return tuple(
        ControlRow(
            control=name,
            asked=_text(asked.get(name)),
            claimed=_text(claimed.get(name)),
            configured=_text(configured.get(name)),
            observed=_text(observed.get(name)),
            unknown=name in unknown,
        )
        for name in names
    )


def _mapping(bodies: Mapping[str, Mapping[str, Any]], kind: str, name: str) -> Mapping[str, Any]:
    found = bodies.get(kind, {}).get(name)
    return found if isinstance(found, dict) else {}


def _text(value: object) -> str | None:
    return None if value is None else str(value)
