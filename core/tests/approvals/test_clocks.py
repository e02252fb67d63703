"""No set clock lengthens what is allowed."""

from __future__ import annotations

from asked import T0, later
from hypothesis import given
from hypothesis import strategies as st
from licet.approvals.clocks import Moment, age, now

spans = st.floats(-1e6, 1e6)
ages = st.floats(0, 1e6)


def test_both_clocks_go_on() -> None:
    first = now()
    second = now()
    assert 0 <= second.passed_since(first) < 60
    assert second.boot == first.boot


@given(real=ages, set_by=spans)
def test_a_wall_clock_that_is_set_shortens_nothing(real: float, set_by: float) -> None:
    at = Moment(T0.wall + real + set_by, T0.running + real, T0.boot)
    assert at.passed_since(T0) >= real - 1e-3


def test_a_jump_forward_expires_what_it_passes() -> None:
    at = Moment(T0.wall + 7200, T0.running + 1, T0.boot)
    assert at.passed_since(T0) == 7200


def test_over_a_restart_the_wall_clock_tells() -> None:
    assert Moment(T0.wall + 60, 3.0, "boot-2").passed_since(T0) == 60


def test_a_wall_clock_that_went_back_over_a_restart_expires_everything() -> None:
    assert Moment(T0.wall - 0.5, 9e9, "boot-2").passed_since(T0) == float("inf")


def test_without_ids_of_starts_the_wall_clock_tells() -> None:
    first = Moment(100.0, 50.0)
    assert Moment(160.0, 51.0).passed_since(first) == 60
    assert Moment(99.0, 60.0).passed_since(first) == float("inf")


@given(seen=ages, real=ages)
def test_what_was_seen_to_have_passed_stays_passed_over_a_restart(seen: float, real: float) -> None:
    seen_at = later(seen)
    back = Moment(T0.wall + 1, 2.0, "boot-2")  # the wall clock was set to just after the asking
    assert age(T0, seen_at, back) >= seen
    honest = Moment(seen_at.wall + real, 2.0, "boot-2")
    assert abs(age(T0, seen_at, honest) - seen - real) < 1e-3
