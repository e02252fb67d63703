"""What a run goes through that is asked about: as a whole before it begins, or for a call in its middle.

Rules this module keeps:

- what was granted is prepared and decided anew, and only what was shown goes on: under the same policy, as
  the same plan, or as the same call in the same suspended run;
- a use is spent before anything happens by it; whoever finds that another process has spent it for this very
  run leaves the run to that one, and records nothing more of it;
- a call that is denied while its run is there is an error in the code, which may go on without it; a run that
  is resumed goes on by its approval alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from licet import bodies, conclude, keeping, messages, suspending
from licet.approvals import cancelling, clocks, freezing, showing
from licet.approvals.cancelling import End
from licet.approvals.desk import Desk, Permit
from licet.approvals.forms import OPEN, ApprovalRequest, StoredApproval
from licet.backend import GuestError, Outcome, Reply, Termination
from licet.committing import to_the_end
from licet.decide import Decision
from licet.errors import NoApproval, SuspensionVoid
from licet.jobs import CANCELLED, Job, UnderWay, chosen_of, note_selection
from licet.policy.parts import Approval
from licet.prepare import Prepared
from licet.request import ExecutionRequest
from licet.result import ExecutionResult
from licet.trail import Trail

if TYPE_CHECKING:
    from licet.pipeline import Pipeline


class Permits:
    """Gets approvals for what the runs of one pipeline are asked about."""

    def __init__(self, pipeline: Pipeline, desk: Desk) -> None:
        self._pipeline = pipeline
        self._desk = desk
        self._digest = pipeline.digest

    def obstacle(self, demands: Sequence[Approval]) -> str | None:
        """Why nobody can give these approvals; None if somebody can, now or later."""
        return self._desk.obstacle(demands)

    async def waiting(self, run_id: str) -> StoredApproval:
        """The newest approval that a run was asked about, open or over.

        Raises:
            NoApproval: there is none.
            SuspensionVoid: it waits in the process that began it.
            ApprovalsUnavailable: the store can't be read.
        """
        stored = await self._desk.of_run(run_id)
        if stored is None:
            raise NoApproval(
                f"no run `{run_id}` waits for an approval here",
                advice="`licet approvals list` names those that do; the policy's directory keeps them",
            )
        if stored.request.kind == "call" and stored.state in OPEN and stored.sealed is None:
            raise SuspensionVoid(
                f"the run `{run_id}` waits in the process that began it, or has gone on there",
                advice="have it answered while that process is there",
            )
        return stored

    def thawed(self, frozen: bytes, tools: Mapping[str, Any]) -> ExecutionRequest:
        """A request as it was asked, with its `tools` (see `freezing.thaw`)."""
        return freezing.thaw(frozen, tools)

    async def ended(self, approval: StoredApproval, trail: Trail, *, executed: bool) -> None:
        """Say what came of a use (see `Desk.ended`)."""
        await self._desk.ended(approval, trail, executed=executed)

    async def close(self) -> None:
        """Let go of whom it asks, and of the store."""
        await self._desk.close()

    async def resume(self, job: Job, stored: StoredApproval, trail: Trail) -> ExecutionResult:
        """Go on with a run that waits for the approval `stored`, if it has been given by now.

        Raises:
            AuditUnavailable, ApprovalsUnavailable: something could not be recorded or looked up.
        """
        await self._pipeline.commits.recover(trail)
        permit = await self._desk.again(stored, trail, job.wait)
        if permit.state == "pending":
            return conclude.waiting(await job.prepare(), trail, permit)
        if permit.state == "granted" and not showing.is_whole(permit.asked, self._digest):
            permit = await self._desk.void(permit, trail, "what is kept of it is not what was shown")
        if permit.state != "granted":
            return conclude.over(permit.approval, permit.reason)
        prepared = await self._pipeline.proved(await job.prepare(), trail, job)
        if stored.request.kind == "call":
            return await self._reopen(job, prepared, trail, permit)
        permit = await self._agreed_on_run(prepared, trail, permit, cancelling.never_begun(trail))
        if permit.state != "granted":
            return conclude.over(permit.approval, permit.reason)
        trail.step("decision", bodies.decision(prepared.decision, prepared.stack))
        return await self._begin(job, prepared, trail, permit)

    # -- a run that is asked about as a whole

    async def of_run(self, job: Job, prepared: Prepared, trail: Trail) -> ExecutionResult:
        """Have a run approved, then carry it out."""
        if (obstacle := self.obstacle(prepared.decision.demands)) is not None:
            trail.step("authorization", bodies.authorization("denied", obstacle))
            return await self._pipeline.refused(prepared, trail, Termination.approval_denied, obstacle)
        end, digest = cancelling.never_begun(trail), chosen_of(prepared).plan_digest
        async with cancelling.ended_unless_it_waits(self._desk, trail, digest, end):
            permit = await self._desk.ask(
                partial(showing.of_run, prepared, trail.run_id, asked=clocks.now(), digest=self._digest),
                trail,
                frozen=freezing.freeze(job.asked, prepared.request.workdir),
                keeps=partial(keeping.of_shown, prepared),
                wait=job.wait,
            )
            if permit.state == "granted":
                prepared = await self._pipeline.proved(await job.prepare(), trail, job)
                permit = await self._agreed_on_run(prepared, trail, permit, end)
        if permit.state == "granted":
            return await self._begin(job, prepared, trail, permit)
        if permit.state == "pending":
            return conclude.waiting(prepared, trail, permit)
        if permit.state == "gone":
            return conclude.over(permit.approval, permit.reason)
        cancelling.note_denial(permit, trail, resuming=True)
        result = await self._pipeline.refused(prepared, trail, Termination.approval_denied, permit.reason)
        return replace(result, approval=permit.approval)

    async def _agreed_on_run(self, now: Prepared, trail: Trail, permit: Permit, end: End) -> Permit:
        """The permit, spent for a run if that is still what was shown."""
        shown = permit.asked
        if (void := _void(now, shown)) is None:
            again = showing.of_run(now, shown.run_id, shown.id, shown.asked, self._digest)
            void = _changed(shown, again, now.decision)
        if void is not None:
            return await self._desk.void(permit, trail, void)
        return await cancelling.spent(self._desk, permit, trail, end)

    async def _begin(self, job: Job, prepared: Prepared, trail: Trail, permit: Permit) -> ExecutionResult:
        """Carry out what an approval was spent on."""
        note_selection(prepared, trail)
        trail.step("authorization", bodies.authorization("granted", permit.reason, permit.approval))
        return await self._pipeline.carry_out(job, prepared, trail, permit.approval)

    # -- a run one of whose calls is asked about

    async def of_call(self, run: UnderWay, outcome: Outcome) -> ExecutionResult | None:
        """Have the call approved that a run was suspended for; None if it goes on, with `run.plan`."""
        trail, pipeline = run.trail, self._pipeline
        try:
            sealed = suspending.suspend(run.prepared, trail.run_id, run.host, outcome, self._digest.key())
        except ValueError as problem:
            why = f"{outcome.detail}, and the run can't wait for it: {problem}"
            return await pipeline.finish(run, Outcome(Termination.approval_denied, detail=why))
        assert run.host.waiting is not None and outcome.suspension is not None
        digest, end = run.host.waiting.digest, End(partial(pipeline.finish, run, CANCELLED))
        async with cancelling.ended_unless_it_waits(self._desk, trail, digest, end):
            permit = await self._ask_about_call(run, sealed)
            if permit.state != "pending":
                permit = await self._agreed_on_call(run, permit, await run.job.prepare(), end, resuming=True)
        if permit.state == "pending":
            return conclude.waiting(run.prepared, trail, permit, run.host.tool_calls)
        if permit.state == "gone":
            return conclude.over(permit.approval, permit.reason)
        async with pipeline.recording_its_end(run):
            reply = await self._settle(run, permit, resuming=True)
        run.plan = suspending.going_on(run.plan, outcome.suspension, reply)
        return None

    async def of_call_alive(self, run: UnderWay) -> Reply:
        """The reply to a call or connection that waits while its sandbox does, which is not suspended."""
        permit = await self._ask_about_call(run)
        if permit.state == "pending":
            reason = "nobody answered in time, and the sandbox can't wait without its process"
            permit = await self._desk.void(permit, run.trail, reason)
        permit = await self._agreed_on_call(run, permit, await run.job.prepare(), End(None), resuming=False)
        return await self._settle(run, permit, resuming=False)

    async def _ask_about_call(self, run: UnderWay, sealed: bytes | None = None) -> Permit:
        asked_about = run.host.asked_about
        assert asked_about is not None
        draft = partial(
            showing.of_call, run.prepared, run.plan, *asked_about, asked=clocks.now(), digest=self._digest
        )
        return await self._desk.ask(
            draft,
            run.trail,
            frozen=freezing.freeze(run.job.asked, run.prepared.request.workdir),
            sealed=sealed,
            keeps=partial(keeping.of_shown, run.prepared),
            wait=run.job.wait,
        )

    async def _reopen(self, job: Job, prepared: Prepared, trail: Trail, permit: Permit) -> ExecutionResult:
        """Go on with a run that was suspended, by another process or by this one before."""
        approval, pipeline = permit.approval, self._pipeline
        try:
            if (void := _void(prepared, approval.request)) is not None:
                raise SuspensionVoid(void)
            call, sealed = suspending.call_of(approval), approval.sealed or b""
            reopened = suspending.reopen(sealed, prepared, trail.run_id, call, self._digest.key())
        except SuspensionVoid as problem:
            permit = await self._desk.void(permit, trail, problem.message)
            return conclude.over(permit.approval, permit.reason)
        plan = pipeline.planned(prepared, trail)
        seen = suspending.surroundings(reopened, self._digest, prepared, plan)
        host = pipeline.host(job, prepared, plan, trail, seen, past=reopened.state)
        run = UnderWay(job, prepared, plan, host, trail)
        end = End(partial(pipeline.finish, run, CANCELLED))
        permit = await self._agreed_on_call(run, permit, prepared, end, resuming=True)
        if permit.state != "granted":
            return conclude.over(permit.approval, permit.reason)
        trail.step("decision", bodies.decision(prepared.decision, prepared.stack))
        note_selection(prepared, trail)
        async with pipeline.recording_its_end(run):
            reply = await self._settle(run, permit, resuming=True)
        run.plan = suspending.resumed(plan, reopened, reply)
        return await pipeline.under_way(run)

    async def _agreed_on_call(
        self, run: UnderWay, permit: Permit, now: Prepared, end: End, *, resuming: bool
    ) -> Permit:
        """The permit, spent for the call that waits if that is still what was shown."""
        if permit.state != "granted":
            return permit
        if (void := await self._other_than(permit.asked, run, now)) is not None:
            return await self._desk.void(permit, run.trail, void)
        return await cancelling.spent(self._desk, permit, run.trail, end, resuming=resuming)

    async def _settle(self, run: UnderWay, permit: Permit, *, resuming: bool) -> Reply:
        """Do what waited and an approval was spent on; else deny it to the code."""
        trail = run.trail
        if permit.state == "granted":
            trail.step("authorization", bodies.authorization("granted", permit.reason, permit.approval))
            run.approval = permit.approval
            try:
                return await run.host.settle()
            finally:
                await to_the_end(self._desk.ended(permit.approval, trail, executed=True))
        cancelling.note_denial(permit, trail, resuming=resuming)
        run.denial = messages.without_places(permit.reason)
        return await run.host.settle(GuestError("PermissionError", run.denial))

    async def _other_than(self, shown: ApprovalRequest, run: UnderWay, now: Prepared) -> str | None:
        """Why the call that waits in a run is not what was shown; None if it is."""
        if (void := _void(now, shown)) is not None:
            return void
        if chosen_of(now).plan_digest != run.plan.plan_digest:
            return "what would run now is not what was shown: the plan is another"
        try:
            waiting, decision = await run.host.decide_again()
            again = showing.of_call(now, run.plan, waiting, decision, shown.id, shown.asked, self._digest)
        except ValueError as problem:
            return str(problem)
        return _changed(shown, again, decision)


def _void(now: Prepared, request: ApprovalRequest) -> str | None:
    """Why a grant of `request` is good for nothing as things are `now`; None if nothing voids it so far."""
    if now.stack.digest != request.policy_digest:
        return "the policy is not the one any more under which this was approved"
    if now.decision.effect == "deny":
        return conclude.why_denied(now.decision)
    if now.selection.chosen is None:
        return "no backend can run this here any more"
    return None


def _changed(shown: ApprovalRequest, now: ApprovalRequest, decision: Decision) -> str | None:
    """Why what would run `now`, by this decision, is not what was `shown`; None if it is."""
    if decision.effect == "deny":
        return conclude.why_denied(decision)
    if not set(now.requirements) <= set(shown.requirements):
        return "policy asks for more by now than was approved"
    names = shown.fields.keys() | now.fields.keys()
    others = sorted(name for name in names if shown.fields.get(name) != now.fields.get(name))
    if others or shown.digest != now.digest:
        what = ", ".join(f"`{name}`" for name in others) or "the plan"
        return f"what would run now is not what was shown: {what} is another"
    return None
