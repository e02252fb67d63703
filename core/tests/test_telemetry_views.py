"""Views are made of any record there can be: bounded, whole, and the same each time."""

from __future__ import annotations

import asyncio
from typing import Any, get_args

from hypothesis import given, settings
from hypothesis import strategies as st
from licet.record import Entry, Kind, MemoryLog, Record
from licet.telemetry import names
from licet.telemetry.measures import RunMeasures
from licet.telemetry.spans import Begin, End, RunSpans, instant, nanoseconds
from licet.telemetry.values import MOST_ATTRIBUTES, MOST_CHARACTERS, MOST_ITEMS, text, texts, value_of

TIME = "2026-11-29T17:00:00.123456789Z"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=40) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
FIELDS = (
    "at subject results attacks backend version isolation termination success exit_code detail tool sequence"
    " effect outcome policy verdicts verdict rules opened candidates required claimed took_ns action target"
    " usage event error changes metadata digests configured violations ballots caller_span approval person by"
)
ENTRIES = st.lists(
    st.builds(
        lambda kind, phase, body: Entry(kind, "r", body, TIME, 1, phase=phase),
        st.sampled_from(get_args(Kind)),
        st.sampled_from([None, "before", "after"]),
        st.dictionaries(st.sampled_from(FIELDS.split()), JSON, max_size=8),
    ),
    max_size=8,
)


def recorded(entries: list[Entry]) -> tuple[Record, ...]:
    return asyncio.run(MemoryLog().append(entries))


@settings(deadline=None, max_examples=50)
@given(ENTRIES)
def test_every_span_begins_once_ends_at_most_once_and_is_bounded(entries: list[Entry]) -> None:
    steps = RunSpans()
    begun: dict[str, Begin] = {}
    for record in recorded(entries):
        for step in steps.feed(record):
            if isinstance(step, Begin):
                begun[step.key] = step
            elif step.key in begun:
                assert_bounded(begun.pop(step.key), step)
    assert set(begun) >= set(steps.open)


def assert_bounded(begin: Begin, end: End) -> None:
    found = begin.attributes | end.attributes
    assert len(found) <= MOST_ATTRIBUTES
    assert list(found)[-1] == names.LEAF
    for name, value in found.items():
        assert name in names.ATTRIBUTES
        items = value if isinstance(value, tuple) else (value,)
        assert len(items) <= MOST_ITEMS
        assert all(len(item) <= MOST_CHARACTERS for item in items if isinstance(item, str))


@settings(deadline=None, max_examples=50)
@given(ENTRIES)
def test_measures_are_of_known_metrics_with_their_attributes(entries: list[Entry]) -> None:
    measures = RunMeasures()
    for record in recorded(entries):
        for metric, amount, about in measures.feed(record):
            assert metric in names.METRICS
            assert set(about) <= set(metric.attributes)
            assert 0 <= amount < 1e12


def test_what_is_cut_says_so_and_a_hash_is_not_cut() -> None:
    digest = "hmac-sha256:" + "a" * 64
    assert text(digest) == digest
    assert text("x" * 257) == "x" * 255 + "…"
    assert texts(["a"] * 33)[-1] == "… 2 more"


def test_values_have_the_type_that_the_page_says() -> None:
    wanted: list[tuple[str, Any, Any]] = [
        (names.WALL_TIME, "0.25", 0.25),
        (names.WALL_TIME, "nan", None),
        (names.WALL_TIME, "x", None),
        (names.CODE_SIZE, True, None),
        (names.CODE_SIZE, 7, 7),
        (names.LEARN, 1, None),
        (names.USER_ID, 7, None),
        (names.RULES, [], None),
    ]
    assert [value_of(name, given) for name, given, _ in wanted] == [value for _, _, value in wanted]


def test_times_are_exact_to_the_nanosecond() -> None:
    assert nanoseconds(TIME) == 1795971600_123456789
    assert instant("2026-11-29T17:00:00.123456+00:00") == 1795971600_123456000
    assert (nanoseconds("x"), instant(None), instant("2026-11-29T17:00:00")) == (0, None, None)


def test_names_of_ours_begin_with_licet_and_metrics_have_few_attributes() -> None:
    assert all(metric.name.startswith("licet.") for metric in names.METRICS)
    few = {names.EFFECT, names.TERMINATION, names.BACKEND, names.KIND, names.ERROR_TYPE}
    few |= {names.INTENT_ACTION, names.OUTCOME, names.CALL_OUTCOME, names.APPROVAL_EVENT}
    assert {name for metric in names.METRICS for name in metric.attributes} <= few


def test_approvals_are_counted_by_step_and_timed_where_one_process_saw_both_ends() -> None:
    def step(event: str, second: int, approval: str = "A") -> Entry:
        time = f"2026-11-29T17:00:{second:02}.000000000Z"
        return Entry("approval", "r", {"event": event, "approval": approval}, time, 1)

    measures = RunMeasures()
    told = [step("asked", 0), step("answered", 5), step("granted", 7), step("denied", 9, "B"), step("odd", 9)]
    found = [
        (metric.name, amount, about.get(names.APPROVAL_EVENT))
        for record in recorded(told)
        for metric, amount, about in measures.feed(record)
        if metric in (names.APPROVALS, names.APPROVAL_DURATION)
    ]
    assert found == [
        ("licet.approvals", 1, "asked"),
        ("licet.approvals", 1, "answered"),
        ("licet.approvals", 1, "granted"),
        ("licet.approval.duration", 7.0, "granted"),
        ("licet.approvals", 1, "denied"),
    ]
