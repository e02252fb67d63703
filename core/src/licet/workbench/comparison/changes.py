"""One difference between two policies, and which of two answers is the stricter.

Rules this module keeps: `tighter` is said only where nothing that was refused is permitted by it, `looser`
only where nothing that was permitted is refused; what is neither, or both, is `other`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any, Literal

from licet.errors import Position
from licet.policy.parts import Approval

Direction = Literal["tighter", "looser", "other"]


@dataclass(frozen=True, slots=True)
class Change:
    """One difference: what it is about (`subject`), which way it goes, and in words.

    `where` is its place in the newer policy, or in the older one if nothing is left of it.
    """

    subject: str
    direction: Direction
    text: str
    where: Position | None = None
    before: Any = None
    after: Any = None

    def as_json(self) -> dict[str, Any]:
        """The form of `licet policy diff --json`."""
        return asdict(self)


def direction(tighter: bool, looser: bool) -> Direction:
    """What two one-sided answers come to."""
    if tighter == looser:
        return "other"
    return "tighter" if tighter else "looser"


def demands(one: Approval | None, other: Approval | None) -> bool:
    """Whether an approval demands at least as much as another one in all it says."""
    if other is None:
        return True
    if one is None:
        return False
    people = (one.count or 1) >= (other.count or 1)
    groups = not other.sources or (bool(one.sources) and set(one.sources or ()) <= set(other.sources))
    reviewer = one.reviewer == "human" or other.reviewer != "human"
    soon = (one.expires or 0.0) <= (other.expires or 0.0)
    attended = one.unattended == "deny" or other.unattended != "deny"
    return people and groups and reviewer and soon and attended


def turn_of_demands(before: Collection[Approval], after: Collection[Approval]) -> Direction:
    """Which way it goes from some approvals that are all needed to others."""
    tighter = all(any(demands(one, other) for one in after) for other in before)
    looser = all(any(demands(one, other) for one in before) for other in after)
    if tighter and looser:  # one more, or one less, of what is demanded anyway
        return direction(set(after) > set(before), set(after) < set(before))
    return direction(tighter, looser)
