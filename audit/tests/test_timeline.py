"""A run told to people: effects with their outcomes, clocks, and whatever a record may hold."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from licet.record import Entry, Record, seat
from licet_audit import controls
from licet_audit.timeline import Row, rows

WRITER = {"host": "h", "pid": 1, "instance": "i", "version": "1", "boot": "b"}
KINDS = [
    "request",
    "decision",
    "probe",
    "selection",
    "authorization",
    "execution",
    "tool_call",
    "access",
    "result",
    "log",
    "unheard_of",
]


def record(
    seq: int, kind: str, phase: str | None, body: dict[str, Any], *, ms: float = 0, **more: Any
) -> Record:
    time = more.pop("time", f"2026-01-01T00:00:00.{int(ms * 10**6):09d}Z")
    entry = Entry(kind, "R", body, time, int(ms * 10**6), phase=phase)  # type: ignore[arg-type]
    return seat(entry, log="l" * 32, seq=seq, prev="", writer={**WRITER, **more})[0]


def told(*records: Record) -> list[tuple[int, str, str, str]]:
    return [(row.seq, row.what, row.text, row.tone) for row in rows(records)]


def find(found: list[tuple[int, str, str, str]], what: str) -> tuple[int, str, str, str]:
    [one] = [row for row in found if row[1] == what]
    return one


def test_a_call_and_its_outcome_are_one_row_even_when_calls_overlap() -> None:
    before = {
        "tool": "refund",
        "effect": "allow",
        "verdict": {"reason": "p.yaml:3 allows it"},
        "call_digest": "d",
    }
    after = {"tool": "refund", "outcome": "returned"}
    found = told(
        record(0, "tool_call", "before", {**before, "sequence": 1}, ms=0),
        record(1, "tool_call", "before", {**before, "sequence": 2}, ms=1),
        record(2, "tool_call", "before", {**before, "sequence": 3}, ms=2),
        record(3, "tool_call", "after", {**after, "sequence": 2}, ms=3),
        record(4, "tool_call", "after", {**after, "sequence": 1}, ms=40),
    )
    assert [row for row in found if row[1] == "tool"] == [
        (0, "tool", "refund (call 1) allowed: p.yaml:3 allows it; returned after 40 ms", "good"),
        (1, "tool", "refund (call 2) allowed: p.yaml:3 allows it; returned after 2.0 ms", "good"),
        (
            2,
            "tool",
            "refund (call 3) allowed: p.yaml:3 allows it; no outcome is recorded: it may have taken effect",
            "warn",
        ),
    ]


@pytest.mark.parametrize("outcome", ["unknown", "timed_out"])
def test_an_outcome_that_nobody_knows_is_no_good_news(outcome: str) -> None:
    before = {
        "tool": "refund",
        "sequence": 1,
        "effect": "allow",
        "verdict": {"reason": "r"},
        "call_digest": "d",
        "touches": ["shell"],
        "objections": [{"intent": "shell", "reason": "o"}],
    }
    found = told(
        record(0, "tool_call", "before", before, ms=0),
        record(1, "tool_call", "after", {"tool": "refund", "sequence": 1, "outcome": outcome}, ms=3),
    )
    said = f"refund (call 1) allowed: r; {outcome} after 3.0 ms: it may have taken effect"
    assert find(found, "tool") == (0, "tool", said, "warn")
    assert find(found, "  but")[2:] == ("`shell`: o", "warn")
    assert find(found, "  touches")[2:] == ("shell", "faint")


def test_a_call_that_could_not_be_made_is_told() -> None:
    after = {"tool": "refund", "sequence": 1, "outcome": "refused", "error": "TypeError"}
    found = told(record(0, "tool_call", "after", after))
    assert find(found, "tool")[2:] == ("refund (call 1) refused: its arguments don't fit", "warn")


def test_a_run_without_a_result_says_so_and_one_with_tells_how_long_it_took() -> None:
    start = record(0, "execution", "before", {"backend": "b", "isolation": "process"}, ms=10)
    assert find(told(start), "unfinished")[3] == "warn"
    end = record(1, "result", "after", {"termination": "exited", "success": True, "exit_code": 0}, ms=510)
    assert find(told(start, end), "ended")[2:] == ("exited with 0 after 0.5 s", "good")


def test_controls_are_told_apart_as_asked_claimed_set_up_seen_and_unknown() -> None:
    found = told(
        record(
            0,
            "selection",
            None,
            {"backend": "b", "required": {"timeout": "enforced", "memory_limit": "enforced"}},
        ),
        record(1, "execution", "before", {"claimed": {"timeout": "enforced", "memory_limit": "partial"}}),
        record(
            2,
            "result",
            "after",
            {
                "configured": {"timeout": "30.0"},
                "observed": {"timeout": "stopped"},
                "unknown": ["memory_limit"],
            },
        ),
    )
    assert find(found, "  timeout")[2] == "asked enforced, claimed enforced, set up 30 s, seen stopped"
    assert find(found, "  memory_limit")[2:] == ("asked enforced, claimed partial, nothing seen of it", "bad")
    assert find(found, "protection")[2:] == (
        "2 controls were asked for, the system showed something of 1",
        "warn",
    )


@pytest.mark.parametrize("lost", [{}, {"termination": "unknown", "success": False, "recovered": True}])
def test_nothing_is_seen_of_the_controls_of_a_run_that_was_lost(lost: dict[str, Any]) -> None:
    required = {"backend": "b", "required": {"timeout": "enforced"}}
    started = [record(0, "selection", None, required), record(1, "execution", "before", {})]
    (row,) = controls.of_run([*started, *([record(2, "result", "after", lost)] if lost else [])])
    assert row.unknown
    refused = {"termination": "policy_denied", "success": False, "executed": False}
    (row,) = controls.of_run([started[0], record(1, "result", "after", refused)])
    assert not row.unknown


def test_a_clock_that_was_set_back_is_told_and_changes_no_time() -> None:
    first = record(0, "request", None, {}, ms=0, time="2026-01-01T12:00:00.000000000Z")
    last = record(
        1, "result", "after", {"termination": "exited"}, ms=250, time="2026-01-01T11:00:00.250000000Z"
    )
    found = list(rows((first, last)))
    assert [row.text for row in found if row.what == "clock"] == [
        "the clock of the host was set by -3600.0 s meanwhile"
    ]
    assert {row.after for row in found if row.seq == 1} == {0.25}


def test_records_of_several_systems_go_by_their_wall_clocks() -> None:
    first = record(0, "request", None, {}, time="2026-01-01T12:00:00.000000000Z")
    last = record(
        1,
        "result",
        "after",
        {"recovered": True, "instance": "i", "unknown_effects": [{"tool": "t", "seq": 3}]},
        time="2026-01-01T12:00:05.000000000Z",
        instance="j",
        boot="c",
    )
    found = list(rows((first, last)))
    assert {row.after for row in found if row.seq == 1} == {5.0}
    assert find(told(first, last), "closed")[2] == "at the next start: the process that ran it (`i`) died"
    assert find(told(first, last), "  unknown")[3] == "warn"


def test_an_intent_is_told_with_the_line_of_the_code_the_entry_and_its_place() -> None:
    verdict = {
        "intent": "network x.example:443",
        "effect": "deny",
        "source": "inferred",
        "line": 7,
        "when": "start",
        "by": ["/p/licet.yaml:12 deny: network any"],
        "reason": "an entry denies it",
    }
    body = {"effect": "deny", "policy": "p@1", "verdicts": [verdict], "documents": ["/p/licet.yaml"]}
    found = told(record(0, "decision", None, body))
    assert find(found, "decision")[2:] == ("denied by p@1", "bad")
    assert find(found, "  network x.example:443")[2:] == (
        "denied (line 7, seen in the code): an entry denies it [/p/licet.yaml:12 deny: network any]",
        "bad",
    )


leaves = (
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(st.characters(codec="utf-8"))
)
names = st.sampled_from(
    [
        "subject",
        "id",
        "asserted_by",
        "intents",
        "limits",
        "wall_time",
        "asked_limits",
        "changes",
        "digests",
        "code",
        "effect",
        "verdicts",
        "intent",
        "by",
        "documents",
        "rules",
        "truth",
        "leaves",
        "violations",
        "line",
        "demands",
        "ballots",
        "rehearsals",
        "required",
        "candidates",
        "blockers",
        "name",
        "claimed",
        "opened",
        "read",
        "usage",
        "peak_memory",
        "error",
        "observed",
        "configured",
        "unknown",
        "unknown_effects",
        "results",
        "outcome",
        "verdict",
        "sequence",
        "tool",
        "stdout_bytes",
        "code_bytes",
        "properties",
        "groups",
        "policy_stale",
        "backend",
        "leaked",
    ]
)
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4)
)
bodies = st.dictionaries(names, values, max_size=12)


@settings(suppress_health_check=[HealthCheck.too_slow])  # its texts are slow to begin with
@given(
    st.lists(
        st.tuples(st.sampled_from(KINDS), st.sampled_from((None, "before", "after")), bodies), max_size=6
    )
)
def test_whatever_a_record_holds_is_told(found: list[tuple[str, str | None, dict[str, Any]]]) -> None:
    made = [record(seq, kind, phase, body, time="today") for seq, (kind, phase, body) in enumerate(found)]
    for row in rows(made):
        assert isinstance(row, Row)
        assert len(row.text) <= 2000 and len(row.what) <= 40


def test_a_long_target_is_said_whole_and_takes_no_room_as_a_label() -> None:
    verdict = {"intent": f"read /{'x' * 90}", "effect": "allow", "source": "declared", "reason": "fine"}
    found = told(record(0, "decision", None, {"effect": "allow", "verdicts": [verdict]}))
    [row] = [row for row in found if row[1].startswith("  read")]
    assert row[1:3] == (f"  read /{'x' * 31}…", f"read /{'x' * 90}: allowed (asked for): fine")


@pytest.mark.parametrize("time", ["", "today", "2026-01-01T00:00:00", "9" * 40])
def test_times_that_are_none_are_no_error(time: str) -> None:
    first = record(0, "request", None, {}, time=time)
    last = record(1, "result", "after", {}, time="2026-01-01T00:00:00.000000000Z", instance="j", boot=None)
    assert {row.after for row in rows((first, last)) if row.seq == 1} == {None}
