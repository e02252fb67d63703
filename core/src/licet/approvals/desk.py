"""Where a run gets its approval: who can be asked, who answers within its time, and what is left to wait for.

Rules this module keeps:

- what nobody can answer is denied at once, and never stored; the reason says who would have to be there;
- a grant that reaches further than once is used before anybody is asked again;
- services that people sit at are asked all at once, while answers that other processes take come in by the
  store;
- what is still pending when patience ends stays so where policy says `unattended: queue` and a service waits;
  else it is denied;
- who finds an approval spent looks whether it was spent for this very run: then that goes on elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from licet.approvals import asking
from licet.approvals.clerk import Clerk
from licet.approvals.clocks import now
from licet.approvals.counting import objection
from licet.approvals.forms import OPEN, Answer, ApprovalRequest, StoredApproval
from licet.approvals.services import ApprovalService
from licet.approvals.store import ApprovalStore
from licet.committing import to_the_end
from licet.errors import AnswerRefused, ApprovalClosed
from licet.policy.parts import Approval
from licet.record import Kept
from licet.state import StateDirectory
from licet.trail import Trail
from licet.ulid import new_run_id

_SHORTEST, _LONGEST, _GROWTH = 0.05, 1.0, 1.5  # seconds between two looks at the store


class Draft(Protocol):
    """Makes what is asked."""

    def __call__(self, *, approval_id: str, previous: StoredApproval | None) -> ApprovalRequest:
        """What is asked by the approval of this id, compared with the last one that was approved."""
        ...


@dataclass(frozen=True, slots=True)
class Permit:
    """Whether what was `asked` may go on: what its approval has come to, and why.

    The approval is of something else that was asked before, if that reaches this. It is `gone` if somebody
    else has spent it for this very run, which goes on there.
    """

    state: Literal["granted", "denied", "pending", "gone"]
    reason: str
    asked: ApprovalRequest
    approval: StoredApproval
    advice: str | None = None

    @property
    def own(self) -> bool:
        """Whether the approval is the one that was asked for here."""
        return self.approval.request.id == self.asked.id

    def denied(self, reason: str) -> Permit:
        """The same, denied for another reason."""
        return replace(self, state="denied", reason=reason)

    @classmethod
    def of(cls, stored: StoredApproval) -> Permit:
        """What an approval has come to."""
        approval, run = stored.request.id, stored.request.run_id
        if stored.state == "granted":
            return cls("granted", stored.sentence, stored.request, stored)
        if stored.state == "pending":
            who = " and ".join(map(str, stored.request.requirements))
            advice = f"`licet approvals show {approval}`, and once it is given `licet run --resume {run}`"
            reason = f"the approval {approval} is needed of {who}"
            return cls("pending", reason, stored.request, stored, advice)
        return cls("denied", stored.sentence, stored.request, stored)


class _Office:
    """The clerk of one process, with the store that is opened when somebody first asks."""

    def __init__(self, open_state: Callable[[], StateDirectory]) -> None:
        self.open_state = open_state
        self.clerk: Clerk | None = None
        self._process = os.getpid()
        self._guard = threading.Lock()

    @property
    def is_here(self) -> bool:
        """Whether it is this process's."""
        return self._process == os.getpid()

    def opened(self) -> Clerk:
        """The clerk, one for all threads.

        Raises:
            ApprovalsUnavailable: the store can't be opened.
        """
        with self._guard:
            if self.clerk is None:
                self.clerk = Clerk(ApprovalStore(self.open_state()))
            return self.clerk

    def close(self) -> None:
        """Let go of the store."""
        if not self.is_here:
            return
        with self._guard:
            clerk, self.clerk = self.clerk, None
        if clerk is not None:
            clerk.store.close()


