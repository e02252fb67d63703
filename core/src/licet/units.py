"""Durations and sizes as people write them: `60s`, `1.5m`, `2GiB`, `64kB`, or a plain number.

Rules this module keeps: a duration is seconds (float), a size is bytes (int); zero, negative, NaN and
infinite values are refused, since none of them can bound anything.
"""

from __future__ import annotations

import math
import re

_NUMBER = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", re.ASCII)
_SECONDS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES = {
    "": 1,
    "B": 1,
    "kB": 10**3,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}


def duration(value: object) -> float:
    """Read a duration in seconds; raise `ValueError` with advice for anything else."""
    number, unit = _split(value, "a duration such as `500ms`, `60s` or `2m`")
    if unit not in _SECONDS:
        raise ValueError(f"`{value}` has the unknown unit `{unit}`; known are ms, s, m, h, d")
    return _bounded(number * _SECONDS[unit], value)


def size(value: object) -> int:
    """Read a size in bytes; raise `ValueError` with advice for anything else."""
    number, unit = _split(value, "a size such as `64KiB` or `2GiB`")
    if unit not in _BYTES:
        raise ValueError(f"`{value}` has the unknown unit `{unit}`; known are B, kB, MB, GB, KiB, MiB, GiB")
    amount = _bounded(number * _BYTES[unit], value)
    if amount != int(amount):
        raise ValueError(f"`{value}` is not a whole number of bytes")
    return int(amount)


def count(value: object) -> int:
    """Read a positive whole number; raise `ValueError` for anything else."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"expected a whole number, found `{value}`")
    return int(_bounded(value, value))


def _split(value: object, expected: str) -> tuple[float, str]:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError(f"expected {expected}, found `{value}`")
    if not isinstance(value, str):
        return float(value), ""
    match = _NUMBER.fullmatch(value.strip())
    if match is None:
        raise ValueError(f"expected {expected}, found `{value}`")
    return float(match[1]), match[2]


def _bounded(number: float, shown: object) -> float:
    if math.isnan(number) or math.isinf(number) or number <= 0 or number > 2**53:
        raise ValueError(f"`{shown}` bounds nothing: a limit is a finite number above zero")
    return number


def show_size(amount: int) -> str:
    """Write a size for people: `41 MiB`, `812 B`."""
    scaled, unit = float(amount), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if scaled < 1024 or unit == "TiB":
            break
        scaled /= 1024
    return f"{scaled:.0f} {unit}" if scaled >= 10 or scaled == int(scaled) else f"{scaled:.1f} {unit}"


def show_duration(seconds: float) -> str:
    """Write a duration for people: `0.1 s`, `25 ms`, `2 h`."""
    if seconds < 0.1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"
