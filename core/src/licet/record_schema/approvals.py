"""What is recorded of approvals: asked, answered, granted or over, waited for, spent."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from licet.record_schema.parts import Hash, Part

Scope = Literal["once", "session", "shape"]
Asserted = Literal["caller", "os", "token", "mcp"]


class Requirement(Part):
    """What one asking entry or rule of a policy demands."""

    count: int
    """How many different persons have to approve."""
    from_: list[str] = Field(alias="from")
    """The groups that they are of; empty for anybody."""
    reviewer: Literal["any", "human"]
    """Whether a program may be one of them."""
    expires: str
    """Seconds from asking to use, as text."""
    unattended: Literal["deny", "queue"]
    """What happens where nobody can be asked."""


class Requester(Part):
    """Who asks; neither of both counts as an approver, unless one person of any group is enough."""

    id: str
    type: str
    tenant: str | None = None
    session: str | None = None
    on_behalf_of: str | None = None
    """The person that an agent or a service acts for."""
    asserted_by: Asserted
    """Who vouches for all of this."""


class Asked(Part):
    """Somebody is to approve a run or a call; what was shown is kept as `shown` if policy keeps content."""

    event: Literal["asked"]
    approval: str
    """Its id."""
    of: Literal["run", "call"]
    sequence: int | None = None
    """Of the call, in its run; missing for a run."""
    digest: Hash
    """That of the plan or of the call: what may run."""
    shown: Hash
    """Of the document that people are shown, under the host's key."""
    fields: dict[str, Hash]
    """Of each part of what may run, by name and under the host's key: what a `shape` may vary."""
    policy_digest: str
    """Of the policy that asked, with its bounds."""
    requirements: list[Requirement]
    """All have to be met."""
    requester: Requester
    expires: str
    """Seconds from asking to use, as text: the least of all."""
    services: list[str]
    """Who is asked, by the names that settings have."""


class Answerer(Part):
    """Who answered, as a service vouches for it."""

    id: str
    groups: list[str]
    tenant: str | None = None
    reviewer: Literal["human", "auto"]
    """`human` where the service has seen a person act."""
    asserted_by: Asserted
    """Who vouches for all of this."""


class Answered(Part):
    """One person's answer."""

    event: Literal["answered"]
    approval: str
    answer: Literal["approve", "deny"]
    person: Answerer
    self: bool
    """Whether this is the requester, or the person that it acts for."""
    service: str
    """Which service brought it."""
    shown: Hash
    """Of the document that this person was shown."""
    scope: Scope
    """How far a yes is to reach: this once, in the same session, or whatever has the same shape."""
    vary: list[str]
    """What may differ in other uses."""
    uses: int | None
    """How often; null for no number."""
    expires: str | None
    """Seconds from asking to use, as text; null for as long as was asked."""
    reason: str
    """What the person says to it, at most 500 characters."""
    token: str | None
    """The id of the signed token that it came by."""
    counts: bool
    """Whether it counts."""
    objection: str | None
    """Why it does not."""


class Reach(Part):
    """How far a grant reaches: what all who were needed agree on."""

    scope: Scope
    vary: list[str]
    """What may differ in other uses."""
    uses: int | None
    """How often; null for no number."""
    expires: str
    """Seconds from asking to use, as text."""


class Granted(Part):
    """All requirements are met."""

    event: Literal["granted"]
    approval: str
    reach: Reach
    by: list[str]
    """The ids of all whose yes counted."""


class Over(Part):
    """It is not to be used any more; what has begun by then goes on."""

    event: Literal["denied", "expired", "withdrawn", "revoked"]
    approval: str
    reason: str
    by: str | None
    """The id of the person who said so; null if nobody did."""


class Waiting(Part):
    """The run stops here for now: its process may end, and there is no result yet."""

    event: Literal["waiting"]
    approval: str
    suspended: bool
    """Whether code had begun, and was written down to go on from here."""
    suspended_bytes: int
    """How much was written down."""


class Resumed(Part):
    """The run that waited goes on here."""

    event: Literal["resumed"]
    approval: str


class Covered(Part):
    """What a grant of a wider scope is used for, so that anybody can see that it reaches so far."""

    of: Literal["run", "call"]
    fields: dict[str, Hash]
    policy_digest: str
    requirements: list[Requirement]
    requester: Requester


class Consuming(Part):
    """One use is about to be spent: by whoever the store of approvals lets, which `consumed` says."""

    event: Literal["consuming"]
    approval: str
    use: int
    """Counts the uses of an approval, from 1; another one, if somebody is faster."""
    digest: Hash
    """Of the plan or the call that it is spent for."""
    covered: Covered | None
    """What that is, if it is not what was asked for."""


class Consumed(Part):
    """One use is spent."""

    event: Literal["consumed"]
    approval: str
    use: int
    """Counts the uses of an approval, from 1."""
    consuming: int
    """The number of the record that said that it was about to be."""


class Ended(Part):
    """What came of a use: it ran, it did not begin, or nobody knows; it is spent in any case."""

    event: Literal["executed", "failed_to_start", "unknown"]
    approval: str
    use: int
