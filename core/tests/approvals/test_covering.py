"""A grant covers what those who gave it let vary, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from asked import demand, request
from hypothesis import given
from hypothesis import strategies as st
from licet.approvals.covering import covers
from licet.approvals.forms import ApprovalRequest, Reach, Scope, StoredApproval
from licet.request import Subject

FIELDS = dict(request().fields)


def granted(scope: Scope = "shape", *vary: str, **fields: Any) -> StoredApproval:
    return StoredApproval(request(**fields), "granted", reach=Reach(scope, frozenset(vary), None, 1800.0))


def changed(**fields: Any) -> ApprovalRequest:
    return request("A2", **fields)


def test_the_same_again_is_covered_by_a_session_and_by_a_shape() -> None:
    assert covers(granted("shape"), changed())
    assert covers(granted("session"), changed())
    assert not covers(granted("once"), changed())
    assert not covers(replace(granted("shape"), state="pending"), changed())


def test_only_what_may_vary_varies() -> None:
    other = changed(fields={**FIELDS, "arg:amount": "another"})
    assert covers(granted("shape", "arg:amount"), other)
    assert not covers(granted("shape", "arg:order"), other)
    assert not covers(granted("session"), other)
    assert not covers(granted("session", "arg:amount"), other)  # what a session holds for does not vary


def test_a_name_more_or_less_is_another_request_also_one_that_may_vary() -> None:
    fewer = {name: digest for name, digest in FIELDS.items() if name != "arg:amount"}
    assert not covers(granted("shape", "arg:amount"), changed(fields=fewer))
    assert not covers(granted("shape", "arg:amount", fields=fewer), changed())


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "run"},
        {"policy_digest": "sha256:tightened"},
        {"requester": Subject(id="bob", tenant="acme", session="s1", on_behalf_of="customer")},
        {"requester": Subject(id="ada", tenant="globex", session="s1", on_behalf_of="customer")},
        {"requester": Subject(id="ada", tenant="acme", session="s1")},
        {"requester": Subject(type="svc", id="ada", tenant="acme", session="s1", on_behalf_of="customer")},
        {
            "requester": Subject(
                id="ada", tenant="acme", session="s1", on_behalf_of="customer", asserted_by="token"
            )
        },
        {"requirements": (demand(), demand(2, "finance"))},
    ],
)
def test_another_kind_policy_requester_or_demand_is_another_request(fields: dict[str, Any]) -> None:
    assert not covers(granted("shape"), changed(**fields))
    assert not covers(granted("session"), changed(**fields))


def test_a_demand_less_is_covered() -> None:
    assert covers(granted("shape", requirements=(demand(), demand(2, "finance"))), changed())


def test_another_session_is_covered_by_a_shape_alone() -> None:
    other = Subject(id="ada", tenant="acme", session="s2", on_behalf_of="customer")
    assert covers(granted("shape"), changed(requester=other))
    assert not covers(granted("session"), changed(requester=other))
    none = Subject(id="ada", tenant="acme", on_behalf_of="customer")
    assert not covers(granted("session", requester=none), changed(requester=none))


@given(st.dictionaries(st.sampled_from([*FIELDS, "arg:x"]), st.sampled_from(["c", "o", "a", "z"])), st.data())
def test_nothing_covers_what_differs_beyond_what_may_vary(
    fields: dict[str, str], data: st.DataObject
) -> None:
    vary = data.draw(st.sets(st.sampled_from(sorted(FIELDS))))
    same = fields.keys() == FIELDS.keys() and all(
        fields[name] == digest or name in vary for name, digest in FIELDS.items()
    )
    assert covers(granted("shape", *vary), changed(fields=fields)) == same
