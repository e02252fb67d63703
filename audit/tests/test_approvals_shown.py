"""Approvals as people see them: in a timeline, a list, a report, and what goes elsewhere."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from approving import (
    ANN,
    ASKED,
    CALL,
    answered,
    answers,
    approval,
    asking,
    entry,
    going_on,
    granted,
    person,
    waiting,
    whole,
    yes,
)
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from licet.approvals import telling
from licet.record import Entry, MemoryLog, Record
from licet.state import StateDirectory
from licet_audit import telling_approvals, timeline
from licet_audit.cli import audit
from licet_audit.index.rows import RunRow, gathered
from licet_audit.ocsf.mapping import Mapper
from licet_audit.otlp.assembly import Assembly, Span
from licet_audit.otlp.encoding import traces
from licet_audit.report import run as cards
from licet_audit.report.waiting import waited
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

Append = Callable[..., list[Record]]
HOSTILE = "ann\u202e\x1b[31m<script>alert(1)</script>"
KEPT = replace(ASKED, document={"code": "pay()\n" + HOSTILE, "requester": {"id": "bot"}})


def recorded(entries: Sequence[Entry]) -> tuple[Record, ...]:
    return asyncio.run(MemoryLog().append(entries))


def lines(entries: Sequence[Entry]) -> list[str]:
    return [f"{row.what.strip()} | {row.text} | {row.tone}" for row in timeline.rows(recorded(entries))]


def test_a_timeline_tells_who_was_asked_and_who_answered() -> None:
    told = lines(whole(after=0))
    assert "asks | to approve the run by queue, within 24 h (A1) | warn" in told
    assert "needs | 2 human persons of finance | plain" in told
    assert (
        "yes | to A1 from ann, in finance, a person was seen to act, a token says so, through queue | good"
        in told
    )
    assert "saying | fine | plain" in told
    assert "granted | A1 by ann and bob, for this once, within 24 h | good" in told
    assert "waits | for A1; its process may end, and there is no result yet | warn" in told
    assert "approval | A1: use 1 is spent, as #10 said | plain" in told
    assert "approval | A1: use 1 ran | plain" in told


def test_a_run_that_waits_is_not_told_as_one_that_died() -> None:
    assert not any(line.startswith("unfinished") for line in lines([*asking(CALL), waiting(CALL)]))
    assert any(line.startswith("unfinished") for line in lines(asking(CALL)))


@pytest.mark.parametrize(
    ("reason", "told"), [("", "A1 by ann"), ("too much", "A1 by ann: too much"), (None, "A1 by ann: ?")]
)
def test_an_ending_has_its_reason_where_somebody_gave_one(reason: str | None, told: str) -> None:
    body = {**telling.over("A1", "denied", "", ANN), "reason": reason}
    assert [(line.what, line.text) for line in telling_approvals.approval(body)] == [("denied", told)]


def test_an_answer_that_does_not_count_says_why() -> None:
    told = lines([*asking(), answered(yes(ANN, approve=False), objection="she asked herself")])
    assert any(line.startswith("no | to A1 from ann") and line.endswith("| warn") for line in told)
    assert "but | it does not count: she asked herself | warn" in told


ROWS = {
    "asked": (asking(), "unfinished", "pending", ()),
    "waits": ([*asking(), waiting()], "waiting", "pending", ()),
    "granted": ([*asking(), waiting(), *answers()], "waiting", "granted", ("ann", "bob")),
    "ran": (whole(after=0), "exited", "consumed", ("ann", "bob")),
    "denied": (
        [*asking(), answered(yes(ANN, approve=False)), approval(telling.over("A1", "denied", "no", ANN))],
        "unfinished",
        "denied",
        ("ann",),
    ),
    "denied while it waited": (
        [*asking(), waiting(), approval(telling.over("A1", "denied", "no", ANN))],
        "approval_denied",
        "denied",
        (),
    ),
    "does not count": ([*asking(), answered(yes(ANN), objection="no")], "unfinished", "pending", ()),
}


@pytest.mark.parametrize("what", ROWS)
def test_the_index_has_approvals(what: str) -> None:
    entries, end, state, approvers = ROWS[what]
    (row,) = gathered(recorded(entries))
    assert (row.termination, row.approval_state, row.approvals, row.approvers) == (
        end,
        state,
        ("A1",),
        approvers,
    )


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (["--approver", "ann"], ["R"]),
        (["--approver", "zoe"], []),
        (["--approval", "A1"], ["R"]),
        (["--approval-state", "consumed"], ["R"]),
        (["--approval-state", "pending"], ["R2"]),
        (["--termination", "waiting"], ["R2"]),
    ],
)
def test_runs_are_found_by_their_approvals(
    state: StateDirectory, append: Append, options: list[str], found: list[str]
) -> None:
    other = replace(CALL, id="A2", run_id="R2")
    append([*whole(), *asking(other), waiting(other)])
    answer = CliRunner().invoke(audit, ["query", "--state", str(state.path), "--json", *options])
    assert answer.exit_code == 0, answer.output
    assert [one["run_id"] for one in json.loads(answer.stdout)] == found


def test_a_word_that_is_no_state_is_refused(state: StateDirectory, append: Append) -> None:
    append(whole())
    answer = CliRunner().invoke(audit, ["query", "--state", str(state.path), "--approval-state", "grantd"])
    assert answer.exit_code != 0


def _reported(entries: Sequence[Entry], read: Any = None) -> cards.RunCard:
    return cards.card(recorded(entries), read)


def test_a_card_has_what_was_shown_where_it_is_kept() -> None:
    kept = telling.shown(KEPT)
    told = whole(KEPT, after=0)
    place = next(at for at, one in enumerate(told) if one.body.get("event") == "asked")
    told[place] = replace(told[place], kept=(kept,))
    (one,) = _reported(told, {kept.commitment: kept.data}.get).approvals
    assert one.state.text == "granted, spent, and it ran"
    assert [answer.who.split(",")[0] for answer in one.answers.items] == ["ann", "bob"]
    assert one.shown is not None and "code:\n    pay()\n    ann" in one.shown
    assert _reported(told, lambda _: None).approvals[0].why_not == "erased, or not what was committed to"
    assert _reported(told).approvals[0].why_not == "kept, not shown in this report"
    assert _reported(whole(after=0)).approvals[0].why_not is None


def test_a_card_of_a_run_that_waits_says_so() -> None:
    card = _reported([*asking(CALL), waiting(CALL)])
    assert (card.end.text, card.why.items) == (
        "waits for an approval",
        ("call of pay asks: ", "it waits for an approval"),
    )


def test_nothing_that_people_say_gets_out_of_its_element(state: StateDirectory, append: Append) -> None:
    who = person(HOSTILE, HOSTILE)
    answer = yes(who, reason=HOSTILE, service=HOSTILE, token=HOSTILE)
    end = approval(telling.over("A1", "denied", HOSTILE, who))
    append([*asking(), answered(answer, objection=HOSTILE), granted(by=[HOSTILE]), end])
    path = state.path.parent / "report.html"
    runner = CliRunner()
    made = runner.invoke(audit, ["report", "--state", str(state.path), "--output", str(path)])
    assert path.exists(), made.output
    page = path.read_text("utf-8")
    assert "alert(1)" in page
    for hidden in ("<script", "\u202e", "\x1b"):
        assert hidden not in page
    shown = runner.invoke(audit, ["show", "R", "--state", str(state.path)])
    assert "alert(1)" in shown.output
    assert "\u202e" not in shown.output and "\x1b" not in shown.output


def test_how_long_an_answer_took_is_that_of_the_first_approval() -> None:
    told = [*asking(), *answers()[:2]]
    late = replace(granted(), mono_ns=90 * 10**9 + 1)
    assert waited(recorded([*told, late])) == 90.0
    assert waited(recorded(told)) is None


def _spans(entries: Sequence[Entry]) -> list[Span]:
    assembly = Assembly()
    return [span for record in recorded(entries) for span in assembly.feed(record)]


def test_two_short_spans_are_linked_and_none_waits() -> None:
    before = [*asking(CALL), waiting(CALL)]
    found = _spans([*before, *answers(CALL), *going_on(CALL, after=len(before) + 3)])
    names = [one.begin.name for one in found]
    (asked,) = (one for one in found if one.begin.name == "licet.approval.request")
    (resolved,) = (one for one in found if one.begin.name == "licet.approval.resolve")
    assert resolved.link == (asked.trace_id, asked.span_id)
    assert asked.link is None
    assert names.count("licet.run") == 2  # up to where it waits, and from where it goes on
    assert resolved.begin.attributes["licet.approval.by"] == ("ann", "bob")
    (answer, _) = (one for one in found if one.begin.attributes.get("licet.approval.event") == "answered")
    assert answer.begin.attributes["licet.approver.id"] == "ann"
    waits = _spans(before)
    request = ExportTraceServiceRequest.FromString(traces([asked, resolved]))
    sent = [span for group in request.resource_spans for span in group.scope_spans[0].spans]
    assert [[(link.trace_id, link.span_id) for link in span.links] for span in sent] == [
        [],
        [(asked.trace_id, asked.span_id)],
    ]
    assert {one.begin.name for one in waits} >= {"licet.run", "licet.execute", "execute_tool pay"}


def test_events_for_others_name_the_person(state: StateDirectory) -> None:
    mapper = Mapper()
    found = [event for record in recorded(whole(CALL, after=0)) for event in mapper.feed(record)]
    said = [(one["api"]["operation"], one["status"]) for one in found if "approval" in one["message"]]
    assert said == [
        ("approval asked", "Unknown"),
        ("approval answered", "Unknown"),
        ("approval answered", "Unknown"),
        ("approval granted", "Success"),
        ("approval consumed", "Success"),
    ]
    answer = next(one for one in found if one.get("api", {}).get("operation") == "approval answered")
    assert answer["actor"]["user"]["uid"] == "ann"
    assert answer["authorizations"][0]["decision"] == "approve"
    call = next(one for one in found if one.get("api", {}).get("operation") == "pay")
    assert (call["disposition"], call["status"]) == ("Allowed", "Success")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
FIELDS = (
    "event approval of sequence digest shown requirements requester expires services answer person self uses"
    " scope vary reason token counts objection reach by suspended suspended_bytes use consuming covered"
)
EVENTS = st.sampled_from(
    ["asked", "answered", "granted", "denied", "waiting", "resumed", "consuming", "consumed", "executed"]
)


@settings(deadline=None, max_examples=150)
@given(st.lists(st.dictionaries(st.sampled_from(FIELDS.split()), JSON | EVENTS, max_size=12), max_size=5))
def test_any_body_is_told_somehow(bodies: list[dict[str, Any]]) -> None:
    records = recorded([entry("request", {}), *map(approval, bodies)])
    list(timeline.rows(records))
    rows: list[RunRow] = gathered(records)
    assert len(rows) == 1
    cards.card(records, lambda _: b"{")
    waited(records)
    mapper, assembly = Mapper(), Assembly()
    for record in records:
        list(mapper.feed(record))
        list(assembly.feed(record))
