"""Parts of a report: figures that add up, waits that are not guessed, cards of any records."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from licet.record import Entry, Record
from licet.state import StateDirectory
from licet_audit.claims import Verification
from licet_audit.report import charts, document, population, run, safe, standing, waiting

from .report_logs import EXECUTION, GRANTED, PROBE, SELECTION, access, call, decision, request, result

NAMES = [("e-allow", "allowed"), ("e-deny", "denied")]
START = datetime(2026, 11, 1)


Body = tuple[str, str | None, Mapping[str, Any]]


def records_of(*bodies: Body, writer: str = "w", step: int = 1) -> list[Record]:
    entries = [
        Entry(kind, "r", body, "t", seq * step, phase)  # type: ignore[arg-type]
        for seq, (kind, phase, body) in enumerate(bodies)
    ]
    return [
        Record("log", seq, "", {"instance": writer, "host": "h"}, entry) for seq, entry in enumerate(entries)
    ]


STYLES = st.sampled_from([style for style, _ in NAMES])


@given(st.lists(st.tuples(st.integers(0, 60 * 24 * 900), STYLES), min_size=1, max_size=200))
def test_columns_hold_every_run_once_in_order_and_never_more_than_fit(runs: list[tuple[int, str]]) -> None:
    moments = [
        ((START + timedelta(minutes=minute)).strftime("%Y-%m-%dT%H:%M"), style) for minute, style in runs
    ]
    drawn = charts.over_time(Counter(moments), NAMES)
    assert len(drawn.columns) == drawn.width <= charts.MOST_COLUMNS
    by_style = [sum(column.counts[place] for column in drawn.columns) for place in range(len(NAMES))]
    assert by_style == [sum(one == style for _, one in moments) for style, _ in NAMES]
    assert drawn.columns[0].counts != (0, 0) != drawn.columns[-1].counts
    assert [column.label for column in drawn.columns] == sorted(column.label for column in drawn.columns)
    heights = Counter[int]()
    for one in drawn.segments:
        assert float(one.y) >= 0 and float(one.y) + float(one.height) <= 100.02
        heights[int(float(one.x))] += round(float(one.height) * drawn.top / 100)
    assert [heights[place] for place in range(drawn.width)] == [
        sum(column.counts) for column in drawn.columns
    ]


@pytest.mark.parametrize(
    ("days", "unit", "columns"),
    [
        (0.01, "minute", 15),
        (0.3, "ten minutes", 44),
        (2, "hour", 49),
        (10, "six hours", 41),
        (40, "day", 41),
        (200, "week", 30),
        (2000, "5 weeks", 58),
    ],
)
def test_a_column_covers_what_lets_all_of_them_fit(days: float, unit: str, columns: int) -> None:
    last = (START + timedelta(days=days)).strftime("%Y-%m-%dT%H:%M")
    drawn = charts.over_time({("2026-11-01T00:00", "e-allow"): 1, (last, "e-deny"): 1}, NAMES)
    assert (drawn.unit, drawn.width) == (unit, columns)


def test_a_time_that_is_none_is_left_out_of_the_drawing() -> None:
    drawn = charts.over_time({("<script>", "e-allow"): 3, ("2026-11-01T00:00", "e-allow"): 1}, NAMES)
    assert [column.counts for column in drawn.columns] == [(1, 0)]
    assert charts.over_time({("?", "e-allow"): 3}, NAMES).segments == ()


def test_bars_are_the_greatest_and_the_rest_is_one_of_them() -> None:
    counts = {f"n{number:02}": number for number in range(1, 21)}
    drawn = charts.bars(counts, most=3)
    assert [(one.label, one.count, one.width) for one in drawn] == [
        ("n20", 20, "100.0"), ("n19", 19, "95.0"), ("n18", 18, "90.0"), ("17 others", 153, "0"),
    ]  # fmt: skip


ASKED, ANSWERED = decision("ask"), GRANTED


def test_waits_are_told_by_one_clock_or_not_at_all() -> None:
    assert waiting.waited(records_of(ASKED, ANSWERED, step=90 * 10**9)) == 90.0
    assert waiting.waited(records_of(ASKED)) is None
    apart = [*records_of(ASKED), *records_of(ASKED, ANSWERED, writer="another")[1:]]
    assert waiting.waited(apart) is None


def test_waits_are_counted_by_length_and_runs_without_an_answer_are_told() -> None:
    asking = [records_of(ASKED, ANSWERED, step=seconds * 10**9) for seconds in (0, 30, 59, 60, 4000, 10**6)]
    told = waiting.waits([*asking, records_of(ASKED)], total=9)
    assert {bar.label: bar.count for bar in told.bars} == {
        "under a second": 1, "up to a minute": 2, "up to 10 minutes": 1, "up to an hour": 0, "up to a day": 1,
        "longer": 1,
    }  # fmt: skip
    assert told.note == (
        "Of the 7 newest of 9 runs that asked. Under a second no person answered. "
        "1 asked and have no answer on record."
    )
    assert waiting.waits([], total=0) == waiting.Waits([], "")


@given(st.text(max_size=50))
def test_what_is_shown_has_nothing_hidden_in_it(text: str) -> None:
    shown = str(safe.shown(text))
    assert {"Cc", "Cf", "Cs", "Zl", "Zp"}.isdisjoint(map(unicodedata.category, shown))


def test_what_was_checked_ends_where_it_ends_also_if_the_log_was_pruned(state: StateDirectory) -> None:
    checked = Verification("proven", 5, (), ())
    assert standing.standing(state, checked).end is None
    (state.path / "log").mkdir()
    (state.path / "log" / "seg-00000000000000000010.jsonl").write_bytes(b"")
    assert standing.standing(state, checked).end == 15
    assert standing.standing(state, replace(checked, status="tampered")).end is None


def test_marks_do_not_tower_over_what_stands_around() -> None:
    assert safe.shown("שָׁלוֹם é") == "שָׁלוֹם é"
    assert safe.shown("a" + "\u0336" * 6) == "a" + "\u0336" * 4 + "\\u0336\\u0336"


BODIES: list[Body] = [request(), decision("ask"), SELECTION, GRANTED, EXECUTION, PROBE, result("exited")]
BODIES += [*call(1, "deny", "x"), access("read", "/", allowed=False)]
KNOWN = {key for _, _, body in BODIES for key in body} | {"id", "intent", "effect", "leaves", "reason"}
KEYS = st.sampled_from(sorted(KNOWN)) | st.text(st.characters(max_codepoint=127), max_size=5)
PLAIN = st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(max_size=8)
VALUES = st.recursive(
    PLAIN | st.sampled_from(["deny", "<b>"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
CHANGES = st.dictionaries(KEYS, VALUES, max_size=4)


@st.composite
def odd_runs(draw: st.DrawFn) -> list[Record]:
    """A run of records whose bodies are ordinary but for some fields, which hold anything."""
    chosen = draw(st.lists(st.sampled_from(BODIES), min_size=1, max_size=9))
    changed = [
        (kind, phase, body | draw(st.dictionaries(KEYS, VALUES, max_size=4))) for kind, phase, body in chosen
    ]
    return records_of(*changed)


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)


@settings(max_examples=150, deadline=None)
@given(odd_runs())
def test_records_that_hold_anything_make_a_card(records: list[Record]) -> None:
    page = document.Page(
        made=document.Made("t", "2026-11-01T00:00:00Z", "0", "me", None, "id", "/log", ()),
        standing=standing.Standing("good", "✓", "proven", 1, (), (), None, None, None, "none"),
        population=population.Population(1),
        attention=[run.card(records, lambda commitment: None)],
        others=(),
        waits=waiting.waits([records], 1),
        own=records,
    )
    tags = _Tags()
    tags.feed("".join(document.render(page)))
    assert "article" in tags.seen
    assert "b" not in tags.seen
