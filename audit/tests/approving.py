"""Records of runs that asked, as a runtime writes them: short makers, which tests change to attack."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from licet.approvals import telling
from licet.approvals.clocks import Moment
from licet.approvals.forms import Answer, ApprovalRequest, Person, Reach, StoredApproval
from licet.policy.parts import DEFAULT_APPROVAL, Approval
from licet.record import Entry
from licet.request import Subject

BOT = Subject(type="agent", id="bot", on_behalf_of="Eve", session="s", asserted_by="token")
FINANCE = Approval.model_validate({"count": 2, "from": ["finance"], "reviewer": "human", "expires": "1d"})
TWO = FINANCE.over(DEFAULT_APPROVAL)
ANYBODY = DEFAULT_APPROVAL
ASKED = ApprovalRequest(
    id="A1",
    run_id="R",
    kind="run",
    digest="plan-1",
    shown="shown-1",
    document={"code": "pay()"},
    fields={"code": "c", "input:amount": "i"},
    policy_digest="p",
    requirements=(TWO,),
    requester=BOT,
    asked=Moment(0.0, 0.0),
    expires=86400.0,
)
CALL = replace(ASKED, kind="call", digest="call-1")


def at(seconds: int) -> str:
    """A time so many seconds after a day began."""
    days, rest = divmod(seconds, 86400)
    return f"2026-12-{1 + days:02}T{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}.000000000Z"


def entry(kind: str, body: Any, run_id: str = "R", phase: Any = None, second: int = 0) -> Entry:
    return Entry(kind, run_id, body, at(second), second * 10**9 + 1, phase=phase)  # type: ignore[arg-type]


def approval(body: Any, run_id: str = "R", second: int = 0) -> Entry:
    return entry("approval", body, run_id, second=second)


def person(name: str, *groups: str, reviewer: Any = "human") -> Person:
    return Person(name, groups, reviewer=reviewer, asserted_by="token")


ANN, BOB = person("ann", "finance"), person("bob", "finance", "staff")


def yes(who: Person, request: ApprovalRequest = ASKED, **more: Any) -> Answer:
    return replace(Answer(who, True, request.shown, "queue", reason="fine"), **more)


def answered(answer: Answer, request: ApprovalRequest = ASKED, objection: str | None = None) -> Entry:
    return approval(telling.answered(request, answer, is_self=False, objection=objection))


def granted(
    request: ApprovalRequest = ASKED, reach: Reach | None = None, by: Sequence[str] = ("ann", "bob")
) -> Entry:
    reach = reach or Reach("once", frozenset(), 1, request.expires)
    return approval(telling.granted(StoredApproval(request, "granted", reach=reach), by))


def consuming(use: int = 1, request: ApprovalRequest = ASKED, of: ApprovalRequest = ASKED) -> Entry:
    told = telling.consuming(StoredApproval(of, "granted"), request, use)
    return approval(told, request.run_id)


def asking(request: ApprovalRequest = ASKED) -> list[Entry]:
    """A run that asks, up to where it waits."""
    effect = "ask" if request.kind == "run" else "allow"
    subject = request.requester.model_dump(mode="json", exclude_none=True)
    begun = [
        entry("request", {"subject": subject, "digests": {}}, request.run_id),
        entry("decision", {"effect": effect, "policy": "p", "verdicts": []}, request.run_id),
        entry("selection", {"backend": "monty", "plan_digest": "plan-1"}, request.run_id),
    ]
    if request.kind == "run":
        begun.append(entry("authorization", {"state": "pending", "reason": "", "approval": request.id}))
        return [*begun, approval(telling.asked(request, ["queue"]), request.run_id)]
    call = {"sequence": 1, "tool": "pay", "effect": "ask", "call_digest": request.digest}
    return [
        *begun,
        entry("execution", {"backend": "monty", "plan_digest": "plan-1"}, request.run_id, "before"),
        entry("tool_call", {**call, "verdict": {"effect": "ask"}}, request.run_id, "before"),
        approval(telling.asked(request, ["queue"], sequence=1), request.run_id),
    ]


def waiting(request: ApprovalRequest = ASKED) -> Entry:
    return approval(telling.waiting(request.id, None if request.kind == "run" else b"x" * 9), request.run_id)


def resumed(request: ApprovalRequest = ASKED) -> Entry:
    return approval(telling.resumed(request.id), request.run_id)


def answers(request: ApprovalRequest = ASKED) -> list[Entry]:
    return [answered(yes(who, request), request) for who in (ANN, BOB)] + [granted(request)]


def going_on(request: ApprovalRequest = ASKED, *, after: int) -> list[Entry]:
    """A run that goes on and ends; `after` is the number of its first record."""
    spent = [
        resumed(request),
        consuming(request=request, of=request),
        approval(telling.consumed(request.id, 1, after + 1), request.run_id),
    ]
    ran = approval(telling.ended(request.id, 1, "executed"), request.run_id)
    end = entry("result", {"termination": "exited", "success": True}, request.run_id, "after")
    if request.kind == "run":
        begun = {"backend": "monty", "plan_digest": request.digest}
        return [*spent, entry("execution", begun, request.run_id, "before"), ran, end]
    performed = {"sequence": 1, "tool": "pay", "outcome": "returned"}
    return [*spent, entry("tool_call", performed, request.run_id, "after"), ran, end]


def whole(request: ApprovalRequest = ASKED, *, after: int = 1) -> list[Entry]:
    """A run that asked, waited, was approved and ran; `after` records stand before it."""
    before = [*asking(request), waiting(request), *answers(request)]
    return [*before, *going_on(request, after=after + len(before))]