class Desk:
    """Gets approvals for the runs of one runtime."""

    def __init__(self, services: Sequence[ApprovalService], open_state: Callable[[], StateDirectory]) -> None:
        self._services = tuple(services)
        self._office = _Office(open_state)

    def obstacle(self, demands: Sequence[Approval]) -> str | None:
        """Why nobody can answer what demands these approvals; None if somebody can, now or later."""
        if not self._services:
            return "an approval is needed, and no approval service is configured"
        if asking.attended(self._services):
            return None
        if any(demand.unattended == "deny" for demand in demands):
            return "an approval is needed, nobody is there to give it, and policy says `unattended: deny`"
        if not self._can_wait(demands):
            return "an approval is needed, nobody is there to give it, and no service waits for one"
        return None

    async def ask(
        self,
        draft: Draft,
        trail: Trail,
        *,
        frozen: bytes,
        sealed: bytes | None = None,
        keeps: Callable[[ApprovalRequest], tuple[Kept, ...]] = lambda request: (),
        wait: float | None = None,
    ) -> Permit:
        """Have something approved that has no `obstacle`; wait `wait` seconds for it, 0 for nobody.

        Raises:
            AuditUnavailable, ApprovalsUnavailable: nobody was asked, or the answer is not known.
        """
        clerk = await self._at_work()
        await clerk.tidy(trail)
        approval = new_run_id()
        request = draft(approval_id=approval, previous=None)
        if (previous := await asyncio.to_thread(clerk.store.previous, request)) is not None:
            request = draft(approval_id=approval, previous=previous)
        if (reaching := await asyncio.to_thread(clerk.store.reaching, request, now())) is not None:
            return Permit("granted", f"the approval {reaching.request.id} reaches this", request, reaching)
        names = [service.name for service in self._services]
        asking_for = asyncio.ensure_future(
            clerk.ask(request, trail, services=names, frozen=frozen, sealed=sealed, kept=keeps(request))
        )
        try:
            return await self._settled(clerk, await to_the_end(asking_for), trail, wait)
        except asyncio.CancelledError:
            stays = self._can_wait(request.requirements) and (request.kind == "run" or sealed is not None)
            if not stays:
                with contextlib.suppress(ApprovalClosed):
                    await to_the_end(
                        clerk.end(asking_for.result(), "withdrawn", trail, "the run was cancelled")
                    )
            raise

    async def again(self, stored: StoredApproval, trail: Trail, wait: float | None) -> Permit:
        """What has become of an approval that was asked for before: who is there is asked once more.

        Raises:
            AuditUnavailable, ApprovalsUnavailable: the answer is not known.
        """
        clerk = await self._at_work()
        await clerk.tidy(trail)
        await collect(clerk, self._services, stored, trail)
        stored = await asyncio.to_thread(clerk.store.get, stored.request.id)
        return await self._settled(clerk, stored, trail, wait)

    async def of_run(self, run_id: str) -> StoredApproval | None:
        """The newest approval of a run, with all that it was stored with; None if it has none.

        Raises:
            ApprovalsUnavailable: the store can't be read.
        """
        clerk = await self._at_work()
        found = await asyncio.to_thread(clerk.store.of_run, run_id)
        return found[-1] if found else None

    async def is_left(self, run_id: str, digest: str) -> bool:
        """Whether a run waits for its approval of a plan or call, or has gone on by that.

        Raises:
            ApprovalsUnavailable: the store can't be read.
        """
        newest = await self.of_run(run_id)
        if newest is None or newest.request.digest != digest:
            return False
        store = (await self._at_work()).store
        return newest.state in OPEN or await asyncio.to_thread(store.has_begun, newest.request.id, run_id)

    async def consume(self, permit: Permit, trail: Trail, *, resuming: bool = False) -> Permit:
        """Spend one use for what was asked; `resuming` if that was suspended (see `Clerk.consume`).

        What is returned has the approval as it is spent, or is not `granted` any more.

        Raises:
            AuditUnavailable, ApprovalsUnavailable: it may be spent; nothing may happen by it.
        """
        clerk = await self._at_work()
        try:
            spent = await clerk.consume(
                permit.approval, permit.asked, trail, resuming=resuming and permit.own
            )
        except ApprovalClosed as problem:
            return await self._closed(clerk, permit, trail, problem.message)
        return replace(permit, approval=spent)

    async def ended(self, approval: StoredApproval, trail: Trail, *, executed: bool) -> None:
        """Say what came of the use that was spent (see `Clerk.ended`)."""
        clerk = await self._at_work()
        await clerk.ended(approval, "executed" if executed else "failed_to_start", trail)

    async def void(self, permit: Permit, trail: Trail, reason: str) -> Permit:
        """Withdraw an approval that nobody can use any more; one that is over stays as it is."""
        clerk = await self._at_work()
        try:
            approval = await clerk.end(permit.approval, "withdrawn", trail, reason)
        except ApprovalClosed:
            return await self._closed(clerk, permit, trail, reason)
        return replace(permit.denied(reason), approval=approval)

    async def _closed(self, clerk: Clerk, permit: Permit, trail: Trail, why: str) -> Permit:
        """The permit, denied for want of an approval that somebody else has spent or ended."""
        if not permit.own:
            return permit.denied(why)
        stored = await asyncio.to_thread(clerk.store.get, permit.approval.request.id)
        return await _become(clerk, replace(permit, approval=stored).denied(why), trail)

    async def close(self) -> None:
        """Let go of the services and the store."""
        for service in self._services:
            await service.close()
        await asyncio.to_thread(self._office.close)

    def can_wait(self, approval: StoredApproval) -> bool:
        """Whether an approval that is pending may stay so without this process."""
        return self._can_wait(approval.request.requirements)

    def _can_wait(self, demands: Sequence[Approval]) -> bool:
        return asking.can_wait(self._services) and all(one.unattended == "queue" for one in demands)

    async def _at_work(self) -> Clerk:
        if not self._office.is_here:  # its file and its locks belong to the process before the fork
            self._office = _Office(self._office.open_state)
        if (clerk := self._office.clerk) is not None:
            return clerk
        return await asyncio.to_thread(self._office.opened)

    async def _settled(
        self, clerk: Clerk, stored: StoredApproval, trail: Trail, wait: float | None
    ) -> Permit:
        """What it comes to, within the patience of whoever asked."""
        if stored.state == "pending":
            stored = await self._answered(clerk, stored, trail, wait)
        if stored.state == "pending" and not self._can_wait(stored.request.requirements):
            reason = "nobody answered, and policy does not let it wait"
            with contextlib.suppress(ApprovalClosed):
                await clerk.end(stored, "denied", trail, reason)
            stored = await asyncio.to_thread(clerk.store.get, stored.request.id)
        return await _become(clerk, Permit.of(stored), trail)

    async def _answered(
        self, clerk: Clerk, stored: StoredApproval, trail: Trail, wait: float | None
    ) -> StoredApproval:
        """The approval once it is decided, or as it is when patience ends."""
        left = stored.request.expires - now().passed_since(stored.request.asked)
        by_itself = left if asking.attended(self._services) else asking.COLLECTED_WITHIN_S
        patience = min(left, wait or by_itself)  # whoever is only told of it has to be told at least
        asked = [one for one in self._services if not (wait == 0 and one.attended)]
        asker = asyncio.create_task(self._take_answers(clerk, asked, stored, trail))
        watcher = asyncio.create_task(_decided(clerk.store, stored.request.id))
        try:
            async with asyncio.timeout(patience):
                done, _ = await asyncio.wait((asker, watcher), return_when=asyncio.FIRST_COMPLETED)
                if asker in done and not asker.result() and wait is not None:
                    await watcher  # others may answer as long as somebody waits for it
        except TimeoutError:
            pass
        finally:
            for task in (asker, watcher):
                task.cancel()
            await asyncio.gather(asker, watcher, return_exceptions=True)
        return await self._looked_at(clerk, stored, trail)

    async def _take_answers(
        self, clerk: Clerk, services: Sequence[ApprovalService], stored: StoredApproval, trail: Trail
    ) -> bool:
        """Take what services answer until it is decided; False if they have no more to say before that."""
        async with asking.answers(services, stored.request) as answers:
            async for answer in answers:
                if asking.is_failure(answer) and self.can_wait(stored):
                    continue  # somebody else may still answer
                try:
                    if (await clerk.take(stored.request.id, answer, trail)).state != "pending":
                        return True
                except AnswerRefused:
                    continue
                except ApprovalClosed:
                    return True
        return False

    async def _looked_at(self, clerk: Clerk, stored: StoredApproval, trail: Trail) -> StoredApproval:
        """The approval as it is now."""
        await clerk.tidy(trail)
        return await asyncio.to_thread(clerk.store.get, stored.request.id)


