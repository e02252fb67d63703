"""Approvals as tests ask for them."""

from __future__ import annotations

from typing import Any

from licet.approvals.clocks import Moment
from licet.approvals.forms import Answer, ApprovalRequest, Person
from licet.policy.parts import DEFAULT_APPROVAL, Approval
from licet.request import Subject

T0 = Moment(1_000_000.0, 5_000.0, "boot-1")


def later(seconds: float, since: Moment = T0) -> Moment:
    return Moment(since.wall + seconds, since.running + seconds, since.boot)


def demand(count: int = 1, *sources: str, reviewer: str = "any") -> Approval:
    said = {"count": count, "from": sources, "reviewer": reviewer}
    return Approval.model_validate(said).over(DEFAULT_APPROVAL)


def request(id: str = "A1", *requirements: Approval, **fields: Any) -> ApprovalRequest:
    given: dict[str, Any] = {
        "id": id,
        "run_id": f"run-{id}",
        "kind": "call",
        "digest": f"hmac-sha256:{id}",
        "shown": f"hmac-sha256:shown-{id}",
        "document": {"id": id, "code": "refund(order='A1')", "call": {"tool": "refund"}},
        "fields": {"code": "c", "tool": "t", "workdir": "w", "arg:order": "o", "arg:amount": "a"},
        "policy_digest": "sha256:policy",
        "requirements": requirements or (demand(),),
        "requester": Subject(id="ada", tenant="acme", session="s1", on_behalf_of="customer"),
        "asked": T0,
        "expires": 1800.0,
    }
    return ApprovalRequest(**{**given, **fields})


def answer(to: ApprovalRequest, who: str = "ann", *groups: str, approve: bool = True, **said: Any) -> Answer:
    person = Person(who, groups, reviewer=said.pop("reviewer", "human"), tenant=said.pop("tenant", None))
    return Answer(**{"person": person, "approve": approve, "shown": to.shown, "service": "test", **said})


class Watch:
    """The clocks of a host: what they say, and how somebody sets them."""

    def __init__(self) -> None:
        self.at = T0

    def go(self, seconds: float) -> Moment:
        """Let time pass."""
        self.at = later(seconds, self.at)
        return self.at

    def set_wall(self, seconds: float) -> Moment:
        """Set the wall clock forth or back."""
        self.at = Moment(self.at.wall + seconds, self.at.running, self.at.boot)
        return self.at

    def restart(self) -> Moment:
        """Start the system anew."""
        self.at = Moment(self.at.wall, 1.0, f"{self.at.boot}+")
        return self.at
