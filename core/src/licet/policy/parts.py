"""The settings inside a policy document, each a strict and frozen value.

Rules this module keeps:

- an unknown key is an error, and so is a value that could not do anything;
- every setting has an order: combining two of them always gives the stricter one (`PolicyStack` says how).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator

from licet.contract import Control, Evidence, Level
from licet.request import Count, Duration

Reviewer = Literal["any", "human"]
Unattended = Literal["deny", "queue"]


class Strict(BaseModel):
    """A frozen value that knows its keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    def __copy__(self) -> Self:
        """A copy without what was derived, since `model_copy` may change what it was derived from."""
        copied = super().__copy__()
        for name in copied.__dict__.keys() - type(self).model_fields.keys():
            del copied.__dict__[name]
        return copied


class ScreenModules(Strict):
    """Modules that code may not import."""

    deny: tuple[str, ...] = ()


class ScreenPolicy(Strict):
    """What the static screen does with what it finds: `refuse` denies, `report` only records."""

    mode: Literal["refuse", "report"] | None = None
    modules: ScreenModules = ScreenModules()


class SandboxPolicy(Strict):
    """What is asked of a sandbox beyond what the decision itself asks for.

    `only` None means every backend may be chosen; `prefer` ranks those that qualify. With `warm`
    False nothing takes part in a run that was started before it.
    """

    require: Mapping[Control, Level] = Field(default_factory=dict)
    evidence: Evidence | None = None
    only: tuple[str, ...] | None = None
    prefer: tuple[str, ...] = ()
    warm: bool | None = None

    @field_validator("require")
    @classmethod
    def _demandable(cls, value: Mapping[Control, Level]) -> Mapping[Control, Level]:
        for control, level in value.items():
            if level not in (Level.partial, Level.enforced):
                raise ValueError(f"`{control}` can be required as `partial` or `enforced`, not as `{level}`")
        return value


class AuditPolicy(Strict):
    """How the trail is kept.

    Mode `required` runs nothing without it, `best_effort` records the gap. Of content, `digest` records keyed
    digests alone; `kept` keeps it beside the record, where it can be erased.
    """

    mode: Literal["required", "best_effort"] | None = None
    content: Literal["digest", "kept"] | None = None


class Approval(Strict):
    """What one asking entry or rule demands; what is not stated is the document's, then the default.

    `count` different persons out of the groups `sources` (written `from`; empty: anybody) have to approve
    within `expires` seconds. `reviewer: human` is not satisfied by a program. `unattended` says what happens
    where nobody can be asked.
    """

    count: Annotated[Count, Field(le=100)] | None = None
    sources: tuple[str, ...] | None = Field(default=None, alias="from")
    reviewer: Reviewer | None = None
    expires: Duration | None = None
    unattended: Unattended | None = None

    def over(self, other: Approval) -> Approval:
        """This, with what it leaves open taken from `other`."""
        mine = {name: getattr(self, name) for name in self.model_fields_set}
        return other.model_copy(update=mine) if mine else other

    def __str__(self) -> str:
        people = "person" if self.count == 1 else "persons"
        kind = "human " if self.reviewer == "human" else ""
        group = f" of {' or '.join(self.sources)}" if self.sources else ""
        return f"{self.count} {kind}{people}{group}"


DEFAULT_APPROVAL = Approval.model_validate(
    {"count": 1, "from": (), "reviewer": "any", "expires": "30m", "unattended": "deny"}
)
"""What an asking entry demands where its document says nothing: rule 17 lets the requester answer."""
