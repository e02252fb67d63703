"""Approvals as the store has them in its tables, and back.

Rules this module keeps:

- whatever somebody else wrote is kept as JSON, in which every text has a spelling, also one that is no text;
- what is looked up by comparing (persons, tokens, requests) is compared by its digest;
- what can't be read back is damage, never something that was left out.
"""

from __future__ import annotations

import functools
import hashlib
import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, replace
from typing import Any

from licet.approvals.clocks import Moment
from licet.approvals.covering import requested, requester
from licet.approvals.forms import Answer, ApprovalRequest, Given, Person, Reach, StoredApproval
from licet.approvals.schema import Damaged
from licet.policy.parts import Approval
from licet.request import Subject

COLUMNS = (
    "number, id, run_id, kind, state, digest, shown, policy_digest, requester, requirements, fields, "
    "outline, asked, expires, given, scope, vary, uses, reaches, used, ending, reason, ended_by, seq, changed"
)
_NAMES = COLUMNS.split(", ")
_JSON = ("fields", "outline", "asked", "given", "vary", "reason", "ended_by", "changed")


def of_request(request: ApprovalRequest) -> dict[str, Any]:
    """The columns of a new approval."""
    asked = text(astuple(request.asked))
    return {
        "id": request.id,
        "run_id": request.run_id,
        "kind": request.kind,
        "digest": request.digest,
        "shown": request.shown,
        "policy_digest": request.policy_digest,
        "requester": text(request.requester.model_dump()),
        "requirements": text([one.model_dump(by_alias=True) for one in request.requirements]),
        "fields": text(dict(request.fields)),
        "outline": text(outline(request.document)),
        "asked": asked,
        "expires": request.expires,
        "changed": asked,
        "requested": key(requested(request)),
        "alike": alike(request),
    }


def of_reach(reach: Reach) -> dict[str, Any]:
    """The columns that say how far a grant reaches."""
    return {
        "scope": reach.scope,
        "vary": text(sorted(reach.vary)),
        "uses": reach.uses,
        "reaches": reach.expires,
    }


def stored(row: Sequence[Any], document: str | None = None) -> StoredApproval:
    """The approval of a row of `COLUMNS`; without its document, it has what `outline` leaves.

    Raises:
        Damaged: it can't be read.
    """
    said = dict(zip(_NAMES, row, strict=True))
    try:
        # in one go, since lists are long
        fields, left, asked, given, vary, reason, ended_by, changed = json.loads(
            f"[{','.join(said[name] or 'null' for name in _JSON)}]"
        )
        request = ApprovalRequest(
            id=said["id"],
            run_id=said["run_id"],
            kind=said["kind"],
            digest=said["digest"],
            shown=said["shown"],
            document=_mapping(left if document is None else json.loads(document)),
            fields=_mapping(fields),
            policy_digest=said["policy_digest"],
            requirements=_requirements(said["requirements"]),
            requester=_subject(said["requester"]),
            asked=Moment(*asked),
            expires=said["expires"],
        )
        return StoredApproval(
            request=request,
            state=said["state"],
            given=tuple(_given(one) for one in given),
            reach=Reach(said["scope"], frozenset(vary), said["uses"], said["reaches"]),
            used=said["used"],
            ending=said["ending"],
            reason=reason,
            seq=said["seq"],
            changed=Moment(*changed),
            ended_by=None if ended_by is None else _person(ended_by),
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as problem:
        raise Damaged(f"the approval in row {said['number']} can't be read") from problem


def text_of_given(given: Iterable[Given]) -> str:
    """The column that holds all answers, in the order in which they were taken."""
    return text([{**asdict(one.answer), "at": astuple(one.at)} for one in given])


def outline(document: Mapping[str, Any]) -> dict[str, Any]:
    """What stays of a document when its content goes: which tool, or which host, it was about."""
    left: dict[str, Any] = {}
    for about, name in (("call", "tool"), ("connection", "target")):
        said = document.get(about)
        if isinstance(said, Mapping) and isinstance(said.get(name), str):
            left[about] = {name: said[name]}
    return left


def alike(request: ApprovalRequest) -> str:
    """The same for approvals that people compare: of one kind, requester, directory, and tool or host."""
    place = (request.fields.get("workdir"), request.fields.get("tool") or request.fields.get("target"))
    return key((request.kind, *requester(request.requester), *place))


def key(parts: Sequence[str | None]) -> str:
    """A digest of some texts; no two lists of them share one but by accident."""
    return hashlib.sha256(text(parts).encode("ascii")).hexdigest()


def token_digest(token: str) -> bytes:
    """What is kept of a token that was used."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def text(value: object) -> str:
    """JSON of a value, in ASCII."""
    return json.dumps(value, separators=(",", ":"))


def without_reasons(given: Iterable[Given]) -> str:
    """The column that holds all answers, without what people wrote beside them."""
    return text_of_given(replace(one, answer=replace(one.answer, reason="")) for one in given)


def update(db: sqlite3.Connection, number: int, state: str, columns: Mapping[str, Any]) -> bool:
    """Change the columns of an approval that is in `state`; False if it is not, or not any more."""
    setting = ", ".join(f"{name} = :{name}" for name in columns)
    found = db.execute(
        f"UPDATE approval SET {setting} WHERE number = :_number AND state = :_state",
        {**columns, "_number": number, "_state": state},
    )
    return found.rowcount == 1


def _given(said: dict[str, Any]) -> Given:
    at, person = Moment(*said.pop("at")), _person(said.pop("person"))
    return Given(Answer(**{**said, "person": person, "vary": tuple(said["vary"])}), at)


def _person(said: dict[str, Any]) -> Person:
    return Person(**{**said, "groups": tuple(said["groups"])})


def _mapping(said: Any) -> dict[str, Any]:
    if not isinstance(said, dict):
        raise ValueError("no mapping")
    return said


@functools.lru_cache(maxsize=256)
def _subject(column: str) -> Subject:
    return Subject.model_validate(json.loads(column))


@functools.lru_cache(maxsize=256)
def _requirements(column: str) -> tuple[Approval, ...]:
    return tuple(Approval.model_validate(said) for said in json.loads(column))
