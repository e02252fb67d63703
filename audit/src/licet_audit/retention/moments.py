"""Moments as people write them: a date, a date with a time, or how long ago."""

from __future__ import annotations

from datetime import UTC, date, datetime

from licet import units


def moment(text: str, now: float) -> str:
    """The moment that a text means, as records spell it: `2026-05-01`, `2026-05-01T10:00Z`, `90d` (ago).

    A date is its beginning; without a zone it is UTC. `now` is in seconds since the epoch.

    Raises:
        ValueError: it is none.
    """
    try:
        if len(text) == len("2026-05-01"):
            day = date.fromisoformat(text)
            return spelled(datetime(day.year, day.month, day.day, tzinfo=UTC))
        if text[:1].isdigit() and "-" in text:
            found = datetime.fromisoformat(text)
            return spelled(found if found.tzinfo else found.replace(tzinfo=UTC))
        return spelled(datetime.fromtimestamp(now - units.duration(text), UTC))
    except (ValueError, OverflowError, OSError):
        raise ValueError(
            f"`{text[:60]}` is no moment: write a date such as `2026-05-01`, a time such as "
            "`2026-05-01T10:00Z`, or how long ago, such as `90d`"
        ) from None


def spelled(when: datetime) -> str:
    """A moment as records spell it."""
    return f"{when.astimezone(UTC):%Y-%m-%dT%H:%M:%S}.{when.microsecond:06d}000Z"
