"""What the log says of itself is told in one short sentence, whatever stands in the record."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from licet_audit.event_words import event_words
from licet_audit.events import EVENTS

WHO = {"by": "root (uid 0)", "reason": "request 4711"}
SINCE = "2026-01-01T00:00:00.000000000Z"
ADA = {"runs": None, "subject": "ada", "tenant": None, "since": SINCE, "before": None}
COMMITTED = [
    {"run_id": f"R{number}", "seq": number, "kept": {"code": "c" * 64, "inputs": "d" * 64}}
    for number in range(5)
]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"event": "opened", "log": "2f1c"}, "log 2f1c begins"),
        ({"event": "gap", "missing": 1}, "1 record could not be written"),
        (
            {"event": "torn_tail_quarantined", "bytes": 2048, "sha256": "x", "file": "t-1"},
            "2 KiB of a line without an end, set aside in `t-1`",
        ),
        (
            {
                "event": "anchored",
                "kind": "witness",
                "anchor": "w/1",
                "size": 8,
                "time": "2026-11-30T10:00:00Z",
            },
            "witness w/1 has seen the first 8 records, at 2026-11-30T10:00:00Z",
        ),
        (
            {"event": "anchor_failed", "kind": "file", "anchor": "/a", "size": 8, "reason": "full"},
            "file /a has not seen the first 8 records: full",
        ),
        (
            {"event": "erased", "commitments": COMMITTED, "orphans": ["o"], "altered": [], **WHO},
            "10 pieces of content of 5 runs (R0, R1, R2 and 2 more); 1 piece of content that no "
            "record names; by root (uid 0): request 4711",
        ),
        (
            {"event": "held", "hold": "H", "what": ADA, **WHO},
            "hold H on subject ada, since 2026-01-01 00:00:00; by root (uid 0): request 4711",
        ),
        (
            {"event": "held", "hold": "H", "what": {"subject": "ada"}, **WHO},
            "hold H on everything, since what it says can't be understood; by root (uid 0): request 4711",
        ),
        ({"event": "released", "hold": "H", **WHO}, "hold H ends; by root (uid 0): request 4711"),
        (
            {"event": "pruned", "segments": [{}, {}], "begins": 90, "cut": ["R1"], "newest": "2026", **WHO},
            "2 files of records; the log begins with #90 now; the newest of them was of 2026; "
            "without its beginning stays 1 run (R1); by root (uid 0): request 4711",
        ),
        ({"event": "odd", "many": [1, 2], "one": "x"}, "many 2; one x"),
    ],
)
def test_each_event_is_told_in_words(body: dict[str, Any], said: str) -> None:
    assert event_words(body) == said


odd = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from(EVENTS), st.data())
def test_a_body_may_hold_anything(event: Any, data: st.DataObject) -> None:
    names = [name for name in event.model_fields if name != "event"]
    body = {name: data.draw(odd) for name in names if data.draw(st.booleans())}
    said = event_words({"event": event.model_fields["event"].default, **body})
    assert said
