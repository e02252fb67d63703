"""Who can be asked: what a service is, whoever brings it.

Rules this module keeps:

- a service says who answered and how it knows; whatever it gives that is no `Answer` to what was shown
  counts as a denial
  (`asking` sees to that), as does a failure;
- a service only asks: whether an answer counts, and what all answers come to, is not its to say.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from licet.approvals.forms import Answer, ApprovalRequest


class ApprovalService(Protocol):
    """Somebody or something that people answer by.

    `name` is what settings and records call it. `attended` says whether somebody can answer now, while the
    run waits; it may
    look (is this a terminal?). `waits` says whether it is able to get an answer later, to another process:
    the
    approval is then left pending in the store.
    """

    @property
    def name(self) -> str:
        """What settings and records call it."""
        ...

    @property
    def attended(self) -> bool:
        """Whether somebody can answer now."""
        ...

    @property
    def waits(self) -> bool:
        """Whether an answer may come later."""
        ...

    def ask(self, request: ApprovalRequest) -> AsyncIterator[Answer]:
        """Ask, and give each answer as it comes; end where no more will come. Cancelled once decided."""
        ...

    async def collect(self, request: ApprovalRequest) -> tuple[Answer, ...]:
        """What was answered meanwhile, maybe to another process that asked; asks nobody anew."""
        ...

    async def close(self) -> None:
        """Let go of what it holds."""
        ...