async def collect(
    clerk: Clerk, services: Sequence[ApprovalService], stored: StoredApproval, trail: Trail
) -> tuple[Answer, ...]:
    """Take what was answered meanwhile by services that are asked nothing anew; return what failed of them.

    They say it each time, so what does not count is passed over here, and not recorded again and again.

    Raises:
        AuditUnavailable, ApprovalsUnavailable: not all is taken.
    """
    failures = []
    for answer in await asking.collected(services, stored.request):
        if asking.is_failure(answer):
            failures.append(answer)
        elif objection(stored.request, stored.given, answer, now()) is None:
            with contextlib.suppress(AnswerRefused, ApprovalClosed):  # the trail has it, and why
                stored = await clerk.take(stored.request.id, answer, trail)
    return tuple(failures)


async def _become(clerk: Clerk, permit: Permit, trail: Trail) -> Permit:
    """The permit; gone, if it is denied since its own approval was spent for this very run."""
    approval = permit.approval.request.id
    if permit.state == "denied" and await asyncio.to_thread(clerk.store.has_begun, approval, trail.run_id):
        return replace(permit, state="gone", reason=f"the approval {approval} was used before, by this run")
    return permit


async def _decided(store: ApprovalStore, approval: str) -> None:
    """Return once the approval is not pending any more."""
    pause = _SHORTEST
    while (await asyncio.to_thread(store.get, approval)).state == "pending":
        await asyncio.sleep(pause)
        pause = min(pause * _GROWTH, _LONGEST)
