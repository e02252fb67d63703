"""Authorization: what stands between a decision that asks and a run.

Rules this module keeps:

- a decision that allows needs nobody; a decision that denies is never authorised;
- a decision that asks needs an approval; without a service that could give one, the answer is no.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from licet.decide import Decision

State = Literal["not_needed", "granted", "denied", "pending"]


@dataclass(frozen=True, slots=True)
class Authorization:
    """Whether a run may go on, and why; `approval` is the id of the one that somebody was asked for."""

    state: State
    reason: str
    approval: str | None = None

    @property
    def granted(self) -> bool:
        """Whether the run may go on."""
        return self.state in ("not_needed", "granted")


_NOT_NEEDED = Authorization("not_needed", "nothing asks")


def authorize(decision: Decision) -> Authorization:
    """Authorise what was decided."""
    if decision.effect == "allow":
        return _NOT_NEEDED
    if decision.effect == "deny":
        return Authorization("denied", "the decision denies it")
    return Authorization("denied", "an approval is needed, and no approval service is configured")
