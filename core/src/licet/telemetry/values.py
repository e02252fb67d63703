"""What an attribute can hold, and how a value of a record becomes one.

Rules this module keeps:

- a span of ours has at most `MOST_ATTRIBUTES` attributes, and those that lead to its record come last: where
  a limit of the SDK evicts the oldest, they are what stays;
- a text has at most `MOST_CHARACTERS`, a list at most `MOST_ITEMS`, and what was cut says so; a hash is
  shorter, so it is never cut here;
- a record's body may hold anything, older versions wrote others: what has another type is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from licet.telemetry.names import ATTRIBUTES

Value = str | int | float | bool | tuple[str, ...]
Attributes = dict[str, Value]

MOST_ATTRIBUTES = 64
MOST_CHARACTERS = 256
MOST_ITEMS = 32
_CUT = "…"


def text(value: object) -> str:
    """A text, bounded."""
    shown = value if isinstance(value, str) else str(value)
    return shown if len(shown) <= MOST_CHARACTERS else shown[: MOST_CHARACTERS - 1] + _CUT


def texts(values: Iterable[object]) -> tuple[str, ...]:
    """A list of texts, bounded; its last item says how many more there are."""
    every = list(values)
    if len(every) <= MOST_ITEMS:
        return tuple(map(text, every))
    return (*map(text, every[: MOST_ITEMS - 1]), f"{_CUT} {len(every) - MOST_ITEMS + 1} more")


def value_of(name: str, value: object) -> Value | None:
    """`value` as the attribute `name` holds it; None if it has another type."""
    match ATTRIBUTES[name].type:
        case "string":
            return text(value) if isinstance(value, str) else None
        case "int":
            return value if type(value) is int and -(2**63) <= value < 2**63 else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "double":
            return _number(value)
        case "string[]":
            return texts(value) if isinstance(value, (list, tuple)) and value else None


def mapped(body: Mapping[str, Any], table: Mapping[str, str]) -> Attributes:
    """The fields of a body that `table` gives a name: paths with dots, to names of attributes."""
    found = ((name, value_of(name, at(body, path))) for path, name in table.items())
    return {name: value for name, value in found if value is not None}


def at(body: Mapping[str, Any], path: str) -> Any:
    """What is at a path with dots in a body; None if nothing is."""
    inner: Any = body
    for key in path.split("."):
        if not isinstance(inner, Mapping):
            return None
        inner = inner.get(key)
    return inner


def objects(body: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """The objects in a list of a body."""
    found = body.get(key)
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, (list, tuple)) else []


def _number(value: object) -> float | None:
    """A number; records spell those with a fraction as text."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if abs(number) < 1e15 else None  # neither infinite nor no number
