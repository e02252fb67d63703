"""The time of a rule: days, hours, a span, each read in a time zone that the policy names.

Rules this module keeps:

- nothing local is read without `zone`; a misspelt zone or weekday is an error with the nearest name;
- all that one window states has to hold; of a list of windows, any;
- hours that pass midnight belong to the day on which they begin; an end is exclusive;
- a window that can never hold is an error;
- where the clock is put back, both passes through an hour count, and a span that begins or ends in one is
  the longer of the two it may mean: a window only ever tightens.
"""

from __future__ import annotations

import re
import zoneinfo
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from licet.errors import InvalidPolicy, Position
from licet.policy.advice import nearest
from licet.policy.truth import Truth, certain, either
from licet.policy.yaml import Fields, Items

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
KEYS = ("days", "hours", "from", "until", "zone")

_HOURS = re.compile(r"([0-9]{2}):([0-9]{2})\s*-\s*([0-9]{2}):([0-9]{2})", re.ASCII)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_DATETIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}(?::[0-9]{2})?([Zz]|[+-][0-9]{2}:[0-9]{2})?", re.ASCII
)
OF_THE_HOST = frozenset(("localtime", "posixrules", ""))
"""Names that mean another zone on every machine, or none."""
_SHORT_SPAN = timedelta(days=8)
_MINUTE = timedelta(minutes=1)
_EARLIEST_ZONE, _LATEST_ZONE = timedelta(hours=14), timedelta(hours=-12)


@dataclass(frozen=True, slots=True)
class Window:
    """One window. `hours` are minutes of the day, the end before the start if they pass midnight."""

    days: frozenset[int] | None = None
    hours: tuple[tuple[int, int], ...] = ()
    begins: datetime | None = None
    ends: datetime | None = None
    zone: zoneinfo.ZoneInfo | None = None

    def holds(self, at: datetime) -> bool:
        """Whether an aware instant lies in it."""
        if self.begins is not None and at < self.begins:
            return False
        if self.ends is not None and at >= self.ends:
            return False
        if self.zone is None or (self.days is None and not self.hours):
            return True
        local = at.astimezone(self.zone)
        if not self.hours:
            return self._on(local.weekday())
        minute = local.hour * 60 + local.minute
        return any(self._within(hours, local.weekday(), minute) for hours in self.hours)

    def _within(self, hours: tuple[int, int], weekday: int, minute: int) -> bool:
        start, end = hours
        if start < end:
            return start <= minute < end and self._on(weekday)
        return (minute >= start and self._on(weekday)) or (minute < end and self._on((weekday - 1) % 7))

    def _on(self, weekday: int) -> bool:
        return self.days is None or weekday in self.days

    @property
    def empty(self) -> bool:
        """Whether no instant lies in it; only a short span can leave out all days and hours."""
        if self.begins is None or self.ends is None or self.ends - self.begins >= _SHORT_SPAN:
            return False
        at = self.begins
        while at < self.ends:
            if self.holds(at):
                return False
            at += _MINUTE
        return True


@dataclass(frozen=True, slots=True)
class During:
    """The windows of one rule; `text` is how the author may recognise them."""

    windows: tuple[Window, ...]
    text: str

    def holds(self, at: datetime) -> Truth:
        """Whether an aware instant lies in any of the windows; it is always known."""
        return either(certain(window.holds(at)) for window in self.windows)


@dataclass(frozen=True, slots=True)
class Moment:
    """An instant that a policy names, or a day somewhere on earth: then it lies between two instants."""

    first: datetime
    last: datetime

    def reached(self, at: datetime) -> Truth:
        """Whether it is that late at an aware instant; for a day, unknown while that depends on where."""
        if at >= self.last:
            return Truth.true
        return Truth.false if at < self.first else Truth.unknown


def parse_during(tree: object, file: str, where: Position) -> During:
    """Read the key `during` of a rule: one window, or a list of them; `where` is the place of the key.

    Raises:
        InvalidPolicy: with the place of what is wrong, and the nearest name.
    """
    if isinstance(tree, Items) and tree:
        windows = tuple(
            _window(one, file, Position(file, *p)) for one, p in zip(tree, tree.places, strict=True)
        )
        return During(windows, _shown(tree))
    return During((_window(tree, file, where),), _shown([tree]))


def _shown(trees: list[Any]) -> str:
    def plain(value: object) -> str:
        return f"[{', '.join(map(str, value))}]" if isinstance(value, list) else str(value)

    return "; ".join(", ".join(f"{key}: {plain(value)}" for key, value in tree.items()) for tree in trees)


def _window(tree: object, file: str, where: Position) -> Window:
    if not isinstance(tree, Fields) or not tree:
        raise InvalidPolicy(
            "`during` is a mapping, or a list of mappings of which one has to hold",
            where=where,
            advice="such as `during: {days: [sat, sun], zone: Europe/Berlin}`",
        )
    places = {key: Position(file, *place) for key, place in tree.places.items()}
    for key in tree:
        if key not in KEYS:
            raise InvalidPolicy(
                f"unknown key `{key}` of `during`", where=places[key], advice=nearest(key, KEYS)
            )
    if set(tree) == {"zone"}:
        raise InvalidPolicy(
            "`during` names a zone and no time", where=where, advice="add `days`, `hours`, `from` or `until`"
        )
    zone = _zone(tree["zone"], places["zone"]) if "zone" in tree else None
    if zone is None:
        for key in ("days", "hours", "from", "until"):
            if key in tree and not (key in ("from", "until") and _has_offset(tree[key])):
                raise InvalidPolicy(
                    f"`{key}` is read on some clock, and `during` names no zone",
                    where=places[key],
                    advice="add `zone: Europe/Berlin`, or `zone: UTC`",
                )
    window = Window(
        _days(tree["days"], places["days"]) if "days" in tree else None,
        _all_hours(tree["hours"], places["hours"]) if "hours" in tree else (),
        _bound(tree["from"], zone, min, places["from"]) if "from" in tree else None,
        _bound(tree["until"], zone, max, places["until"]) if "until" in tree else None,
        zone,
    )
    if window.begins is not None and window.ends is not None and window.begins >= window.ends:
        raise InvalidPolicy(
            f"`from` {tree['from']} is not before `until` {tree['until']}", where=places["from"]
        )
    if window.empty:
        raise InvalidPolicy("no day and hour of `during` lies in its span", where=where)
    return window


