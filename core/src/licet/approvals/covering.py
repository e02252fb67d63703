"""Whether a grant that reaches further than once covers another request.

Rules this module keeps:

- a grant speaks of one kind of request, under one policy, for one requester as somebody vouched for her;
- all that decides what runs is the same, name by name, but for what those who approved let vary;
- nothing is asked of the new request that nobody was asked before.
"""

from __future__ import annotations

from licet.approvals.forms import ApprovalRequest, StoredApproval
from licet.request import Subject


def covers(granted: StoredApproval, request: ApprovalRequest) -> bool:
    """Whether the grant is also one for `request`; whether it has expired or is spent, the store says."""
    before, reach = granted.request, granted.reach
    if granted.state != "granted" or reach.scope == "once" or requested(before) != requested(request):
        return False
    session = request.requester.session
    if reach.scope == "session" and (session is None or session != before.requester.session):
        return False
    if not set(request.requirements) <= set(before.requirements):
        return False
    vary = reach.vary if reach.scope == "shape" else frozenset()
    return before.fields.keys() == request.fields.keys() and all(
        name in vary or digest == request.fields[name] for name, digest in before.fields.items()
    )


def requested(request: ApprovalRequest) -> tuple[str | None, ...]:
    """What has to be the same whatever may vary: the kind, the policy, and the requester."""
    return (request.kind, request.policy_digest, *requester(request.requester))


def requester(subject: Subject) -> tuple[str | None, ...]:
    """Who asks, for whom, and who vouches for that; groups and properties are read by policy anew."""
    return (subject.type, subject.id, subject.tenant, subject.on_behalf_of, subject.asserted_by)
