"""Durations and sizes: exact, and nothing that bounds nothing."""

from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from licet import units


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("500ms", 0.5),
        ("60s", 60.0),
        ("2m", 120.0),
        ("1.5min", 90.0),
        ("2h", 7200.0),
        ("1d", 86400.0),
        (" 3 s ", 3.0),
        ("7", 7.0),
        (7, 7.0),
        (0.25, 0.25),
    ],
)
def test_durations_are_seconds(written: object, seconds: float) -> None:
    assert units.duration(written) == seconds
    assert type(units.duration(written)) is float


@pytest.mark.parametrize(
    ("written", "amount"),
    [
        ("812B", 812),
        ("64kB", 64_000),
        ("64KB", 64_000),
        ("64KiB", 65_536),
        ("2GiB", 2 << 30),
        ("1TB", 10**12),
        ("0.5KiB", 512),
        ("1.001MB", 1_001_000),  # 1.001 * 10**6 is not whole in floating point
        (2**53 - 1, 2**53 - 1),
    ],
)
def test_sizes_are_bytes(written: object, amount: int) -> None:
    assert units.size(written) == amount
    assert type(units.size(written)) is int


@given(st.integers(1, 10**9), st.integers(0, 6))
def test_decimal_sizes_are_exact(digits: int, places: int) -> None:
    written = f"{digits // 10**places}.{digits % 10**places:0{places}d}MB" if places else f"{digits}MB"
    assert units.size(written) == Fraction(digits, 10**places) * 10**6


@pytest.mark.parametrize("read", [units.duration, units.size])
@pytest.mark.parametrize(
    "written",
    [0, -1, "0", 0.0, float("nan"), float("inf"), -float("inf"), 2**53, "9007199254740992", 10**400, 1e300],
)
def test_what_bounds_nothing_is_refused(read: Callable[[object], float], written: object) -> None:
    with pytest.raises(ValueError, match="bounds nothing: a limit is a number above zero and below 2"):
        read(written)


@pytest.mark.parametrize(
    "written", ["", "s", "-1s", "1e3s", "1,5s", "1 2 s", "½s", "٣s", "1" * 21, True, None, [], b"1s"]
)
def test_what_is_no_number_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match=r"^expected a duration such as `500ms`, `60s` or `2m`, found `"):
        units.duration(written)
    with pytest.raises(ValueError, match=r"^expected a size such as `64KiB` or `2GiB`, found `"):
        units.size(written)


def test_unknown_units_name_the_known_ones() -> None:
    with pytest.raises(
        ValueError, match=r"^`5 parsecs` has the unknown unit `parsecs`; known are ms, s, m, h, d$"
    ):
        units.duration("5 parsecs")
    with pytest.raises(
        ValueError, match=r"^`5mb` has the unknown unit `mb`; known are B, kB, MB, GB, TB, KiB"
    ):
        units.size("5mb")


def test_half_a_byte_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^`0.1KiB` is not a whole number of bytes$"):
        units.size("0.1KiB")


@pytest.mark.parametrize("written", [True, 1.0, "1", None])
def test_counts_are_whole_numbers(written: object) -> None:
    with pytest.raises(ValueError, match=f"^expected a whole number, found `{written}`$"):
        units.count(written)


@pytest.mark.parametrize("written", [0, -3, 2**53])
def test_counts_bound_something(written: int) -> None:
    assert units.count(1) == 1
    with pytest.raises(ValueError, match="bounds nothing"):
        units.count(written)


def test_messages_stay_short_whatever_was_found() -> None:
    for written in ("x" * 10**6, 10**100_000):
        with pytest.raises(ValueError, match=r"^.{1,200}$"):
            units.size(written)
        with pytest.raises(ValueError, match=r"^.{1,200}$"):
            units.count(written)


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        (0, "0 B"),
        (812, "812 B"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (41 << 20, "41 MiB"),
        (5 << 50, "5120 TiB"),
    ],
)
def test_sizes_read_well(amount: int, shown: str) -> None:
    assert units.show_size(amount) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.025, "25 ms"), (0.1, "0.1 s"), (60, "60.0 s"), (600, "10 min"), (7200, "2 h")]
)
def test_durations_read_well(seconds: float, shown: str) -> None:
    assert units.show_duration(seconds) == shown
