"""Figures of a report as shapes: plain numbers in, rectangles with their texts out.

Rules this module keeps:

- a drawing says nothing that the numbers beside it don't, and is described for who can't see it;
- shapes hold positions and fixed classes; every text stands beside the drawing, so that it is never scaled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

MOST_COLUMNS = 60
MOST_BARS = 12

_UNITS = (
    ("minute", timedelta(minutes=1), "%Y-%m-%d %H:%M"),
    ("ten minutes", timedelta(minutes=10), "%Y-%m-%d %H:%M"),
    ("hour", timedelta(hours=1), "%Y-%m-%d %H:00"),
    ("six hours", timedelta(hours=6), "%Y-%m-%d %H:00"),
    ("day", timedelta(days=1), "%Y-%m-%d"),
    ("week", timedelta(weeks=1), "%Y-%m-%d"),
)
_EPOCH = datetime(2001, 1, 1)  # a Monday; times of records are all UTC


@dataclass(frozen=True, slots=True)
class Bar:
    """One line of a table with a bar; `width` is in percent of the longest."""

    label: str
    count: int
    width: str
    style: str = ""


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a column, in units of the drawing: 100 high, one wide a column."""

    x: str
    y: str
    width: str
    height: str
    style: str


@dataclass(frozen=True, slots=True)
class Column:
    """One stretch of time with its numbers, in the order of the chart's names."""

    label: str
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Columns:
    """Stacked columns over time; `names` are (style, text), bottom first, `unit` is what a column covers."""

    unit: str
    width: int
    top: int
    names: tuple[tuple[str, str], ...]
    segments: tuple[Segment, ...]
    columns: tuple[Column, ...]

    @property
    def ticks(self) -> tuple[str, ...]:
        """The first, the middle and the last stretch of time."""
        labels = [column.label for column in self.columns]
        return tuple(dict.fromkeys((labels[0], labels[len(labels) // 2], labels[-1]))) if labels else ()


def bars(
    counts: Mapping[str, int], styles: Mapping[str, str] | None = None, most: int = MOST_BARS
) -> list[Bar]:
    """The greatest counts, greatest first; what is left is summed up in one last line, without a bar."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    left = sum(count for _, count in ordered[most:])
    highest = ordered[0][1] if ordered else 1
    found = [_bar(label, count, highest, (styles or {}).get(label, "")) for label, count in ordered[:most]]
    if left:
        found.append(Bar(f"{len(ordered) - most} others", left, "0", "rest"))
    return found


def in_order(counts: Iterable[tuple[str, int]]) -> list[Bar]:
    """Counts as they are ordered already, such as by length of time."""
    whole = list(counts)
    highest = max((count for _, count in whole), default=0) or 1
    return [_bar(label, count, highest, "") for label, count in whole]


def over_time(minutes: Mapping[tuple[str, str], int], names: Sequence[tuple[str, str]]) -> Columns:
    """Columns from counts by minute (`2026-11-30T10:27`) and style; a time without runs is empty.

    Times that are none are left out.
    """
    found = [
        (moment, style, count) for (minute, style), count in minutes.items() if (moment := _moment(minute))
    ]
    if not found:
        return Columns("day", 1, 0, tuple(names), (), ())
    first, last = min(moment for moment, _, _ in found), max(moment for moment, _, _ in found)
    unit, step, spelling = _unit(first, last)
    start = _floor(first, step)
    size = (_floor(last, step) - start) // step + 1
    stacks: Counter[tuple[int, str]] = Counter()
    for moment, style, count in found:
        stacks[(moment - start) // step, style] += count
    rows = [tuple(stacks[place, style] for style, _ in names) for place in range(size)]
    top = max(map(sum, rows))
    labels = [(start + place * step).strftime(spelling) for place in range(size)]
    return Columns(
        unit,
        size,
        top,
        tuple(names),
        tuple(_segments(rows, top, [style for style, _ in names])),
        tuple(map(Column, labels, rows)),
    )


def _segments(rows: Sequence[tuple[int, ...]], top: int, styles: Sequence[str]) -> Iterable[Segment]:
    wide = 0.86 if len(rows) > 1 else 0.3
    for place, row in enumerate(rows):
        below = 0
        for count, style in zip(row, styles, strict=True):
            if count:
                height = 100 * count / top
                y = 100 - 100 * (below + count) / top
                x = place + (1 - wide) / 2
                yield Segment(f"{x:.2f}", f"{y:.2f}", f"{wide:.2f}", f"{height:.2f}", style)
            below += count


def _unit(first: datetime, last: datetime) -> tuple[str, timedelta, str]:
    for unit, step, spelling in _UNITS:
        if (_floor(last, step) - _floor(first, step)) // step < MOST_COLUMNS:
            return unit, step, spelling
    weeks = (last - first) // (timedelta(weeks=1) * (MOST_COLUMNS - 1)) + 1
    return f"{weeks} weeks", timedelta(weeks=weeks), "%Y-%m-%d"


def _floor(moment: datetime, step: timedelta) -> datetime:
    return _EPOCH + (moment - _EPOCH) // step * step


def _moment(minute: str) -> datetime | None:
    try:
        return datetime.strptime(minute, "%Y-%m-%dT%H:%M")
    except ValueError:
        return None


def _bar(label: str, count: int, highest: int, style: str) -> Bar:
    return Bar(label, count, f"{max(100 * count / highest, 0.5) if count else 0:.1f}", style)
