"""Durations and sizes as people write them: `60s`, `1.5m`, `2GiB`, `64kB`, or a plain number.

Rules this module keeps: a duration is seconds (float), a size is bytes (int); zero, negative, NaN and
infinite values are refused, since none of them can bound anything, and so is what a record can't hold
(2**53 and above); decimal fractions are exact, so `1.001MB` is 1001000 bytes.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache

_NUMBER = re.compile(r"(\d{1,20}(?:\.\d{1,20})?)\s*([A-Za-z]*)", re.ASCII)
_SECONDS: dict[str, int | Fraction] = {
    "": 1,
    "ms": Fraction(1, 1000),
    "s": 1,
    "m": 60,
    "min": 60,
    "h": 3600,
    "d": 86400,
}
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
        raise ValueError(f"`{_short(value)}` has the unknown unit `{unit}`; known are ms, s, m, h, d")
    return float(_bounded(number * _SECONDS[unit], value))


def size(value: object) -> int:
    """Read a size in bytes; raise `ValueError` with advice for anything else."""
    number, unit = _split(value, "a size such as `64KiB` or `2GiB`")
    if unit not in _BYTES:
        known = "B, kB, MB, GB, TB, KiB, MiB, GiB, TiB"
        raise ValueError(f"`{_short(value)}` has the unknown unit `{unit}`; known are {known}")
    amount = _bounded(number * _BYTES[unit], value)
    if amount.denominator != 1:
        raise ValueError(f"`{_short(value)}` is not a whole number of bytes")
    return int(amount)


def count(value: object) -> int:
    """Read a positive whole number; raise `ValueError` for anything else."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"expected a whole number, found `{_short(value)}`")
    return int(_bounded(Fraction(value), value))


def _split(value: object, expected: str) -> tuple[Fraction, str]:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError(f"expected {expected}, found `{_short(value)}`")
    if isinstance(value, float) and not math.isfinite(value):
        return Fraction(0), ""
    if not isinstance(value, str):
        return Fraction(value), ""
    match = _NUMBER.fullmatch(value.strip())
    if match is None:
        raise ValueError(f"expected {expected}, found `{_short(value)}`")
    return Fraction(match[1]), match[2]


def _bounded(number: Fraction, shown: object) -> Fraction:
    if not 0 < number < 2**53:
        raise ValueError(f"`{_short(shown)}` bounds nothing: a limit is a number above zero and below 2**53")
    return number


def _short(value: object) -> str:
    """What was found, bounded: a number can have more digits than Python agrees to write."""
    huge = isinstance(value, int) and value.bit_length() > 64
    text = f"a number of {value.bit_length()} bits" if huge and isinstance(value, int) else str(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


_EXACT_TIMES = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))
_EXACT_SIZES = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))
_COUNTED = ("processes", "recursion", "tool_calls")


def show_limit(name: str, value: float) -> str:
    """The limit `name` with its unit: `9 min`, `1.5 s`, `256 MiB`, or a plain count; exact."""
    if name in _COUNTED:
        return str(value)
    units = _EXACT_TIMES if name in ("wall_time", "cpu_time") else _EXACT_SIZES
    size, unit = next((one for one in units if value >= one[0] and value % one[0] == 0), units[-1])
    amount = value / size
    return f"{int(amount) if amount == int(amount) else amount} {unit}"


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


def show_age(seconds: float) -> str:
    """Write how long ago something was: `just now`, `5 min ago`, `2 h ago`, `3 d ago`."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return "just now"


def show_instant(ns: int) -> str:
    """Write a moment, in nanoseconds since the epoch, as records have it: RFC 3339 in UTC, nine digits."""
    seconds, rest = divmod(ns, 10**9)
    return f"{_second(seconds)}.{rest:09d}Z"


@lru_cache(maxsize=4)  # most records of a run are of one second
def _second(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"


def show_moment(seconds: float) -> str:
    """Write a moment, in seconds since the epoch, as RFC 3339 in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
