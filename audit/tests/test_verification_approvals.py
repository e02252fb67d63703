"""Approvals on record: what runs was granted by those who may, for just that, in time and once."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from approving import (
    ANN,
    ANYBODY,
    ASKED,
    BOB,
    BOT,
    CALL,
    answered,
    answers,
    approval,
    asking,
    at,
    consuming,
    entry,
    going_on,
    granted,
    person,
    waiting,
    whole,
    yes,
)
from forging import failed, told, verify
from licet.approvals import telling
from licet.approvals.forms import Reach
from licet.record import Entry, Record
from licet.state import StateDirectory

Append = Callable[..., list[Record]]
Edit = Callable[[list[Entry]], list[Entry]]


def _event(entries: list[Entry], event: str) -> int:
    return next(place for place, one in enumerate(entries) if one.body.get("event") == event)


def _renumbered(told: list[Entry]) -> list[Entry]:
    """With the number that the record of an attempt has now; one comes before them, of the log itself."""
    number = next((place for place, one in enumerate(told, 1) if one.body.get("event") == "consuming"), 0)
    return [
        replace(one, body={**one.body, "consuming": number}) if one.body.get("event") == "consumed" else one
        for one in told
    ]


def _without(event: str) -> Edit:
    return lambda told: _renumbered([one for one in told if one.body.get("event") != event])


def _changed(name: str, /, **fields: Any) -> Edit:
    def edit(told: list[Entry]) -> list[Entry]:
        place = _event(told, name)
        return [*told[:place], replace(told[place], body={**told[place].body, **fields}), *told[place + 1 :]]

    return edit


def _before(event: str, *more: Entry) -> Edit:
    def edit(told: list[Entry]) -> list[Entry]:
        place = _event(told, event)
        return _renumbered([*told[:place], *more, *told[place:]])

    return edit


def _answers(*given: Entry) -> Edit:
    """With other answers; the grant stays."""

    def edit(told: list[Entry]) -> list[Entry]:
        return _before("granted", *given)(_without("answered")(told))

    return edit


def _twice(told: list[Entry]) -> list[Entry]:
    """The same use spent again, by a run of the same plan."""
    after = 1 + len(told)
    again = replace(ASKED, run_id="R2")
    begun = [replace(one, run_id="R2") for one in asking(ASKED)[:-1]]
    more = [replace(one, run_id="R2") for one in going_on(again, after=after + len(begun))]
    return [*told, *begun, *more]


def _late(told: list[Entry]) -> list[Entry]:
    place = _event(told, "consuming")
    return [*told[:place], replace(told[place], time=at(90_000)), *told[place + 1 :]]


OVER = approval(telling.over("A1", "revoked", "changed my mind", ANN))
RUN_ATTACKS: dict[str, tuple[Edit, str]] = {
    "nobody asked": (_without("asked"), "is granted, and nothing before it asks for it"),
    "no grant": (_without("granted"), "and has no grant"),
    "no answer": (_answers(), "0 of 2 persons"),
    "one person": (_answers(answered(yes(ANN))), "1 of 2 persons"),
    "one person twice": (
        _answers(answered(yes(ANN)), answered(yes(person("ＡＮＮ", "finance")))),
        "1 of 2 persons",
    ),
    "another group": (_answers(answered(yes(ANN)), answered(yes(person("bob", "staff")))), "1 of 2"),
    "a program": (
        _answers(answered(yes(ANN)), answered(yes(person("bob", "finance", reviewer="auto")))),
        "1 of 2 persons",
    ),
    "an answer that does not count": (
        _answers(answered(yes(ANN)), answered(yes(BOB), objection="the token is spent")),
        "1 of 2 persons",
    ),
    "something else was shown": (
        _answers(answered(yes(ANN)), answered(yes(BOB, shown="shown-2"))),
        "to something else than was shown",
    ),
    "somebody denied": (
        _before("consuming", answered(yes(person("zoe", "finance"), approve=False))),
        "somebody who counts had denied it",
    ),
    "a wider reach": (
        _changed("granted", reach={"scope": "session", "vary": [], "uses": 3, "expires": "86400.0"}),
        "its scope",
    ),
    "more uses": (
        _changed("granted", reach={"scope": "once", "vary": [], "uses": 2, "expires": "86400.0"}),
        "its uses",
    ),
    "more time": (
        _changed("granted", reach={"scope": "once", "vary": [], "uses": 1, "expires": "99999.0"}),
        "its time",
    ),
    "revoked before": (_before("consuming", OVER), "was revoked before"),
    "another plan": (_changed("consuming", digest="plan-2"), "on something else than was asked for"),
    "another plan ran": (
        lambda told: [
            replace(one, body={**one.body, "plan_digest": "plan-2"}) if one.kind == "execution" else one
            for one in told
        ],
        "it had to be asked about, and no approval was spent on it",
    ),
    "not about to be": (_changed("consumed", consuming=3), "no record before it says"),
    "not consumed": (_without("consumed"), "it had to be asked about, and no approval was spent on it"),
    "too late": (_late, "after it had expired"),
    "spent again": (_twice, "is consumed, and was spent before"),
    "ran without being resumed": (_without("resumed"), "it waits for an approval"),
    "asked again": (
        lambda told: [*told[:-1], approval(telling.asked(ASKED, ["queue"])), told[-1]],
        "is asked for a second time",
    ),
    "ended twice": (
        lambda told: [*told[:-1], approval(telling.ended("A1", 1, "executed")), told[-1]],
        "is executed, and was spent before",
    ),
    "nonsense": (_changed("granted", reach=[1]), "can't be understood"),
}


@pytest.mark.parametrize("request_", [ASKED, CALL], ids=["run", "call"])
def test_a_run_that_waited_and_was_approved_proves(
    state: StateDirectory, append: Append, request_: Any
) -> None:
    append(whole(request_))
    result = verify(state)
    assert (result.status, failed(result)) == ("proven", {})
    assert told(result, "outcomes") == (True, "every run that began has a result; 0 ended as unknown")


@pytest.mark.parametrize("attack", RUN_ATTACKS)
def test_a_run_without_its_approval_is_found(state: StateDirectory, append: Append, attack: str) -> None:
    edit, why = RUN_ATTACKS[attack]
    append(edit(whole()))
    result = verify(state)
    assert (result.status, set(failed(result))) == ("tampered", {"contradictions"})
    assert why in failed(result)["contradictions"]


CALL_ATTACKS: dict[str, tuple[Edit, str]] = {
    "not consumed": (_without("consumed"), "its tool call 1 was performed, and no approval was spent on it"),
    "another call": (_changed("consuming", digest="call-2"), "on something else than was asked for"),
    "it did not start": (
        lambda told: [
            *told[: (place := _event(told, "consumed")) + 1],
            approval(telling.ended("A1", 1, "failed_to_start")),
            *[one for one in told[place + 1 :] if one.body.get("event") != "executed"],
        ],
        "its tool call 1 was performed, and no approval was spent on it",
    ),
    "not resumed": (_without("resumed"), "it calls a tool while it waits for an approval"),
}


@pytest.mark.parametrize("attack", CALL_ATTACKS)
def test_a_call_without_its_approval_is_found(state: StateDirectory, append: Append, attack: str) -> None:
    edit, why = CALL_ATTACKS[attack]
    append(edit(whole(CALL)))
    result = verify(state)
    assert (result.status, set(failed(result))) == ("tampered", {"contradictions"})
    assert why in failed(result)["contradictions"]


def test_what_another_process_records_late_still_counts(state: StateDirectory, append: Append) -> None:
    """Whose answer granted it records that after the waiting run went on."""
    before = [*asking(), waiting()]
    on = going_on(after=1 + len(before))
    append([*before, *on[:3]])
    append([*answers(), *on[3:]])
    assert verify(state).status == "proven"


def test_a_grant_that_the_spender_records_afterwards_is_none(state: StateDirectory, append: Append) -> None:
    before = [*asking(), waiting()]
    append([*before, *(on := going_on(after=1 + len(before)))[:3], *answers(), *on[3:]])
    assert "and has no grant" in failed(verify(state))["contradictions"]


def test_what_began_before_a_revocation_goes_on(state: StateDirectory, append: Append) -> None:
    append(_before("consumed", OVER)(whole()))
    assert verify(state).status == "proven"


@pytest.mark.parametrize(
    ("who", "requirement", "good"),
    [
        (person(BOT.id), ANYBODY, True),
        (person("eve"), ANYBODY, True),
        (person("EVE"), ANYBODY.model_copy(update={"sources": ("finance",)}), False),
        (person("bot", "finance"), ANYBODY.model_copy(update={"sources": ("finance",)}), False),
        (person("zoe", "finance"), ANYBODY.model_copy(update={"sources": ("finance",)}), True),
        (person("zoe", reviewer="auto"), ANYBODY.model_copy(update={"reviewer": "human"}), False),
    ],
)
def test_who_may_answer_is_what_rules_16_and_17_say(
    state: StateDirectory, append: Append, who: Any, requirement: Any, good: bool
) -> None:
    request = replace(ASKED, requirements=(requirement,))
    told = [*asking(request), answered(yes(who, request), request), granted(request, by=[who.id])]
    append([*told, *going_on(request, after=1 + len(told))])
    assert verify(state).status == ("proven" if good else "tampered")


def _reaching(other: Any, uses: int = 3) -> list[Entry]:
    """An approval for a session that was asked for by one run, and is used by it and by another one."""
    say = {"scope": "session", "vary": ("amount",), "uses": uses}
    told = [*asking(), *(answered(yes(who, **say)) for who in (ANN, BOB))]
    told += [granted(reach=Reach("session", frozenset({"input:amount"}), uses, 86400.0))]
    told += going_on(after=1 + len(told))
    begun = [
        entry("request", {"subject": {"id": "bot"}}, "R2"),
        entry("decision", {"effect": "ask", "policy": "p", "verdicts": []}, "R2"),
        consuming(2, other),
    ]
    told += begun
    body = {"backend": "monty", "plan_digest": other.digest}
    return [
        *told,
        approval(telling.consumed("A1", 2, len(told)), "R2"),
        entry("execution", body, "R2", "before"),
        approval(telling.ended("A1", 2, "executed"), "R2"),
        entry("result", {"termination": "exited"}, "R2", "after"),
    ]


OTHER = replace(
    ASKED, id="A2", run_id="R2", digest="plan-2", shown="other", fields={"code": "c", "input:amount": "j"}
)


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (OTHER, None),
        (replace(OTHER, fields={"code": "d", "input:amount": "j"}), "`code` is another one"),
        (replace(OTHER, fields={"code": "c"}), "`input:amount` is another one"),
        (replace(OTHER, policy_digest="q"), "its `policy_digest` is another one"),
        (replace(OTHER, requester=BOT.model_copy(update={"session": "t"})), "the `session` of who asks"),
        (replace(OTHER, requester=BOT.model_copy(update={"id": "mallory"})), "the `id` of who asks"),
        (replace(OTHER, requirements=(*ASKED.requirements, ANYBODY)), "more is demanded"),
    ],
)
def test_a_grant_reaches_as_far_as_all_agreed(
    state: StateDirectory, append: Append, other: Any, why: str | None
) -> None:
    append(_reaching(other))
    result = verify(state)
    assert result.status == ("tampered" if why else "proven"), failed(result)
    assert why is None or why in failed(result)["contradictions"]


def test_the_number_of_a_use_is_the_one_that_it_got(state: StateDirectory, append: Append) -> None:
    """Two that were about to spend the same use: the store gave one of them the next."""
    told = _reaching(OTHER)
    place = max(at for at, one in enumerate(told) if one.body.get("event") == "consuming")
    told[place] = replace(told[place], body={**told[place].body, "use": 1})
    append(told)
    assert verify(state).status == "proven"


def test_a_grant_is_not_spent_more_often_than_it_was_given_for(state: StateDirectory, append: Append) -> None:
    append(_reaching(OTHER, uses=1))
    assert "is consumed, and was spent before" in failed(verify(state))["contradictions"]


def test_a_gap_explains_what_it_may_have_held(state: StateDirectory, append: Append) -> None:
    missing = entry("log", {"event": "gap", "missing": 1}, "")
    told = [*asking(), waiting(), *answers()[:2]]
    append([missing, *told, *going_on(after=2 + len(told))])
    result = verify(state)
    assert (result.status, set(failed(result))) == ("incomplete", {"gaps"})


def test_runs_that_wait_are_counted_apart(state: StateDirectory, append: Append) -> None:
    append([*asking(CALL), waiting(CALL)])
    assert told(verify(state), "outcomes") == (
        None,
        "begun and without a result yet: 0; waiting for an approval: 1; ended as unknown: 0",
    )


@pytest.mark.parametrize("field", ["event", "approval", "requirements", "requester", "expires"])
@pytest.mark.parametrize("value", [None, 1, [], {}, "x", [{}], "nan"])
def test_nonsense_is_told_and_ends_nothing(
    state: StateDirectory, append: Append, field: str, value: object
) -> None:
    append(_changed("asked", **{field: value})(whole()))
    result = verify(state)
    assert result.status == "tampered"
    assert set(failed(result)) == {"contradictions"}
