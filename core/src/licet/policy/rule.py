"""One rule: what it denies or asks about, what else it tightens, and when it applies.

Rules this module keeps:

- a rule only tightens: it has no `allow`, and its settings combine like those of a bound;
- a rule has one name in its document, so that a record, a test and a person mean the same one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from licet.errors import InvalidPolicy, Position
from licet.policy.layers import Entries
from licet.policy.parts import Approval, AuditPolicy, SandboxPolicy
from licet.policy.patterns import Pattern
from licet.request import Limits

if TYPE_CHECKING:
    from licet.policy.cases import Case
    from licet.policy.conditions import Condition


@dataclass(frozen=True, eq=False)
class Rule:
    """A rule of one document, as it stands in `where`.

    `deny` and `ask` are entries that hold while the rule applies, as are the settings. `approval` is what it
    demands where it asks, and beside every other demand where it only tightens; None demands nothing of its
    own. `source` is what the author wrote of its conditions, `tests` are cases about it.
    """

    id: str
    where: Position
    deny: tuple[Pattern, ...]
    ask: tuple[Pattern, ...]
    condition: Condition
    limits: Limits
    sandbox: SandboxPolicy
    approval: Approval | None
    audit: AuditPolicy
    source: Mapping[str, Any]
    tests: tuple[Case, ...] = ()

    @property
    def entries(self) -> tuple[Pattern, ...]:
        """What it denies and asks about."""
        return (*self.deny, *self.ask)

    def matches_tool(self, name: str) -> bool:
        """Whether it is about the tool `name`."""
        return any(entry.action == "tool" and entry.covers(name) for entry in self.entries)

    @cached_property
    def index(self) -> Entries:
        """The entries, found by target."""
        return Entries(self.entries)

    def content(self) -> dict[str, Any]:
        """All of it that can decide something, in one spelling."""
        return {
            "id": self.id,
            "deny": sorted({entry.spelled for entry in self.deny}),
            "ask": sorted({entry.spelled for entry in self.ask}),
            "conditions": self.source,
            "limits": self.limits.stated(),
            "sandbox": self.sandbox.model_dump(mode="json", exclude_unset=True),
            "approval": self.approval.model_dump(mode="json", exclude_unset=True) if self.approval else None,
            "audit": self.audit.model_dump(mode="json", exclude_unset=True),
        }


def refuse_repetition(first: Rule | None, second: Rule) -> None:
    """Raise `InvalidPolicy` if two rules of one document have one id."""
    if first is not None:
        raise InvalidPolicy(
            f"the rule `{second.id}` stands in {first.where} already",
            where=second.where,
            advice="give one of them another id",
        )
