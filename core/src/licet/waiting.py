"""A call that waits for an approval, and what those who answer calls have to be told of that.

Rules this module keeps: what is here is data and signatures alone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from licet.backend import Reply
from licet.policy.parts import Approval

Obstacle = Callable[[Sequence[Approval]], str | None]
"""Why nobody can give these approvals; None if somebody can, so that a call waits and its run with it."""

Alive = Callable[[], Awaitable[Reply]]
"""Has the call approved that waits, and settles it, while its sandbox waits for the reply."""


def nobody(demands: Sequence[Approval]) -> str | None:
    """Nobody can be asked."""
    return "it needs an approval, and nobody can give one"


@dataclass(frozen=True, slots=True)
class WaitingCall:
    """A call that waits for an approval: decided, recorded and not performed; `arguments` are JSON."""

    sequence: int
    name: str
    digest: str
    arguments: str = field(repr=False)
    line: int | None = None
