"""Rules 16 and 17: who counts, how many, and what a grant reaches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from asked import T0, answer, demand, later, request
from hypothesis import given
from hypothesis import strategies as st
from licet.approvals.counting import identity, is_requester, objection, standing
from licet.approvals.forms import Answer, ApprovalRequest, Given, Person, Reach
from licet.request import Subject


def taken(*answers: Answer) -> list[Given]:
    return [Given(one, later(n + 1)) for n, one in enumerate(answers)]


def why(to: ApprovalRequest, one: Answer, *before: Answer) -> str | None:
    found = objection(to, taken(*before), one, later(len(before) + 1))
    return None if found is None else found.why


def state(to: ApprovalRequest, *answers: Answer, after: float = 100) -> str:
    return standing(to, taken(*answers), later(after)).state


def test_nobody_has_answered() -> None:
    to = request("A1", demand(2, "finance"), demand())
    found = standing(to, [], T0)
    assert (found.state, [one.persons for one in found.missing], found.reach) == ("pending", [2, 1], None)


def test_each_requirement_takes_its_own_persons() -> None:
    to = request("A1", demand(2, "finance"), demand(1, "security"))
    ann, bob = answer(to, "ann", "finance"), answer(to, "bob", "finance")
    eve = answer(to, "eve", "security")
    assert state(to, ann, bob) == "pending"
    assert state(to, ann, eve) == "pending"
    assert state(to, ann, eve, bob) == "granted"


def test_one_person_counts_for_every_requirement_she_fits() -> None:
    to = request("A1", demand(1, "finance"), demand(1, "security"))
    assert state(to, answer(to, "ann", "finance", "security")) == "granted"


def test_equal_requirements_count_once() -> None:
    to = request("A1", demand(1, "finance"), demand(1, "finance"))
    assert state(to, answer(to, "ann", "finance")) == "granted"


@pytest.mark.parametrize("again", ["ann", "ANN", "ａｎｎ", "an\u200bn", " ann", "ann\u202e"])
def test_one_person_answers_once(again: str) -> None:
    to = request("A1", demand(2))
    said = why(to, answer(to, again), answer(to, "ann"))
    assert said == f"`{again}` has answered already"
    assert why(to, answer(to, "anne"), answer(to, "ann")) is None


@pytest.mark.parametrize("who", ["ada", "ADA", "customer", "Cus\u00adtomer"])
def test_neither_the_requester_nor_whom_she_acts_for_is_one_of_two_or_of_a_group(who: str) -> None:
    for to, groups in ((request("A1", demand(2)), ()), (request("A1", demand(1, "finance")), ("finance",))):
        assert why(to, answer(to, who, *groups)) == (
            f"`{who}` may not answer: whoever asks, or is asked for, can't approve it"
        )
        assert why(to, answer(to, "ann", *groups)) is None


def test_the_requester_may_answer_where_one_of_anybody_is_asked_for() -> None:
    to = request("A1", demand(1))
    assert state(to, answer(to, "ada")) == "granted"
    assert is_requester(to, Person("Ada"))
    assert not is_requester(to, Person("ann"))


def test_the_requester_counts_only_where_she_may() -> None:
    to = request("A1", demand(1), demand(1, "finance"))
    mine = answer(to, "ada", "finance")
    assert why(to, mine) is None
    found = standing(to, taken(mine), later(1))
    assert [str(one.requirement) for one in found.missing] == ["1 person of finance"]


def test_a_program_is_no_human() -> None:
    to = request("A1", demand(1, reviewer="human"))
    assert "policy asks for a human" in (why(to, answer(to, "ci", reviewer="auto")) or "")
    assert why(to, answer(to, "ci", reviewer="human")) is None


def test_somebody_of_another_tenant_never_counts() -> None:
    to = request()
    assert "it is of the tenant `acme`" in (why(to, answer(to, tenant="globex")) or "")
    assert why(to, answer(to, tenant="acme")) is None
    assert why(to, answer(to, tenant=None)) is None


def test_an_answer_to_another_document_never_counts() -> None:
    to, other = request(), request("A2")
    assert "another document" in (why(to, answer(other)) or "")
    assert state(to, answer(other)) == "pending"


@pytest.mark.parametrize("nobody", ["", " ", "\u200b", "\x00"])
def test_an_answer_of_nobody_never_counts(nobody: str) -> None:
    to = request()
    assert "says not who" in (why(to, answer(to, nobody)) or "")


def test_one_no_of_somebody_who_counts_is_the_end() -> None:
    to = request("A1", demand(2, "finance"))
    yes, no = answer(to, "ann", "finance"), answer(to, "bob", "finance", approve=False, reviewer="auto")
    assert state(to, yes, no) == "denied"
    assert state(to, yes, answer(to, "bob", approve=False)) == "pending"  # of no group that is asked


def test_after_the_grant_only_a_human_can_say_no() -> None:
    to = request()
    yes = answer(to, "ann", reviewer="auto")
    assert "only a human" in (why(to, answer(to, "ci", approve=False, reviewer="auto"), yes) or "")
    assert state(to, yes, answer(to, "bob", approve=False)) == "denied"
    assert "no more approvals" in (why(to, answer(to, "bob"), yes) or "")


def test_time_is_over_when_it_is_over() -> None:
    to = request(expires=60.0)
    assert state(to, after=59.9) == "pending"
    assert state(to, after=60) == "expired"
    assert state(to, answer(to), after=59.9) == "granted"
    assert state(to, answer(to), after=60) == "expired"
    late = [Given(answer(to), later(60))]
    assert standing(to, late, later(60)).state == "expired"


Said = dict[str, Any]


@pytest.mark.parametrize(
    ("answers", "reach"),
    [
        ([{}, {}], Reach("once", frozenset(), 1, 1800.0)),
        ([{"scope": "shape"}, {}], Reach("once", frozenset(), 1, 1800.0)),
        ([{"scope": "shape"}, {"scope": "session"}], Reach("once", frozenset(), 1, 1800.0)),
        ([{"scope": "session"}] * 2, Reach("session", frozenset(), None, 1800.0)),
        ([{"scope": "session", "uses": 9}, {"scope": "session"}], Reach("session", frozenset(), 9, 1800.0)),
        (
            [
                {"scope": "shape", "vary": ("amount", "code"), "uses": 5, "expires": 600},
                {"scope": "shape", "vary": ("arg:amount", "order"), "uses": 3, "expires": 900},
            ],
            Reach("shape", frozenset({"arg:amount"}), 3, 600),
        ),
        ([{"expires": 9999}, {"expires": 9998}], Reach("once", frozenset(), 1, 1800.0)),
    ],
)
def test_a_grant_reaches_as_far_as_all_agree(answers: list[Said], reach: Reach) -> None:
    to = request("A1", demand(2))
    given = taken(*(answer(to, f"p{n}", **said) for n, said in enumerate(answers)))
    assert standing(to, given, later(10)).reach == reach


@pytest.mark.parametrize(
    ("said", "because"),
    [
        ({"scope": "shape", "vary": ("digest",)}, "`digest` can't vary here"),
        ({"scope": "shape", "vary": ("tool",)}, "`tool` can't vary here"),
        ({"scope": "shape", "vary": ("workdir",)}, "`workdir` can't vary here"),
        ({"vary": ("amount",)}, "what may vary is said of a shape, not of `once`"),
        ({"uses": 2}, "an approval of scope `once` can't have 2 uses"),
        ({"scope": "shape", "uses": 0}, "an approval of scope `shape` can't have 0 uses"),
        ({"expires": 0.0}, "the approval would expire before it was given: 1 s have passed since the asking"),
        ({"expires": 1.0}, "the approval would expire before it was given: 1 s have passed since the asking"),
        (
            {"expires": float("nan")},
            "the approval would expire before it was given: 1 s have passed since the asking",
        ),
    ],
)
def test_a_grant_can_reach_no_further_than_it_could(said: Said, because: str) -> None:
    to = request()
    assert why(to, answer(to, **said)) == because


def test_without_a_session_nothing_holds_for_it() -> None:
    to = request(requester=Subject(id="ada"))
    assert why(to, answer(to, scope="session")) == "there is no session that the approval could hold for"
    assert why(request(), answer(request(), scope="session")) is None


@given(st.text())
def test_an_identity_is_its_own_identity(text: str) -> None:
    assert identity(identity(text)) == identity(text)
    assert identity(text.upper().lower()) == identity(identity(text.upper().lower()))


NAMES = ("ann", "bob", "ada", "customer", "ANN")
GROUPS = ("finance", "security")


def reference(to: ApprovalRequest, answers: Sequence[Answer]) -> str:
    """The rules again, read from their text alone; without time and reach."""
    counted: list[Answer] = []

    def fits(one: Answer, need: Any) -> bool:
        alone = need.count == 1 and not need.sources
        mine = one.person.id.lower() in ("ada", "customer")
        member = not need.sources or any(group in need.sources for group in one.person.groups)
        return member and (alone or not mine) and (need.reviewer == "any" or one.person.reviewer == "human")

    def met() -> bool:
        return all(
            len({one.person.id.lower() for one in counted if one.approve and fits(one, need)}) >= need.count
            for need in to.requirements
        )

    for one in answers:
        known = any(one.person.id.lower() == other.person.id.lower() for other in counted)
        if one.shown != to.shown or known or not any(fits(one, need) for need in to.requirements):
            continue
        if one.approve and not met():
            counted.append(one)
        elif not one.approve and (one.person.reviewer == "human" or not met()):
            return "denied"
    return "granted" if met() else "pending"


needs = st.builds(
    lambda count, sources, reviewer: demand(count, *sources, reviewer=reviewer),
    st.integers(1, 3),
    st.lists(st.sampled_from(GROUPS), max_size=2, unique=True),
    st.sampled_from(["any", "human"]),
)


@given(needs=st.lists(needs, min_size=1, max_size=3), data=st.data())
def test_answers_come_to_what_the_rules_say(needs: list[Any], data: st.DataObject) -> None:
    to = request("A1", *needs)
    one = st.builds(
        lambda who, groups, approve, reviewer, right: answer(
            to if right else request("A2"), who, *groups, approve=approve, reviewer=reviewer
        ),
        st.sampled_from(NAMES),
        st.lists(st.sampled_from(GROUPS), max_size=2, unique=True),
        st.sampled_from([True, True, True, False]),
        st.sampled_from(["auto", "human"]),
        st.sampled_from([True, True, True, False]),
    )
    answers = data.draw(st.lists(one, max_size=7))
    assert state(to, *answers) == reference(to, answers)