def _zone(name: object, where: Position) -> zoneinfo.ZoneInfo:
    try:
        if isinstance(name, str) and name not in OF_THE_HOST:
            return zoneinfo.ZoneInfo(name)
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        pass
    raise InvalidPolicy(f"unknown time zone `{name}`", where=where, advice=zone_advice(str(name)))


def zone_advice(name: str) -> str:
    """What to write instead of a name that is no time zone."""
    known = sorted(zoneinfo.available_timezones() - OF_THE_HOST)
    if not known:
        return "this machine has no time zone data; install the package `tzdata`"
    near = nearest(name, known)
    return near if near.startswith("did") else "write a name such as `Europe/Berlin` or `UTC`"


def _days(value: object, where: Position) -> frozenset[int]:
    found: set[int] = set()
    for one in _listed(value):
        first, dash, last = (one if isinstance(one, str) else str(one)).strip().lower().partition("-")
        start = _day(first.strip(), where)
        end = _day(last.strip(), where) if dash else start
        found.update((start + step) % 7 for step in range((end - start) % 7 + 1))
    if not found:
        raise InvalidPolicy("`days` is empty", where=where, advice=f"known are {', '.join(DAYS)}")
    return frozenset(found)


def _day(name: str, where: Position) -> int:
    if name not in DAYS:
        advice = nearest(name[:3] if name[:3] in DAYS else name, DAYS)
        raise InvalidPolicy(f"unknown weekday `{name}`", where=where, advice=advice)
    return DAYS.index(name)


def _all_hours(value: object, where: Position) -> tuple[tuple[int, int], ...]:
    found = tuple(_hours(one, where) for one in _listed(value))
    if not found:
        raise InvalidPolicy("`hours` is empty", where=where, advice="such as `09:00-17:30`")
    return found


def _hours(text: object, where: Position) -> tuple[int, int]:
    match = _HOURS.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        raise _no_hours(text, where)
    hour, minute, last_hour, last_minute = map(int, match.groups())
    start, end = hour * 60 + minute, last_hour * 60 + last_minute
    if minute > 59 or last_minute > 59 or start >= 1440 or end > 1440:
        raise _no_hours(text, where)
    if start == end:
        raise InvalidPolicy(
            f"`{text}` holds no time", where=where, advice="for the whole day, leave `hours` out"
        )
    return start, end


def _no_hours(text: object, where: Position) -> InvalidPolicy:
    return InvalidPolicy(
        f"expected hours such as `09:00-17:30`, found `{text}`",
        where=where,
        advice="two digits each, from 00:00 to 24:00; an end before the start lies on the next day",
    )


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _has_offset(text: object) -> bool:
    match = _DATETIME.fullmatch(text.strip()) if isinstance(text, str) else None
    return match is not None and match[1] is not None


def _bound(text: object, zone: zoneinfo.ZoneInfo | None, pick: Any, where: Position) -> datetime:
    found = _read(text, where)
    if isinstance(found, datetime) and found.tzinfo is not None:
        return found.astimezone(UTC)
    local = found if isinstance(found, datetime) else datetime.combine(found, time())
    try:
        either_pass = [local.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)]
    except OverflowError:
        raise _no_moment(text, where) from None
    picked: datetime = pick(either_pass)
    return picked


def parse_moment(text: object, where: Position) -> Moment:
    """Read the value of `before` or `after`: an instant with its offset, or a day.

    Raises:
        InvalidPolicy: it is neither.
    """
    found = _read(text, where)
    if not isinstance(found, datetime):
        midnight = datetime.combine(found, time(), UTC)
        try:
            return Moment(midnight - _EARLIEST_ZONE, midnight - _LATEST_ZONE)
        except OverflowError:
            raise _no_moment(text, where) from None
    if found.tzinfo is None:
        raise InvalidPolicy(
            f"`{text}` says no offset from UTC, so it is another instant in every zone",
            where=where,
            advice=f"write `{text}Z`, or `{text}+01:00`",
        )
    return Moment(found, found)


def _read(text: object, where: Position) -> datetime | date:
    plain = text.strip() if isinstance(text, str) else ""
    try:
        if _DATE.fullmatch(plain):
            return date.fromisoformat(plain)
        if _DATETIME.fullmatch(plain):
            found = datetime.fromisoformat(plain.upper())
            return found if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise _no_moment(text, where)


def _no_moment(text: object, where: Position) -> InvalidPolicy:
    return InvalidPolicy(
        f"expected a date or a time, found `{text}`",
        where=where,
        advice="such as `2026-03-01`, `2026-03-01T12:00` or `2026-03-01T12:00:00+01:00`",
    )
