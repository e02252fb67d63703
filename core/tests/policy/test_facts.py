"""What conditions may read."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from licet.policy.facts import CallFacts, Facts
from licet.request import Subject

NOON = datetime(2026, 2, 28, 12, tzinfo=UTC)


def test_a_time_without_its_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="needs its zone"):
        Facts(Subject(), datetime(2026, 2, 28))


@pytest.mark.parametrize(("name", "anonymous"), [("unknown", True), ("", True), ("ann", False)])
def test_a_subject_without_an_id_is_anonymous(name: str, anonymous: bool) -> None:
    assert Facts(Subject(id=name), NOON).anonymous is anonymous


def test_facts_of_a_call_share_nothing_that_was_derived_without_it() -> None:
    before = Facts(Subject(), NOON)
    before.derived["kept"] = 1
    assert replace(before, call=CallFacts("refund", {})).derived == {}
    assert before == Facts(Subject(), NOON)
