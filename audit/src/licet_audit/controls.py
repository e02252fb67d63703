"""The contract of a run, control by control: asked, claimed, configured, observed, or unknown.

Rules this module keeps: the four are told apart as the records hold them; what nothing was observed of is
unknown, whatever was claimed, also where the process died or has not ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from licet.contract import Control
from licet.record import Record
from licet.units import show_limit
from licet.workbench.history.bodies import texts

_TIMES = frozenset({Control.timeout.value, Control.cpu_time_limit.value})
_SIZES = frozenset(
    {
        Control.memory_limit.value,
        Control.stdout_limit.value,
        Control.stderr_limit.value,
        Control.filesystem_bytes_limit.value,
    }
)


@dataclass(frozen=True, slots=True)
class ControlRow:
    """One control: the level asked for and the one claimed, what was set up and what was seen of it.

    A measure that was set up has its unit. None where a record says nothing. `unknown` says that it was asked
    for and nothing was observed of it.
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
    ran = bodies.get("result", {}).get("executed") is not False  # or may have, if its process died
    names = sorted(
        {*asked, *claimed, *configured, *observed, *unknown}, key=lambda one: (one not in asked, one)
    )
    return tuple(
        ControlRow(
            control=name,
            asked=_text(asked.get(name)),
            claimed=_text(claimed.get(name)),
            configured=_measured(name, configured.get(name)),
            observed=_text(observed.get(name)),
            unknown=name in unknown or (ran and name in asked and name not in observed),
        )
        for name in names
    )


def _mapping(bodies: Mapping[str, Mapping[str, Any]], kind: str, name: str) -> Mapping[str, Any]:
    found = bodies.get(kind, {}).get(name)
    return found if isinstance(found, dict) else {}


def _measured(control: str, value: object) -> str | None:
    """A time or a size with its unit, all else as it was recorded."""
    if value is None or control not in _TIMES | _SIZES:
        return _text(value)
    try:
        return show_limit("wall_time" if control in _TIMES else "memory", float(str(value)))
    except (ValueError, OverflowError):
        return str(value)


def _text(value: object) -> str | None:
    return None if value is None else str(value)
