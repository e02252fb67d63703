"""The sheet of an approval that has lost its content, and what its state and answers are told as."""

from __future__ import annotations

import io
from dataclasses import replace

import click
from licet.approvals import clocks
from licet.approvals.forms import Answer, ApprovalRequest, Given, Person, Reach, StoredApproval
from licet.cli import approving
from licet.policy.parts import DEFAULT_APPROVAL
from licet.request import Subject

REQUEST = ApprovalRequest(
    id="01JD7K0000000000000000000A",
    run_id="01JD7K0000000000000000000R",
    kind="call",
    digest="sha256:00",
    shown="hmac-sha256:11",
    document={"call": {"tool": "refund\u202e"}},
    fields={},
    policy_digest="sha256:22",
    requirements=(DEFAULT_APPROVAL,),
    requester=Subject(id="ann"),
    asked=clocks.now(),
    expires=1800.0,
)
BOB = Person("bob", ("finance",), reviewer="human", asserted_by="token")
GIVEN = Given(Answer(BOB, True, REQUEST.shown, "webhook", reason="a\x1b[2Jb"), clocks.now())
SPENT = StoredApproval(REQUEST, "consumed", (GIVEN,), Reach(expires=1800.0), used=1, ending="executed")


def lines_of(stored: StoredApproval) -> list[str]:
    paper = approving.paper(stored.request, stored, whole=True, stream=io.StringIO())
    return click.unstyle(paper.sheet.text()).splitlines()


def test_what_is_left_of_a_spent_one_is_told() -> None:
    answer = "bob of finance (says a signed token, seen to act) approved by webhook, just now: a‹U+001B›[2Jb"
    given = replace(GIVEN, at=clocks.now())  # the module may have been read a while ago
    assert lines_of(replace(SPENT, given=(given,))) == [
        "✓ a call of `refund‹U+202E›` was approved, and used  approval 01JD7K0000000000000000000A",
        "  content       content goes when nothing can come of an approval any more, or is erased",
        "  run           01JD7K0000000000000000000R",
        f"  answers       {answer}",
        "  good          once; used 1 time",
        "  came of it    it ran",
        "  digest        hmac-sha256:11",
    ]


def test_how_far_a_grant_reaches_is_told() -> None:
    reach = Reach("shape", frozenset({"arg:amount"}), None, 600.0)
    assert "  good          for its shape, varying arg:amount, without number; used 1 time" in lines_of(
        replace(SPENT, state="granted", reach=reach)
    )


def test_the_command_that_goes_on_can_be_typed() -> None:
    assert approving.resuming("R", None) == "licet run --resume R"
    assert approving.resuming("R", "my policy.yaml") == "licet run --resume R --policy 'my policy.yaml'"


def test_no_time_is_left_of_what_has_expired() -> None:
    later = replace(REQUEST.asked, wall=REQUEST.asked.wall + 1801)
    assert approving.left(REQUEST, later) == "which is over"
    assert approving.left(REQUEST, REQUEST.asked) == "30 min left"
