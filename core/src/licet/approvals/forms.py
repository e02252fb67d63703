"""What is asked, who answers, and what an approval is.

States: `pending` becomes `granted`, `denied`, `expired` or `withdrawn`; a granted one becomes `consumed`,
and may be `revoked`, `denied` or expire before. Consumed is what ran (`executed`) or what began and did not
run (`failed_to_start`), or what nobody knows of, since its process died (`unknown`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from licet.approvals.clocks import Moment
from licet.policy.parts import Approval
from licet.request import Subject

Reviewer = Literal["human", "auto"]
Asserted = Literal["caller", "os", "token", "mcp"]
Scope = Literal["once", "session", "shape"]
State = Literal["pending", "granted", "denied", "expired", "withdrawn", "revoked", "consumed"]
Ending = Literal["executed", "failed_to_start", "unknown"]

OPEN: frozenset[State] = frozenset({"pending", "granted"})
"""States that something can still become of; in any other, nothing but the name of the ending is added."""


@dataclass(frozen=True, slots=True)
class Person:
    """Who answers, as a service vouches for it.

    `reviewer` is `human` only where the service has seen a person act: a terminal, or a signed token that
    says so.
    Two persons are the same if their ids are, whoever asserts them, in whatever case.
    """

    id: str
    groups: tuple[str, ...] = ()
    tenant: str | None = None
    reviewer: Reviewer = "auto"
    asserted_by: Asserted = "caller"


@dataclass(frozen=True, slots=True)
class Answer:
    """One person's answer to one approval.

    `shown` is the digest of the document that the person was shown; an answer to anything else does not
    count. `scope`, `vary`, `uses` and `expires` (seconds from the asking) say how far a yes reaches: what
    all who are
    needed agree on is what holds. `token` is the id of a signed token, which is good for one answer.
    """

    person: Person
    approve: bool
    shown: str
    service: str
    scope: Scope = "once"
    vary: tuple[str, ...] = ()
    uses: int | None = None
    expires: float | None = None
    reason: str = ""
    token: str | None = None


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """What somebody is asked, whole.

    `digest` is that of the plan or of the call, and `document` is what people are shown (plain JSON, see
    `showing`),
    whose digest is `shown`. `fields` are digests of each part of it, by name: what a `shape` may vary.
    `requirements` are the demands of policy, equal ones once. `expires` is in seconds from `asked`, the
    least of all.
    """

    id: str
    run_id: str
    kind: Literal["run", "call"]
    digest: str
    shown: str
    document: Mapping[str, Any] = field(repr=False)
    fields: Mapping[str, str] = field(repr=False)
    policy_digest: str
    requirements: tuple[Approval, ...]
    requester: Subject
    asked: Moment
    expires: float

    def approve(
        self,
        person: str,
        *,
        groups: Iterable[str] = (),
        tenant: str | None = None,
        reviewer: Reviewer = "auto",
        scope: Scope = "once",
        vary: Iterable[str] = (),
        uses: int | None = None,
        expires: float | None = None,
        reason: str = "",
    ) -> Answer:
        """A yes to exactly this, by a person for whom the embedding program vouches."""
        return Answer(
            Person(person, tuple(groups), tenant, reviewer, "caller"),
            True,
            self.shown,
            "callback",
            scope,
            tuple(vary),
            uses,
            expires,
            reason,
        )

    def deny(
        self,
        person: str,
        *,
        groups: Iterable[str] = (),
        tenant: str | None = None,
        reviewer: Reviewer = "auto",
        reason: str = "",
    ) -> Answer:
        """A no, by a person for whom the embedding program vouches."""
        who = Person(person, tuple(groups), tenant, reviewer, "caller")
        return Answer(who, False, self.shown, "callback", reason=reason)


@dataclass(frozen=True, slots=True)
class Reach:
    """How far a grant reaches: `once`, or again while the session or all fields but `vary` are the same.

    `uses` None is without number, until it expires `expires` seconds after it was asked for.
    """

    scope: Scope = "once"
    vary: frozenset[str] = frozenset()
    uses: int | None = 1
    expires: float = 0.0


@dataclass(frozen=True, slots=True)
class Given:
    """An answer as it was taken, and when."""

    answer: Answer
    at: Moment


@dataclass(frozen=True, slots=True)
class StoredApproval:
    """An approval as the store has it.

    `used` counts the uses that began. `reason` says why it ended, where somebody said. `ending` is what
    came of the last use. `frozen` is the request (see `freezing`), `sealed` the suspended run of a call that
    waits; both are gone once it is over. `seq` is that of the record `consuming` by which the last use was
    spent. `ended_by` is who denied, withdrew or revoked it other than by an answer.
    """

    request: ApprovalRequest
    state: State
    given: tuple[Given, ...] = ()
    reach: Reach = Reach()
    used: int = 0
    ending: Ending | None = None
    reason: str = ""
    seq: int | None = None
    changed: Moment | None = None
    ended_by: Person | None = None
    frozen: bytes | None = field(default=None, repr=False)
    sealed: bytes | None = field(default=None, repr=False)

    @property
    def sentence(self) -> str:
        """What has become of it, and why if somebody said."""
        word = "was used before" if self.state == "consumed" else f"is {self.state}"
        return f"the approval {self.request.id} {word}" + (f": {self.reason}" if self.reason else "")
