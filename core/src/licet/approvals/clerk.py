"""Each step of an approval: recorded, then stored, in the order that a crash leaves true.

Rules this module keeps:

- a yes is recorded before the store holds it, so no grant stands on what the trail does not know; a no
  holds before it is recorded, so nothing is spent after a record that forbids it;
- a use is spent between two records: `consuming` is durable first, then the store spends it under the number
  of that record, then `consumed` is, and only after that does anything happen;
- a run that waits is resumed by whoever spends its approval, so of all who try one says so; a call that is
  asked about while its sandbox is there stops nothing else of the run, so that does not wait;
- the store decides; a record of something that it then refused is evidence of an attempt.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from licet.approvals import counting, telling
from licet.approvals.clocks import now
from licet.approvals.forms import OPEN, Answer, ApprovalRequest, Ending, Person, State, StoredApproval
from licet.approvals.store import ApprovalStore
from licet.errors import AnswerRefused, ApprovalClosed
from licet.plain import Plain
from licet.record import Kept
from licet.trail import Trail


class Clerk:
    """Keeps the approvals of one store and their trail in step; each trail is that of the run concerned."""

    def __init__(self, store: ApprovalStore) -> None:
        self.store = store
        self._granted: set[str] = set()  # whose grant is in the trail by this clerk

    async def ask(
        self,
        request: ApprovalRequest,
        trail: Trail,
        *,
        services: Sequence[str],
        frozen: bytes,
        sealed: bytes | None = None,
        kept: tuple[Kept, ...] = (),
    ) -> StoredApproval:
        """Have something wait for an approval; from here on it goes on in any process, or never.

        Raises:
            AuditUnavailable, ApprovalsUnavailable: nothing waits.
        """
        about = request.document["call"] or request.document["connection"]
        body = telling.asked(request, services, sequence=about["sequence"] if about else None)
        trail.step("approval", body, kept=kept)
        if request.kind == "run" or sealed is not None:
            trail.step("approval", telling.waiting(request.id, sealed))
        await trail.commit()
        await asyncio.to_thread(self.store.ask, request, frozen=frozen, sealed=sealed)
        return StoredApproval(request, "pending", frozen=frozen, sealed=sealed)

    async def take(self, approval: str, answer: Answer, trail: Trail) -> StoredApproval:
        """Take an answer, and say what the approval is then.

        Raises:
            AnswerRefused: it does not count; that it was given is recorded.
            ApprovalClosed: the approval is over.
            NoApproval, ApprovalsUnavailable: nothing was taken.
            AuditUnavailable: it is not recorded; a yes was not taken, a no may hold.
        """
        before = await asyncio.to_thread(self.store.get, approval)
        at = now()
        objection = counting.objection(before.request, before.given, answer, at)
        why = None if objection is None else objection.why
        if before.state not in OPEN:
            why = f"the approval is {before.state}"
        is_self = counting.is_requester(before.request, answer.person)
        told = partial(telling.answered, before.request, answer, is_self=is_self)
        if answer.approve or why is not None:
            trail.step("approval", told(objection=why))
            await trail.commit()
        if objection is not None and before.state in OPEN:
            raise AnswerRefused(objection.why, advice=objection.advice)
        try:
            after = await asyncio.to_thread(self.store.answer, before.request.id, answer, at)
        except (AnswerRefused, ApprovalClosed) as problem:
            if why is None:  # somebody else was faster, so it does not count after all
                trail.step("approval", told(objection=problem.message))
                await trail.commit()
            raise
        if not answer.approve:
            trail.step("approval", told(objection=None))
        if after.state != before.state:
            self._say(after, trail, answer.person)
        await trail.commit()
        return after

    async def end(
        self, approval: StoredApproval, state: State, trail: Trail, reason: str, by: Person | None = None
    ) -> StoredApproval:
        """Make it `denied`, `withdrawn` or `revoked`.

        Raises:
            ApprovalClosed: it is over.
            AuditUnavailable, ApprovalsUnavailable: nothing has changed.
        """
        after = await asyncio.to_thread(
            self.store.end, approval.request.id, state, now(), reason=reason, by=by
        )
        self._say(after, trail, by)
        await trail.commit()
        return after

    async def consume(
        self, approval: StoredApproval, request: ApprovalRequest, trail: Trail, *, resuming: bool = False
    ) -> StoredApproval:
        """Spend one use of `approval` for `request`; `consumed` is durable when this returns.

        With `resuming`, the suspended run that waits for it is given out by this, once.

        Raises:
            ApprovalClosed: it is not granted any more, or somebody else was faster.
            AuditUnavailable, ApprovalsUnavailable: it may be spent; nothing may happen by it.
        """
        if approval.request.id not in self._granted:  # whoever granted it may have died before it said so
            self._say(approval, trail)
        trail.step("approval", telling.consuming(approval, request, approval.used + 1))
        await trail.commit()
        seq = trail.last.seq if trail.last is not None else -1
        spent = await asyncio.to_thread(
            self.store.consume, approval.request.id, seq, now(), run_id=trail.run_id, resuming=resuming
        )
        if request.id == spent.request.id and (request.kind == "run" or resuming):
            trail.step("approval", telling.resumed(request.id))
        trail.step("approval", telling.consumed(spent.request.id, spent.used, seq))
        await trail.commit()
        return spent

    async def tidy(self, trail: Trail) -> None:
        """Record what happened while nobody looked: approvals expired, and processes died that used one.

        Raises:
            AuditUnavailable, ApprovalsUnavailable: it is not recorded.
        """
        for one in await asyncio.to_thread(self.store.recover, now()):
            body = telling.ended(one.request.id, one.used, "unknown")
            trail.aside(body, kind="approval", run_id=one.request.run_id)
        for one in await asyncio.to_thread(self.store.expired, now()):
            trail.aside(became(one), kind="approval", run_id=one.request.run_id)
        await trail.commit()

    async def ended(self, approval: StoredApproval, ending: Ending, trail: Trail) -> None:
        """Say what came of the use that was spent; durable with the next commit of the trail.

        Raises:
            ApprovalsUnavailable: the store does not know; the trail does.
        """
        trail.step("approval", telling.ended(approval.request.id, approval.used, ending))
        await asyncio.to_thread(self.store.ended, approval.request.id, ending, now(), seq=approval.seq)

    def _say(self, after: StoredApproval, trail: Trail, by: Person | None = None) -> None:
        trail.step("approval", became(after, by))
        if after.state == "granted":
            self._granted.add(after.request.id)


def became(after: StoredApproval, by: Person | None = None) -> Plain:
    """What a record says of what an approval has become, `by` somebody."""
    if after.state == "granted":
        return telling.granted(after, [one.answer.person.id for one in after.given if one.answer.approve])
    return telling.over(after.request.id, after.state, after.reason, by)
