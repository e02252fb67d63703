"""Limits as people write them, and ages."""

from __future__ import annotations

from licet.units import show_limit

limit = show_limit

_TIMES = ((86400, "d"), (3600, "h"), (60, "min"))


def ago(seconds: float) -> str:
    """How long ago something was: `just now`, `5 min ago`, `2 h ago`, `3 d ago`."""
    for size, unit in _TIMES:
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return "just now"
