"""What a `best_effort` trail has lost."""

from licet.logbook import Gaps


def test_what_is_lost_while_a_gap_is_being_recorded_stays_on_account() -> None:
    gaps = Gaps()
    gaps.lost(3)
    being_recorded = gaps.missing
    gaps.lost(2)
    gaps.recorded(being_recorded)
    assert gaps.missing == 2


def test_a_gap_that_two_runs_recorded_leaves_nothing_behind() -> None:
    gaps = Gaps()
    gaps.lost(3)
    gaps.recorded(3)
    gaps.recorded(3)
    assert gaps.missing == 0
