"""Windows of time, against a slow reference that walks the clock minute by minute."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from licet.errors import InvalidPolicy, Position
from licet.policy.during import DAYS, During, Moment, parse_during, parse_moment
from licet.policy.truth import Truth
from licet.policy.yaml import load

MINUTE = timedelta(minutes=1)


def during(text: str) -> During:
    tree = load(f"during: {text}\n".encode(), "p.yaml")
    return parse_during(tree["during"], "p.yaml", Position("p.yaml", *tree.places["during"]))


def holds(text: str, at: str) -> bool:
    return during(text).holds(datetime.fromisoformat(at)) is Truth.true


def refusal(text: str) -> tuple[str, str | None]:
    with pytest.raises(InvalidPolicy) as problem:
        during(text)
    return str(problem.value), problem.value.advice


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ("2026-03-06T22:59:00+00:00", False),  # Friday 23:59 in Berlin
        ("2026-03-06T23:00:00+00:00", True),  # Saturday 00:00
        ("2026-03-08T22:59:00+00:00", True),  # Sunday 23:59
        ("2026-03-08T23:00:00+00:00", False),  # Monday 00:00
    ],
)
def test_days_are_those_of_the_zone(at: str, expected: bool) -> None:
    assert holds("{days: [sat, sun], zone: Europe/Berlin}", at) is expected


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ("2026-03-02T08:59:59+00:00", False),
        ("2026-03-02T09:00:00+00:00", True),
        ("2026-03-02T17:29:59+00:00", True),
        ("2026-03-02T17:30:00+00:00", False),
        ("2026-03-07T12:00:00+00:00", False),
    ],
)
def test_the_end_of_hours_is_exclusive(at: str, expected: bool) -> None:
    assert holds("{days: mon-fri, hours: 09:00-17:30, zone: UTC}", at) is expected


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ("2026-03-06T22:00:00+00:00", True),  # Friday night
        ("2026-03-07T05:59:00+00:00", True),  # Saturday morning, of Friday's window
        ("2026-03-07T06:00:00+00:00", False),
        ("2026-03-07T22:00:00+00:00", False),  # Saturday night is not in the list
        ("2026-03-06T05:00:00+00:00", False),  # Friday morning belongs to Thursday
    ],
)
def test_hours_past_midnight_belong_to_the_day_they_begin(at: str, expected: bool) -> None:
    assert holds("{days: fri, hours: 22:00-06:00, zone: UTC}", at) is expected


def test_days_may_be_a_range_past_the_week() -> None:
    window = during("{days: [sat-mon, wed], zone: UTC}").windows[0]
    assert window.days == frozenset({5, 6, 0, 2})


def test_several_hours_and_several_windows_are_alternatives() -> None:
    text = "[{hours: [08:00-09:00, 12:00-13:00], zone: UTC}, {days: sun, zone: UTC}]"
    assert [holds(text, f"2026-03-02T{hour}:30:00+00:00") for hour in ("08", "10", "12")] == [
        True,
        False,
        True,
    ]
    assert holds(text, "2026-03-01T10:30:00+00:00")


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("{from: 2026-01-01, until: 2026-02-01, zone: UTC}", "2026-01-01T00:00Z", "2026-02-01T00:00Z"),
        (
            "{from: 2026-01-01, until: 2026-02-01T12:00, zone: Europe/Berlin}",
            "2025-12-31T23:00Z",
            "2026-02-01T11:00Z",
        ),
        (
            "{from: 2026-01-01T00:00:00Z, until: 2026-02-01T00:00:30-05:00}",
            "2026-01-01T00:00Z",
            "2026-02-01T05:00:30Z",
        ),
        # 02:30 happens twice on this day: the window is the longer one
        (
            "{from: 2026-10-25T02:30, until: 2026-10-26, zone: Europe/Berlin}",
            "2026-10-25T00:30Z",
            "2026-10-25T23:00Z",
        ),
        (
            "{from: 2026-10-24, until: 2026-10-25T02:30, zone: Europe/Berlin}",
            "2026-10-23T22:00Z",
            "2026-10-25T01:30Z",
        ),
        # 02:30 never happens on this day
        (
            "{from: 2026-03-29T02:30, until: 2026-03-30, zone: Europe/Berlin}",
            "2026-03-29T00:30Z",
            "2026-03-29T22:00Z",
        ),
    ],
)
def test_a_span_begins_and_ends_at_these_instants(text: str, first: str, last: str) -> None:
    begins, ends = datetime.fromisoformat(first), datetime.fromisoformat(last)
    second = timedelta(seconds=1)
    window = during(text)
    answers = [window.holds(at) for at in (begins - second, begins, ends - second, ends)]
    assert answers == [Truth.false, Truth.true, Truth.true, Truth.false]


ZONES = st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC"])
CLOCK = st.integers(0, 1439)
# around every change of a clock in 2026 in these zones
ANCHORS = st.sampled_from(
    ["2026-03-08", "2026-03-29", "2026-04-05", "2026-10-04", "2026-10-25", "2026-11-01"]
)


def clock(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"


def table(days: set[int], hours: list[tuple[int, int]]) -> set[tuple[int, int]]:
    """Every (weekday, minute of the day) of a window, by walking from each start to its end."""
    found = set()
    for day in days:
        for start, end in hours:
            weekday, minute = day, start
            while True:
                found.add((weekday, minute))
                minute += 1
                if minute == 1440:
                    weekday, minute = (weekday + 1) % 7, 0
                if minute == end % 1440:
                    break
    return found


@given(
    st.sets(st.integers(0, 6), min_size=1),
    st.lists(st.tuples(CLOCK, CLOCK).filter(lambda one: one[0] != one[1]), min_size=1, max_size=2),
    ZONES,
    ANCHORS,
    st.lists(st.integers(-2000, 4000), min_size=1, max_size=40),
)
def test_days_and_hours_hold_when_the_clock_on_the_wall_says_so(
    days: set[int], hours: list[tuple[int, int]], zone: str, anchor: str, minutes: list[int]
) -> None:
    written = ", ".join(f"{clock(start)}-{clock(end)}" for start, end in hours)
    window = during(f"{{days: [{', '.join(DAYS[day] for day in days)}], hours: [{written}], zone: {zone}}}")
    expected = table(days, hours)
    midnight = datetime.fromisoformat(anchor).replace(tzinfo=UTC)
    for minute in minutes:
        at = midnight + minute * MINUTE
        offset = at.astimezone(ZoneInfo(zone)).utcoffset()
        assert offset is not None
        wall = at.replace(tzinfo=None) + offset
        inside = (wall.weekday(), wall.hour * 60 + wall.minute) in expected
        assert (window.holds(at) is Truth.true) is inside


@settings(deadline=None, max_examples=40)
@given(ZONES, ANCHORS, CLOCK)
def test_a_span_is_never_shorter_than_the_clock_on_the_wall_says(zone: str, anchor: str, minute: int) -> None:
    """Walks four days: it begins no later than the wall first shows its start, and ends no earlier than the
    wall last shows a time before its end; where the wall shows that time once, at these very minutes."""
    local = f"{anchor}T{clock(minute)}"
    wanted = datetime.fromisoformat(local)
    begins = during(f"{{from: {local}, zone: {zone}}}").windows[0].begins
    ends = during(f"{{until: {local}, zone: {zone}}}").windows[0].ends
    assert begins is not None
    assert ends is not None
    start = datetime.fromisoformat(anchor).replace(tzinfo=UTC) - timedelta(days=1)
    walk = [start + step * MINUTE for step in range(4 * 1440)]
    walls = [at.astimezone(ZoneInfo(zone)).replace(tzinfo=None) for at in walk]
    first = next(at for at, wall in zip(walk, walls, strict=True) if wall >= wanted)
    last = next(at for at, wall in zip(reversed(walk), reversed(walls), strict=True) if wall < wanted)
    assert begins <= first
    assert ends >= last + MINUTE
    if walls.count(wanted) == 1:
        assert (begins, ends) == (first, last + MINUTE)


@pytest.mark.parametrize(
    ("text", "message", "advice"),
    [
        (
            "{days: [sat], zone: Europe/Berln}",
            "p.yaml:1:23: unknown time zone `Europe/Berln`",
            "did you mean `Europe/Berlin`?",
        ),
        (
            "{days: [sat], zone: localtime}",
            "p.yaml:1:23: unknown time zone `localtime`",
            "write a name such as `Europe/Berlin` or `UTC`",
        ),
        (
            "{days: [sat], zone: ../passwd}",
            "p.yaml:1:23: unknown time zone `../passwd`",
            "write a name such as `Europe/Berlin` or `UTC`",
        ),
        ("{days: [satt], zone: UTC}", "p.yaml:1:10: unknown weekday `satt`", "did you mean `sat`?"),
        ("{days: Saturday, zone: UTC}", "p.yaml:1:10: unknown weekday `saturday`", "did you mean `sat`?"),
        ("{days: mon-fir, zone: UTC}", "p.yaml:1:10: unknown weekday `fir`", "did you mean `fri`?"),
        (
            "{days: [], zone: UTC}",
            "p.yaml:1:10: `days` is empty",
            "known are mon, tue, wed, thu, fri, sat, sun",
        ),
        (
            "{day: sat, zone: UTC}",
            "p.yaml:1:10: unknown key `day` of `during`",
            "did you mean `days`?",
        ),
        (
            "{hours: 9-17, zone: UTC}",
            "p.yaml:1:10: expected hours such as `09:00-17:30`, found `9-17`",
            "two digits each, from 00:00 to 24:00; an end before the start lies on the next day",
        ),
        (
            "{hours: 09:00-24:01, zone: UTC}",
            "p.yaml:1:10: expected hours such as `09:00-17:30`, found `09:00-24:01`",
            "two digits each, from 00:00 to 24:00; an end before the start lies on the next day",
        ),
        (
            "{hours: 09:00-09:00, zone: UTC}",
            "p.yaml:1:10: `09:00-09:00` holds no time",
            "for the whole day, leave `hours` out",
        ),
        ("{hours: [], zone: UTC}", "p.yaml:1:10: `hours` is empty", "such as `09:00-17:30`"),
        (
            "{days: sat}",
            "p.yaml:1:10: `days` is read on some clock, and `during` names no zone",
            "add `zone: Europe/Berlin`, or `zone: UTC`",
        ),
        (
            "{until: 2026-02-01T00:00}",
            "p.yaml:1:10: `until` is read on some clock, and `during` names no zone",
            "add `zone: Europe/Berlin`, or `zone: UTC`",
        ),
        (
            "{zone: UTC}",
            "p.yaml:1:1: `during` names a zone and no time",
            "add `days`, `hours`, `from` or `until`",
        ),
        (
            "{from: 2026-02-01, until: 2026-02-01, zone: UTC}",
            "p.yaml:1:10: `from` 2026-02-01 is not before `until` 2026-02-01",
            None,
        ),
        (
            "{days: sat, from: 2026-03-02, until: 2026-03-07, zone: UTC}",
            "p.yaml:1:1: no day and hour of `during` lies in its span",
            None,
        ),
        (
            "{from: 2026-02-30, zone: UTC}",
            "p.yaml:1:10: expected a date or a time, found `2026-02-30`",
            "such as `2026-03-01`, `2026-03-01T12:00` or `2026-03-01T12:00:00+01:00`",
        ),
        (
            "{from: 0001-01-01, zone: Asia/Tokyo}",
            "p.yaml:1:10: expected a date or a time, found `0001-01-01`",
            "such as `2026-03-01`, `2026-03-01T12:00` or `2026-03-01T12:00:00+01:00`",
        ),
        (
            "weekend",
            "p.yaml:1:1: `during` is a mapping, or a list of mappings of which one has to hold",
            "such as `during: {days: [sat, sun], zone: Europe/Berlin}`",
        ),
    ],
)
def test_what_is_no_window_fails_at_load(text: str, message: str, advice: str | None) -> None:
    assert refusal(text) == (message, advice)


def test_the_second_of_several_windows_is_refused_at_its_own_place() -> None:
    assert (
        refusal("[{days: sat, zone: UTC}, {days: sund, zone: UTC}]")[0]
        == "p.yaml:1:35: unknown weekday `sund`"
    )


def moment(text: str) -> Moment:
    return parse_moment(text, Position("p.yaml", 3, 5))


def test_an_instant_is_reached_when_it_comes() -> None:
    one = moment("2026-03-01T12:00+01:00")
    noon = datetime(2026, 3, 1, 11, tzinfo=UTC)
    assert (one.reached(noon - MINUTE), one.reached(noon)) == (Truth.false, Truth.true)


@pytest.mark.parametrize(
    ("at", "truth"),
    [
        ("2026-02-28T09:59:59+00:00", Truth.false),  # nowhere on earth has March begun
        ("2026-02-28T10:00:00+00:00", Truth.unknown),
        ("2026-03-01T11:59:59+00:00", Truth.unknown),
        ("2026-03-01T12:00:00+00:00", Truth.true),  # it has everywhere
    ],
)
def test_a_day_is_not_known_while_it_depends_on_where(at: str, truth: Truth) -> None:
    assert moment("2026-03-01").reached(datetime.fromisoformat(at)) is truth


@pytest.mark.parametrize(
    ("text", "message", "advice"),
    [
        (
            "2026-03-01T12:00",
            "p.yaml:3:5: `2026-03-01T12:00` says no offset from UTC, so it is another instant in every zone",
            "write `2026-03-01T12:00Z`, or `2026-03-01T12:00+01:00`",
        ),
        (
            "tomorrow",
            "p.yaml:3:5: expected a date or a time, found `tomorrow`",
            "such as `2026-03-01`, `2026-03-01T12:00` or `2026-03-01T12:00:00+01:00`",
        ),
        (
            "0001-01-01",
            "p.yaml:3:5: expected a date or a time, found `0001-01-01`",
            "such as `2026-03-01`, `2026-03-01T12:00` or `2026-03-01T12:00:00+01:00`",
        ),
    ],
)
def test_what_is_no_instant_fails_at_load(text: str, message: str, advice: str) -> None:
    with pytest.raises(InvalidPolicy) as problem:
        moment(text)
    assert (str(problem.value), problem.value.advice) == (message, advice)
