"""Times as command lines give them: a date, a time, or an age.

Rules this module keeps: times are UTC unless they say otherwise; they are spelled as records spell theirs, so
that texts compare like times.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import click
from licet.errors import UsageError
from licet.output import bounded

BEFORE_ALL = "0"
"""What is less than the time of any record."""
_AGO = re.compile(r"\d{1,9}(?:\.\d{1,3})?(?:s|m|min|h|d)", re.ASCII)
_SHOWN = 200  # characters of what was given


def moment(text: str, now: datetime, name: str) -> str:
    """The time that the option `name` gives.

    Raises:
        UsageError: it is none.
    """
    try:
        if _AGO.fullmatch(text):
            from licet.units import duration

            return ago(duration(text), now)
        return spelled(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        raise UsageError(
            f"`--{name} {bounded(text, _SHOWN)}` is no time",
            advice="give a date (2026-11-30), a time in UTC (2026-11-30T17:00), or an age (2h, 7d)",
        ) from None


def ago(seconds: float, now: datetime) -> str:
    """The time so long before `now`.

    Raises:
        OverflowError: no calendar reaches back to it.
    """
    return spelled(now - timedelta(seconds=seconds))


def spelled(at: datetime) -> str:
    """A time as records spell it.

    Raises:
        OverflowError: in UTC it is in no calendar.
    """
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond:06d}000Z" if at.year > 999 else BEFORE_ALL


def as_moment(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Read the value of an option that is a time.

    Raises:
        UsageError: it is none, or no time that a record could have.
    """
    if value is None:
        return None
    found = moment(value, datetime.now(UTC), str(parameter.name))
    if found == BEFORE_ALL:
        raise UsageError(f"`--{parameter.name}` is before any record", advice="give a time that records have")
    return found
