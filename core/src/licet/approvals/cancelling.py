"""A run that is cancelled while it is asked about, or while its approval is spent.

Rules this module keeps:

- a use that was spent for a run that is cancelled before it goes on has ended, and so has the run;
- a run that is cancelled while it is asked about goes on waiting if it can; it has an end here unless it
  waits, or goes on elsewhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from licet import bodies
from licet.approvals import telling
from licet.approvals.desk import Desk, Permit
from licet.backend import Termination
from licet.committing import to_the_end
from licet.trail import Trail


class End:
    """Records the end of a run that was cancelled, once."""

    def __init__(self, record: Callable[[], Coroutine[Any, Any, object]] | None) -> None:
        """`record` does it; None leaves it to who runs the code."""
        self._record = record

    async def come(self) -> None:
        """Record it, unless that was done."""
        record, self._record = self._record, None
        if record is not None:
            await to_the_end(record())


def never_begun(trail: Trail) -> End:
    """The end of a run that is cancelled before it begins."""
    refusal = bodies.refusal(Termination.cancelled, "cancelled before it began")
    return End(lambda: trail.end("result", refusal))


async def spent(desk: Desk, permit: Permit, trail: Trail, end: End, *, resuming: bool = False) -> Permit:
    """Spend a use of what was granted (see `Desk.consume`); if that is cancelled, the run ends.

    Raises:
        AuditUnavailable, ApprovalsUnavailable: it may be spent; nothing may happen by it.
    """
    spending = asyncio.ensure_future(desk.consume(permit, trail, resuming=resuming))
    try:
        return await to_the_end(spending)
    except asyncio.CancelledError:
        if (after := spending.result()).state == "granted":
            await to_the_end(desk.ended(after.approval, trail, executed=False))
            await end.come()
        raise


@asynccontextmanager
async def ended_unless_it_waits(desk: Desk, trail: Trail, digest: str, end: End) -> AsyncIterator[None]:
    """Around asking about a plan or a call, up to its use: being cancelled ends a run that does not wait."""
    try:
        yield
    except asyncio.CancelledError:
        if not await to_the_end(desk.is_left(trail.run_id, digest)):
            await end.come()
        raise


def note_denial(permit: Permit, trail: Trail, *, resuming: bool) -> None:
    """Note that what was asked about may not happen; `resuming` if its run stopped for that."""
    if permit.own and resuming:
        trail.step("approval", telling.resumed(permit.asked.id))
    trail.step("authorization", bodies.authorization("denied", permit.reason, permit.approval))
