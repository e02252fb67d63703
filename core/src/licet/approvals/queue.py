"""The queue: nobody is asked, and the approval waits in the store until somebody comes."""

from __future__ import annotations

from collections.abc import AsyncIterator

from licet.approvals.forms import Answer, ApprovalRequest


class QueueService:
    """Lets approvals wait in the store, where `licet approvals approve` answers them.

    The desk keeps what is pending and looks there itself, so this service has nothing to tell.
    """

    name = "queue"
    attended = False
    waits = True

    async def ask(self, request: ApprovalRequest) -> AsyncIterator[Answer]:
        """End at once."""
        for answer in await self.collect(request):
            yield answer

    async def collect(self, request: ApprovalRequest) -> tuple[Answer, ...]:
        """Nothing: answers go into the store, and not through here."""
        return ()

    async def close(self) -> None:
        """Nothing is held."""
