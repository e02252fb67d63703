"""What records of kind `approval` say: one function an event, from forms to its body.

Rules this module keeps:

- what was shown is never in a body: its digest is, and `shown` keeps it where the policy keeps content;
- seconds are texts, since a record holds no floats;
- what a person says is bounded, and stands nowhere but in `reason`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from licet.approvals.forms import (
    Answer,
    ApprovalRequest,
    Ending,
    Person,
    State,
    StoredApproval,
)
from licet.output import bounded
from licet.plain import Plain, canonical, plain, plain_body
from licet.policy.parts import Approval
from licet.record import Kept
from licet.request import Subject

MOST_REASON = 500
"""Characters of a reason."""
OVER: frozenset[State] = frozenset({"denied", "expired", "withdrawn", "revoked"})
"""States that `over` tells."""


def asked(request: ApprovalRequest, services: Sequence[str], *, sequence: int | None = None) -> Plain:
    """Somebody is asked, by these services; `sequence` is the number of the call, for a call."""
    numbered = {} if sequence is None else {"sequence": sequence}
    return _body(
        "asked",
        request.id,
        of=request.kind,
        **numbered,
        digest=request.digest,
        shown=request.shown,
        fields=request.fields,
        policy_digest=request.policy_digest,
        requirements=_requirements(request.requirements),
        requester=_requester(request.requester),
        expires=_seconds(request.expires),
        services=services,
    )


def shown(request: ApprovalRequest) -> Kept:
    """The document that people are shown, to be kept with `asked` where the policy keeps content."""
    return Kept("shown", canonical(plain(request.document)))


def answered(
    request: ApprovalRequest, answer: Answer, *, is_self: bool, objection: str | None = None
) -> Plain:
    """One person's answer; it counts unless there is an `objection`."""
    person = answer.person
    said = {"id": person.id, "groups": person.groups}
    said |= {"tenant": person.tenant} if person.tenant is not None else {}
    return _body(
        "answered",
        request.id,
        answer="approve" if answer.approve else "deny",
        person=said | {"reviewer": person.reviewer, "asserted_by": person.asserted_by},
        self=is_self,
        service=answer.service,
        shown=answer.shown,
        scope=answer.scope,
        vary=answer.vary,
        uses=answer.uses,
        expires=None if answer.expires is None else _seconds(answer.expires),
        reason=bounded(answer.reason, MOST_REASON),
        token=answer.token,
        counts=objection is None,
        objection=objection,
    )


def granted(stored: StoredApproval, by: Sequence[str]) -> Plain:
    """All requirements are met, `by` the persons of these ids."""
    reach = stored.reach
    return _body(
        "granted",
        stored.request.id,
        reach={
            "scope": reach.scope,
            "vary": sorted(reach.vary),
            "uses": reach.uses,
            "expires": _seconds(reach.expires),
        },
        by=by,
    )


def over(approval: str, state: State, reason: str, by: Person | None = None) -> Plain:
    """It was denied, withdrawn or revoked, or has expired.

    Raises:
        ValueError: `state` is none of these.
    """
    if state not in OVER:
        raise ValueError(f"an approval that is `{state}` is not over")
    return _body(state, approval, reason=bounded(reason, MOST_REASON), by=by.id if by else None)


def waiting(approval: str, sealed: bytes | None = None) -> Plain:
    """The run stops here for now; `sealed` is its suspended code, if that had begun."""
    return _body("waiting", approval, suspended=sealed is not None, suspended_bytes=len(sealed or b""))


def resumed(approval: str) -> Plain:
    """The run that waited goes on here."""
    return _body("resumed", approval)


def consuming(stored: StoredApproval, request: ApprovalRequest, use: int) -> Plain:
    """Use number `use`, from 1, of a granted approval is about to be spent for `request`."""
    covered: Mapping[str, Any] | None = None
    if request.id != stored.request.id:
        covered = {
            "of": request.kind,
            "fields": request.fields,
            "policy_digest": request.policy_digest,
            "requirements": _requirements(request.requirements),
            "requester": _requester(request.requester),
        }
    return _body("consuming", stored.request.id, use=use, digest=request.digest, covered=covered)


def consumed(approval: str, use: int, consuming: int) -> Plain:
    """One use is spent, as record number `consuming` said that it would be."""
    return _body("consumed", approval, use=use, consuming=consuming)


def ended(approval: str, use: int, ending: Ending) -> Plain:
    """What came of one use."""
    return _body(ending, approval, use=use)


def _body(event: str, approval: str, **said: Any) -> Plain:
    return plain_body({"event": event, "approval": approval, **said})


def _requirements(requirements: Sequence[Approval]) -> list[dict[str, Any]]:
    return [
        {
            "count": one.count,
            "from": one.sources or (),
            "reviewer": one.reviewer,
            "expires": _seconds(one.expires or 0.0),
            "unattended": one.unattended,
        }
        for one in requirements
    ]


def _requester(subject: Subject) -> dict[str, Any]:
    said = subject.model_dump(exclude_none=True)
    named = ("id", "type", "tenant", "session", "on_behalf_of", "asserted_by")
    return {name: said[name] for name in named if name in said}


def _seconds(seconds: float) -> str:
    return repr(float(seconds))
