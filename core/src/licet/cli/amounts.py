"""Limits as people write them: with a unit, and exact, so that they could stand in a policy; and ages."""

from __future__ import annotations

_TIMES = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))
_SIZES = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))
_COUNTS = ("processes", "recursion", "tool_calls")


def limit(name: str, value: float) -> str:
    """The limit `name` with its unit: `9 min`, `1.5 s`, `256 MiB`, or a plain count."""
    if name in _COUNTS:
        return str(value)
    units = _TIMES if name in ("wall_time", "cpu_time") else _SIZES
    size, unit = next((one for one in units if value >= one[0] and value % one[0] == 0), units[-1])
    amount = value / size
    return f"{int(amount) if amount == int(amount) else amount} {unit}"


def ago(seconds: float) -> str:
    """How long ago something was: `just now`, `5 min ago`, `2 h ago`, `3 d ago`."""
    for size, unit in _TIMES[:-1]:
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return "just now"
