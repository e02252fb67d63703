"""Reading the bodies of records.

Rules this module keeps: a body may hold anything; what is missing or of another type is None or left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_UNKNOWN = "(unknown)"


def text(body: Mapping[str, Any], name: str) -> str | None:
    """The text under a key."""
    value = body.get(name)
    return value if isinstance(value, str) else None


def line(value: object) -> int | None:
    """The number of a line."""
    return value if type(value) is int else None


def mappings(value: object) -> list[Mapping[str, Any]]:
    """The mappings in a list."""
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, (list, tuple)) else []


def texts(value: object) -> list[str]:
    """The texts in a list."""
    return [one for one in value if isinstance(one, str)] if isinstance(value, (list, tuple)) else []


def action_and_target(intent: str) -> tuple[str, str | None]:
    """The two parts of an intent as records spell it; a target that was not known is None."""
    action, _, target = intent.partition(" ")
    return action, None if target in ("", _UNKNOWN) else target
