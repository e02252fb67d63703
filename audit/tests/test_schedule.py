"""When a write may be waited for in place, and when a checkpoint is due; by a clock that the tests turn."""

from licet_audit.pace import FRESH, QUICK, ROW, Pace
from licet_audit.schedule import DELAY, HEARTBEAT, RECORDS, Schedule


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def paced(*seconds: float) -> Pace:
    pace = Pace(Clock())
    for one in seconds:
        pace.wrote(one)
    return pace


def test_a_disk_is_quick_after_a_row_of_quick_writes_and_no_sooner() -> None:
    assert not paced().quick
    assert not paced(*[0.0] * (ROW - 1)).quick
    assert paced(*[0.0] * ROW).quick


def test_one_slow_write_is_enough_to_be_careful_for_a_whole_row() -> None:
    assert not paced(*[0.0] * 1000, QUICK).quick
    assert not paced(*[0.0] * 1000, QUICK, *[0.0] * (ROW - 1)).quick
    assert paced(*[0.0] * 1000, QUICK, *[0.0] * ROW).quick
    assert paced(*[QUICK * 0.99] * ROW).quick


def test_what_was_quick_long_ago_says_nothing() -> None:
    clock = Clock()
    pace = Pace(clock)
    for _ in range(ROW):
        pace.wrote(0.0)
    clock.now += FRESH * 0.99
    assert pace.quick
    clock.now += FRESH * 0.01
    assert not pace.quick
    pace.wrote(0.0)
    assert pace.quick


def test_a_record_is_due_after_the_delay_and_those_after_it_wait_no_longer() -> None:
    schedule = Schedule(0.0)
    assert schedule.wait(1.0) == HEARTBEAT - 1.0
    assert schedule.appended(1, 1.0)
    assert schedule.wait(1.0) == DELAY
    assert not schedule.appended(1, 1.25)
    assert schedule.wait(1.25) == DELAY - 0.25
    assert schedule.wait(1.0 + DELAY) == schedule.wait(99.0) == 0.0
    assert schedule.begin(99.0) == 2
    assert schedule.wait(99.0) == HEARTBEAT
    assert schedule.begin(99.0 + HEARTBEAT) == 0


def test_many_records_are_due_at_once() -> None:
    schedule = Schedule(0.0)
    assert schedule.appended(RECORDS - 1, 0.0)
    assert schedule.wait(0.0) == DELAY
    assert schedule.appended(1, 0.0)
    assert schedule.wait(0.0) == 0.0
    assert not schedule.appended(1, 0.0)
    assert schedule.begin(0.0) == RECORDS + 1


def test_what_failed_is_tried_with_later_records_or_the_heartbeat_and_not_before() -> None:
    schedule = Schedule(0.0)
    schedule.appended(RECORDS, 0.0)
    schedule.failed(schedule.begin(0.0))
    assert (schedule.unsigned, schedule.wait(30.0)) == (RECORDS, HEARTBEAT - 30.0)
    assert schedule.appended(1, 30.0)
    assert schedule.wait(30.0) == DELAY
    assert schedule.begin(31.0) == RECORDS + 1
    assert schedule.unsigned == 0
