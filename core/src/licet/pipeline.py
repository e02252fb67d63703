"""One run, from its prepared request to its recorded result.

Rules this module keeps:

- record, prove, authorize, seal, execute, finish, each from the values before it;
- what the chosen backend has not proved here is attacked first; then the choice is made again;
- nothing runs before its decision and its `before` record are durable; the `result` record follows;
- what is asked about goes through `permits`, and comes back with its approval spent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from licet import bodies, conclude, keeping, telemetry
from licet.approvals.forms import StoredApproval
from licet.backend import Backend, Outcome, Termination
from licet.committing import Commits, to_the_end
from licet.digests import HostDigest
from licet.errors import AuditUnavailable
from licet.evidence import Attestor
from licet.executing import execute
from licet.host import RunHost
from licet.jobs import CANCELLED, Job, UnderWay, chosen_of, note_selection
from licet.plain import plain_body
from licet.plan import ExecutionPlan
from licet.plugins import Plugins
from licet.prepare import Deciders, Prepared, choose_again, plan_of
from licet.probe.results import Progress
from licet.rerun import surroundings
from licet.result import ExecutionResult
from licet.scrubbing import Leavings, cleaned, message
from licet.surroundings import Surroundings
from licet.trail import Trail
from licet.witness import TrailWitness

if TYPE_CHECKING:
    from licet.approvals.desk import Desk
    from licet.permits import Permits


class Pipeline:
    """Brings requests to their results, by the means of one runtime."""

    def __init__(
        self,
        backends: Mapping[str, Backend],
        plugins: Plugins,
        attestor: Attestor,
        commits: Commits,
        digest: HostDigest,
        *,
        deciders: Deciders | None,
        progress: Progress,
        open_desk: Callable[[], Desk],
    ) -> None:
        self._backends = backends
        self._plugins = plugins
        self._attestor = attestor
        self.commits = commits
        self.digest = digest
        self._deciders = deciders
        self._progress = progress
        self._open_desk = open_desk

    @cached_property
    def permits(self) -> Permits:
        """What runs go through that are asked about."""
        from licet.permits import Permits  # most runs are not

        return Permits(self, self._open_desk())

    async def close(self) -> None:
        """Let go of who was asked, if anybody was."""
        if "permits" in self.__dict__:
            await self.permits.close()

    async def run(self, job: Job, prepared: Prepared, trail: Trail) -> ExecutionResult:
        """Record, prove, authorize, seal and execute.

        Raises:
            AuditUnavailable: something could not be recorded, and nothing ran.
        """
        await self.commits.recover(trail)
        body = bodies.request(prepared, trail.caller, job.again.past.run_id if job.again else None)
        trail.step("request", body, kept=keeping.of_request(prepared))
        trail.step("decision", bodies.decision(prepared.decision, prepared.stack))
        refusal = conclude.refusal(prepared)
        if refusal is None:
            try:
                prepared = await self.proved(prepared, trail, job)
            except asyncio.CancelledError:
                ended = bodies.refusal(Termination.cancelled, "cancelled while its sandbox was attacked")
                await asyncio.shield(trail.end("result", ended))
                raise
        note_selection(prepared, trail)
        refusal = refusal or conclude.unselected(prepared)
        if refusal is not None:
            return await self.refused(prepared, trail, *refusal)
        if prepared.decision.effect == "allow":
            trail.step("authorization", bodies.authorization("not_needed", "nothing asks"))
            return await self.carry_out(job, prepared, trail)
        return await self.permits.of_run(job, prepared, trail)

    async def carry_out(
        self, job: Job, prepared: Prepared, trail: Trail, spent: StoredApproval | None = None
    ) -> ExecutionResult:
        """Begin the run."""
        plan = self.planned(prepared, trail)
        seen = job.again or surroundings(self.digest, prepared.stack, plan, prepared.facts.at.timestamp())
        host = self.host(job, prepared, plan, trail, seen)
        return await self.under_way(UnderWay(job, prepared, plan, host, trail, spent, open_use=spent))

    async def under_way(self, run: UnderWay) -> ExecutionResult:
        """Execute the plan, as often as its code waits for an approval and gets it."""
        backend = self._backends[run.plan.backend]
        chosen = chosen_of(run.prepared)
        make = partial(bodies.execution, run.plan, chosen)
        body = run.prepared.shared.once("execution", lambda: plain_body(make()))
        run.host.ask_alive(lambda: self.permits.of_call_alive(run), lasting=chosen.descriptor.suspends)
        run.trail.step("execution", body, phase="before")
        while True:
            async with self.recording_its_end(run):
                await run.trail.commit()
                with run.trail.inside(telemetry.ROOT):
                    outcome = await execute(backend, run.plan, run.host)
            if outcome.termination is not Termination.approval_pending:
                break
            if run.host.waiting is None:
                detail = f"`{run.plan.backend}` says that the run waits, and no call of it does"
                outcome = Outcome(Termination.backend_error, detail=detail)
                break
            await self._say_ended(run, executed=True)
            if (stopped := await self.permits.of_call(run, outcome)) is not None:
                return stopped
        return await to_the_end(self.finish(run, conclude.denied_by(outcome, run.denial)))

    @asynccontextmanager
    async def recording_its_end(self, run: UnderWay) -> AsyncIterator[None]:
        """Around what may be cancelled once the run has begun."""
        try:
            yield
        except asyncio.CancelledError:
            await asyncio.shield(self.finish(run, CANCELLED))
            raise

    async def finish(self, run: UnderWay, outcome: Outcome) -> ExecutionResult:
        """Commit what it wrote, record how it ended, and say so."""
        prepared, plan, host, trail = run.prepared, run.plan, run.host, run.trail
        written = await self.commits.settle(plan, outcome, trail, self.digest)
        find = self._plugins.find
        clean = await cleaned(Leavings(outcome, *host.written()), find, plan.environment)
        protection = conclude.protected(clean.outcome, chosen_of(prepared))
        said: dict[str, Any] = {"scrubbers": self._plugins.scrubbers, **host.counts()}
        body = bodies.result(clean, protection, written, self.digest, **said)
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
            await self.permits.ended(use, run.trail, executed=executed)

    async def proved(self, prepared: Prepared, trail: Trail, job: Job) -> Prepared:
        """Attack what the chosen backend has not proved here, and choose again, until nothing is missing."""
        while (chosen := prepared.selection.chosen) is not None and chosen.missing:
            backend = self._backends[chosen.descriptor.name]
            await self._attestor.ensure(backend, chosen.missing, TrailWitness(trail, self._progress))
            prepared = choose_again(prepared, job.offers())
        return prepared

    def planned(self, prepared: Prepared, trail: Trail) -> ExecutionPlan:
        """The sealed plan of a run that may go on."""
        return plan_of(prepared, chosen_of(prepared), trail.run_id)

    def host(
        self,
        job: Job,
        prepared: Prepared,
        plan: ExecutionPlan,
        trail: Trail,
        seen: Surroundings,
        past: Mapping[str, Any] | None = None,
    ) -> RunHost:
        """What the sandbox of a run talks to; `past` is the state of the one that it had before."""
        told = partial(message, find=self._plugins.find, environment=plan.environment)
        return RunHost(
            plan,
            prepared,
            trail,
            self.digest,
            self._deciders,
            seen,
            job.again,
            told,
            obstacle=lambda demands: self.permits.obstacle(demands),
            past=past,
        )

    async def refused(
        self,
        prepared: Prepared,
        trail: Trail,
        termination: Termination,
        detail: str,
    ) -> ExecutionResult:
        """Record that nothing of it runs, or nothing more, and say so."""
        trail.step("result", bodies.refusal(termination, detail), phase="after")
        await trail.commit()
        return conclude.refused(prepared, trail, termination, detail)
