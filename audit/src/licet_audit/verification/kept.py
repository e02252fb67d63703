"""Content that records commit to: kept and intact, erased by a record, missing without one, or altered.

Rules this module keeps: memory holds commitments whose content is missing, and until they are explained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from licet_audit.contents import State, is_commitment

StateOf = Callable[[str], State]
"""Looks at the content of one commitment."""


@dataclass(slots=True)
class Kept:
    """What became of the content that some records commit to; by commitment, the record that does."""

    intact: int = 0
    erased: int = 0
    missing: dict[str, int] = field(default_factory=dict)
    altered: dict[str, int] = field(default_factory=dict)
    nameless: list[int] = field(default_factory=list)
    """Records that commit to something that is no commitment."""
    left: int = 0
    """Erasures are recorded of so many that are still there."""

    def follow(self, seq: int, kept: Mapping[str, Any], state_of: StateOf) -> None:
        """Look at the content of one record."""
        for committed in kept.values():
            if not is_commitment(committed):
                self.nameless.append(seq)
                continue
            state = state_of(committed)
            if state == "intact":
                self.intact += 1
            else:
                (self.missing if state == "missing" else self.altered).setdefault(committed, seq)

    def join(self, other: Kept) -> None:
        """Go on with what a later part found."""
        self.intact += other.intact
        self.nameless += other.nameless
        for mine, theirs in ((self.missing, other.missing), (self.altered, other.altered)):
            for committed, seq in theirs.items():
                mine.setdefault(committed, seq)

    def erase(self, committed: Iterable[str], state_of: StateOf) -> None:
        """Follow a record that says that content is erased."""
        for one in committed:
            if self.missing.pop(one, None) is not None or self.altered.pop(one, None) is not None:
                self.erased += 1
            if is_commitment(one) and state_of(one) != "missing":
                self.left += 1
