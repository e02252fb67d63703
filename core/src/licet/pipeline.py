"""One run, from its prepared request to its recorded result.

Rules this module keeps:

- record, prove, authorize, seal, execute, finish, each from the values before it;
- what the chosen backend has not proved here is attacked first; then the choice is made again;
- nothing runs before its decision and its `before` record are durable; the `result` record follows;
- what was asked about is prepared and decided anew when it is granted, and only what was shown goes on: under
  the same policy, as the same plan, or as the same call in the same suspended run.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from licet import bodies, conclude, keeping, messages, suspending, telemetry
from licet.approvals import clocks, freezing, permits, showing
from licet.approvals.desk import Desk, Permit
from licet.approvals.forms import ApprovalRequest, StoredApproval
from licet.backend import Backend, GuestError, Outcome, Reply, Termination
from licet.committing import Commits, to_the_end
from licet.digests import HostDigest
from licet.errors import AuditUnavailable, SuspensionVoid
from licet.evidence import Attestor
from licet.executing import execute
from licet.host import RunHost
from licet.jobs import Job, UnderWay
from licet.plain import plain_body
from licet.plan import ExecutionPlan
from licet.plugins import Plugins
from licet.prepare import Deciders, Prepared, choose_again, plan_of
from licet.probe.results import Progress
from licet.rerun import surroundings
from licet.result import ExecutionResult
from licet.scrubbing import Leavings, cleaned, message
from licet.select import Chosen
from licet.surroundings import Surroundings
from licet.trail import Trail
from licet.witness import TrailWitness

_CANCELLED = Outcome(Termination.cancelled)


class Pipeline:
    """Brings requests to their results, by the means of one runtime."""

    def __init__(
        self,
        backends: Mapping[str, Backend],
        plugins: Plugins,
        attestor: Attestor,
        commits: Commits,
        desk: Desk,
        digest: HostDigest,
        *,
        deciders: Deciders | None,
        progress: Progress,
    ) -> None:
        self._backends = backends
        self._plugins = plugins
        self._attestor = attestor
        self._commits = commits
        self._desk = desk
        self._digest = digest
        self._deciders = deciders
        self._progress = progress

    async def run(self, job: Job, prepared: Prepared, trail: Trail) -> ExecutionResult:
        """Record, prove, authorize, seal and execute.

        Raises:
            AuditUnavailable: something could not be recorded, and nothing ran.
        """
        await self._commits.recover(trail)
        body = bodies.request(prepared, trail.caller, job.again.past.run_id if job.again else None)
        trail.step("request", body, kept=keeping.of_request(prepared))
        trail.step("decision", bodies.decision(prepared.decision, prepared.stack))
        refusal = conclude.refusal(prepared)
        if refusal is None:
            try:
                prepared = await self._proved(prepared, trail, job)
            except asyncio.CancelledError:
                ended = bodies.refusal(Termination.cancelled, "cancelled while its sandbox was attacked")
                await asyncio.shield(trail.end("result", ended))
                raise
        _note_selection(prepared, trail)
        refusal = refusal or conclude.unselected(prepared)
        if refusal is not None:
            return await self._refused(prepared, trail, *refusal)
        if prepared.decision.effect == "allow":
            trail.step("authorization", bodies.authorization("not_needed", "nothing asks"))
            return await self._carry_out(job, prepared, trail)
        return await self._asked(job, prepared, trail)

    async def resume(self, job: Job, stored: StoredApproval, trail: Trail) -> ExecutionResult:
        """Go on with a run that waits for the approval `stored`, if it has been given by now.

        Raises:
            AuditUnavailable, ApprovalsUnavailable: something could not be recorded or looked up.
        """
        await self._commits.recover(trail)
        permit = await self._desk.again(stored, trail, job.wait)
        if permit.state == "pending":
            return conclude.waiting(await job.prepare(), trail, permit)
        if permit.state == "granted" and not showing.is_whole(permit.asked, self._digest):
            permit = await self._desk.void(permit, trail, "what is kept of it is not what was shown")
        if permit.state != "granted":
            return conclude.over(permit)
        if stored.request.kind == "run":
            return await self._granted(job, trail, permit, permits.never_begun(trail), resumes=True)
        return await self._reopened(job, permit, trail)

    # -- a run that is asked about as a whole

    async def _asked(self, job: Job, prepared: Prepared, trail: Trail) -> ExecutionResult:
        """Have the run approved, then carry it out."""
        obstacle = self._desk.obstacle(prepared.decision.demands)
        if obstacle is not None:
            trail.step("authorization", bodies.authorization("denied", obstacle))
            return await self._refused(prepared, trail, Termination.approval_denied, obstacle)
        end, digest = permits.never_begun(trail), _chosen(prepared).plan_digest
        async with permits.ended_unless_it_waits(self._desk, trail, digest, end):
            permit = await self._desk.ask(
                partial(showing.of_run, prepared, trail.run_id, asked=clocks.now(), digest=self._digest),
                trail,
                frozen=freezing.freeze(job.asked, prepared.request.workdir),
                keeps=partial(keeping.of_shown, prepared),
                wait=job.wait,
            )
            if permit.state == "granted":
                return await self._granted(job, trail, permit, end)
        if permit.state == "pending":
            return conclude.waiting(prepared, trail, permit)
        return await self._denied(prepared, trail, permit)

    async def _granted(
        self, job: Job, trail: Trail, permit: Permit, end: permits.End, *, resumes: bool = False
    ) -> ExecutionResult:
        """Carry out what was granted, if it is still what was shown."""
        prepared = await self._proved(await job.prepare(), trail, job)
        void = conclude.void(prepared, permit.asked) or self._other_than(permit.asked, prepared)
        if void is not None:
            permit = await self._desk.void(permit, trail, void)
        else:
            permit = await permits.spent(self._desk, permit, trail, end)
        if permit.state != "granted":
            return conclude.over(permit) if resumes else await self._denied(prepared, trail, permit)
        if resumes:
            trail.step("decision", bodies.decision(prepared.decision, prepared.stack))
        _note_selection(prepared, trail)
        trail.step("authorization", bodies.authorization("granted", permit.reason, permit.approval))
        return await self._carry_out(job, prepared, trail, permit.approval)

    def _other_than(self, shown: ApprovalRequest, now: Prepared) -> str | None:
        again = showing.of_run(now, shown.run_id, shown.id, shown.asked, self._digest)
        return conclude.changed(shown, again, now.decision)

    async def _call_other_than(self, shown: ApprovalRequest, run: UnderWay, now: Prepared) -> str | None:
        try:
            waiting, decision = await run.host.decide_again()
            again = showing.of_call(now, run.plan, waiting, decision, shown.id, shown.asked, self._digest)
        except ValueError as problem:
            return str(problem)
        if (chosen := now.selection.chosen) is None or chosen.plan_digest != run.plan.plan_digest:
            return "what would run now is not what was shown: the plan is another"
        return conclude.changed(shown, again, decision)

    async def _carry_out(
        self, job: Job, prepared: Prepared, trail: Trail, spent: StoredApproval | None = None
    ) -> ExecutionResult:
        """Begin the run."""
        plan = plan_of(prepared, _chosen(prepared), trail.run_id)
        seen = job.again or surroundings(self._digest, prepared.stack, plan, prepared.facts.at.timestamp())
        host = self._host(job, prepared, plan, trail, seen)
        return await self._under_way(UnderWay(job, prepared, plan, host, trail, spent, open_use=spent))

    # -- a run one of whose calls is asked about

    async def _call_asked(self, run: UnderWay, outcome: Outcome) -> ExecutionResult | None:
        """Have the call approved that the run was suspended for; None if it goes on, with `run.plan`."""
        trail = run.trail
        try:
            sealed = suspending.suspend(run.prepared, trail.run_id, run.host, outcome, self._digest.key())
        except ValueError as problem:
            why = f"{outcome.detail}, and the run can't wait for it: {problem}"
            return await self._finish(run, Outcome(Termination.approval_denied, detail=why))
        assert run.host.waiting is not None and outcome.suspension is not None
        digest, end = run.host.waiting.digest, permits.End(partial(self._finish, run, _CANCELLED))
        async with permits.ended_unless_it_waits(self._desk, trail, digest, end):
            permit = await self._ask_about_call(run, sealed)
            if permit.state != "pending":
                permit = await self._agreed(run, permit, await run.job.prepare(), end)
        if permit.state == "pending":
            return conclude.waiting(run.prepared, trail, permit, run.host.tool_calls)
        if permit.state == "gone":
            return conclude.over(permit)
        async with self._recording_its_end(run):
            reply = await self._settle(run, permit)
        run.plan = suspending.going_on(run.plan, outcome.suspension, reply)
        return None

    async def _call_alive(self, run: UnderWay) -> Reply:
        """The reply to a call that waits while its sandbox does, which can't be suspended."""
        permit = await self._ask_about_call(run)
        if permit.state == "pending":
            reason = "nobody answered in time, and the sandbox can't wait without its process"
            permit = await self._desk.void(permit, run.trail, reason)
        permit = await self._agreed(run, permit, await run.job.prepare(), permits.End(None))
        return await self._settle(run, permit)

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

    async def _reopened(self, job: Job, permit: Permit, trail: Trail) -> ExecutionResult:
        """Go on with a run that was suspended, by another process or by this one before."""
        approval = permit.approval
        prepared = await self._proved(await job.prepare(), trail, job)
        try:
            if (void := conclude.void(prepared, approval.request)) is not None:
                raise SuspensionVoid(void)
            call, sealed = suspending.call_of(approval), approval.sealed or b""
            reopened = suspending.reopen(sealed, prepared, trail.run_id, call, self._digest.key())
        except SuspensionVoid as problem:
            return conclude.over(await self._desk.void(permit, trail, problem.message))
        plan = plan_of(prepared, _chosen(prepared), trail.run_id)
        seen = suspending.surroundings(reopened, self._digest, prepared, plan)
        host = self._host(job, prepared, plan, trail, seen, past=reopened.state)
        run = UnderWay(job, prepared, plan, host, trail)
        permit = await self._agreed(
            run, permit, prepared, permits.End(partial(self._finish, run, _CANCELLED))
        )
        if permit.state != "granted":
            return conclude.over(permit)
        trail.step("decision", bodies.decision(prepared.decision, prepared.stack))
        _note_selection(prepared, trail)
        async with self._recording_its_end(run):
            reply = await self._settle(run, permit)
        run.plan = suspending.resumed(plan, reopened, reply)
        return await self._under_way(run)

    async def _agreed(self, run: UnderWay, permit: Permit, now: Prepared, end: permits.End) -> Permit:
        """The permit, spent for the call that waits if that is still what was shown."""
        if permit.state != "granted":
            return permit
        void = conclude.void(now, permit.asked) or await self._call_other_than(permit.asked, run, now)
        if void is not None:
            return await self._desk.void(permit, run.trail, void)
        suspends = _chosen(run.prepared).descriptor.suspends
        return await permits.spent(self._desk, permit, run.trail, end, resuming=suspends)

    async def _settle(self, run: UnderWay, permit: Permit) -> Reply:
        """Make the call that an approval was spent on; else deny it to the code."""
        if permit.state == "granted":
            granted = bodies.authorization("granted", permit.reason, permit.approval)
            run.trail.step("authorization", granted)
            run.approval = permit.approval
            try:
                return await run.host.settle()
            finally:
                await to_the_end(self._desk.ended(permit.approval, run.trail, executed=True))
        permits.note_denial(permit, run.trail)
        run.denial = messages.without_places(permit.reason)
        return await run.host.settle(GuestError("PermissionError", run.denial))

    # -- what all runs have in common

    async def _under_way(self, run: UnderWay) -> ExecutionResult:
        """Execute the plan, as often as its code waits for an approval and gets it."""
        backend = self._backends[run.plan.backend]
        chosen = _chosen(run.prepared)
        body = run.prepared.shared.once("execution", lambda: plain_body(bodies.execution(run.plan, chosen)))
        if not chosen.descriptor.suspends:
            run.host.ask_alive(partial(self._call_alive, run))
        run.trail.step("execution", body, phase="before")
        while True:
            async with self._recording_its_end(run):
                await run.trail.commit()
                with run.trail.inside(telemetry.ROOT):
                    outcome = await execute(backend, run.plan, run.host)
            if outcome.termination is not Termination.approval_pending:
                break
            await self._say_ended(run, executed=True)
            if (stopped := await self._call_asked(run, outcome)) is not None:
                return stopped
        return await to_the_end(self._finish(run, conclude.denied_by(outcome, run.denial)))

    @asynccontextmanager
    async def _recording_its_end(self, run: UnderWay) -> AsyncIterator[None]:
        """Around what may be cancelled once the run has begun."""
        try:
            yield
        except asyncio.CancelledError:
            await asyncio.shield(self._finish(run, _CANCELLED))
            raise

    async def _finish(self, run: UnderWay, outcome: Outcome) -> ExecutionResult:
        """Commit what it wrote, record how it ended, and say so."""
        prepared, plan, host, trail = run.prepared, run.plan, run.host, run.trail
        written = await self._commits.settle(plan, outcome, trail, self._digest)
        find = self._plugins.find
        clean = await cleaned(Leavings(outcome, *host.written()), find, plan.environment)
        protection = conclude.protected(clean.outcome, _chosen(prepared))
        said: dict[str, Any] = {"scrubbers": self._plugins.scrubbers, **host.counts()}
        body = bodies.result(clean, protection, written, self._digest, **said)
        kept = keeping.of_result(prepared, clean.outcome, clean.output)
        await self._say_ended(run, executed=outcome.termination is not Termination.launch_failed)
        trail.step("result", body, phase="after", kept=kept)
        unrecorded: AuditUnavailable | None = None
        try:
            await trail.commit()
        except AuditUnavailable as problem:
            unrecorded = problem
        result = conclude.finished(prepared, plan, clean, protection, host.tool_calls, written, trail)
        result = replace(result, approval=run.approval)
        return conclude.unrecorded(result, unrecorded) if unrecorded else result

    async def _say_ended(self, run: UnderWay, *, executed: bool) -> None:
        """Say what came of the use of an approval that the run rests on, once."""
        if (use := run.open_use) is not None:
            run.open_use = None
            await self._desk.ended(use, run.trail, executed=executed)

    async def _proved(self, prepared: Prepared, trail: Trail, job: Job) -> Prepared:
        """Attack what the chosen backend has not proved here, and choose again, until nothing is missing."""
        while (chosen := prepared.selection.chosen) is not None and chosen.missing:
            backend = self._backends[chosen.descriptor.name]
            await self._attestor.ensure(backend, chosen.missing, TrailWitness(trail, self._progress))
            prepared = choose_again(prepared, job.offers())
        return prepared

    def _host(
        self,
        job: Job,
        prepared: Prepared,
        plan: ExecutionPlan,
        trail: Trail,
        seen: Surroundings,
        past: Mapping[str, Any] | None = None,
    ) -> RunHost:
        told = partial(message, find=self._plugins.find, environment=plan.environment)
        return RunHost(
            plan,
            prepared,
            trail,
            self._digest,
            self._deciders,
            seen,
            job.again,
            told,
            obstacle=self._desk.obstacle,
            past=past,
        )

    async def _denied(self, prepared: Prepared, trail: Trail, permit: Permit) -> ExecutionResult:
        """Record that nothing of it runs for want of an approval, and say so; nothing of what is gone."""
        if permit.state == "gone":
            return conclude.over(permit)
        permits.note_denial(permit, trail)
        result = await self._refused(prepared, trail, Termination.approval_denied, permit.reason)
        return replace(result, approval=permit.approval)

    async def _refused(
        self, prepared: Prepared, trail: Trail, termination: Termination, detail: str
    ) -> ExecutionResult:
        """Record that nothing of it runs, and say so."""
        trail.step("result", bodies.refusal(termination, detail), phase="after")
        await trail.commit()
        return conclude.refused(prepared, trail, termination, detail)


def _note_selection(prepared: Prepared, trail: Trail) -> None:
    selection = prepared.selection
    body = prepared.shared.once("selection", lambda: plain_body(bodies.selection(selection)))
    trail.step("selection", body)


def _chosen(prepared: Prepared) -> Chosen:
    """What will run it, or runs it."""
    chosen = prepared.selection.chosen
    assert chosen is not None
    return chosen
