"""The runtime: what requests are carried out with, and the only module that sees all of it.

Rules this module keeps:

- the clock is read once a run, and one policy holds from its beginning to its end; the next run has the
  policy that the files say by then;
- `run` never raises for what the code or the policy did; a malformed request raises `InvalidRequest`.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from licet import conclude, paths, telemetry, toolkits
from licet import state as states
from licet.approvals.callback import Callback, as_service
from licet.approvals.forms import OPEN
from licet.approvals.services import ApprovalService
from licet.backend import Backend
from licet.committing import Commits
from licet.contract import Control
from licet.digests import Digest, HostDigest, no_digest
from licet.environments.finding import Environments
from licet.environments.python import store_path
from licet.errors import ApprovalsUnavailable, AuditUnavailable, UsageError
from licet.evidence import Attestor
from licet.jobs import Job
from licet.logbook import Gaps, Logbook
from licet.pipeline import Pipeline
from licet.plugins import Plugins
from licet.policy import MANAGED, LivePolicy, PolicySource, PolicyStack
from licet.portal import Portal
from licet.prepare import Prepared, choose_again, prepare
from licet.probe.results import Progress
from licet.record import AuditLog, UnavailableLog
from licet.repeats import Repeats
from licet.report import Explanation
from licet.request import ExecutionRequest, as_request
from licet.rerun import Past, Rerun
from licet.result import ExecutionResult
from licet.running import Running, all_done
from licet.select import Offer
from licet.settings import Settings, directory_of, settings_beside, under_administrator
from licet.trail import Trail
from licet.ulid import new_run_id
from licet.witness import TrailWitness

if TYPE_CHECKING:
    from licet.approvals.desk import Desk
    from licet.probe import Report
    from licet.type_checker import TypeFinding

DEFAULT_POLICY = "licet:compute"
_LARGE_CODE = 32 << 10  # bytes from which screening leaves the event loop


class Runtime:
    """Runs code under one policy.

    A runtime may be used from several threads and event loops. Close it (or use it as a context manager)
    to end its pools; what it recorded stays.
    """

    def __init__(
        self,
        policy: str | os.PathLike[str] = DEFAULT_POLICY,
        *,
        settings: Settings | None = None,
        log: AuditLog | None = None,
        backends: Sequence[Backend] | None = None,
        approvals: Sequence[ApprovalService | Callback] = (),
        managed: Path = MANAGED,
        progress: Progress = lambda result: None,
    ) -> None:
        """Load `policy` (a file, or `licet:PACK`).

        `log` and `backends` replace those of the plugins, for programs that bring their own; the log stays
        theirs, the backends are closed with the runtime. `approvals` are who is asked for them,
        services or functions, in place of those that settings name; where an administrator names some, these
        are the only ones. `progress` hears of each attack that is made for evidence.

        Raises:
            InvalidPolicy: the policy or one of its bounds is missing or wrong.
            InvalidSettings: the settings are wrong.
            UsageError: two of `backends` have one name.
        """
        name = os.fspath(policy)
        beside = directory_of(name)
        self.settings = under_administrator(settings) if settings else settings_beside(beside, os.environ)
        self.state_path = self.settings.state_beside(beside)
        self.plugins = Plugins(self.settings)
        source = PolicySource(self.plugins.packs(), managed, self.settings.may_pass)
        self._policy = LivePolicy(name, source, sealed=self._sealed())
        self.backends = tuple(backends) if backends is not None else self.plugins.backends()
        self._deciders = self.plugins.ballots if self.plugins.has_deciders else None
        self._by_name = {backend.describe().name: backend for backend in self.backends}
        if len(self._by_name) < len(self.backends):
            raise UsageError("two of these backends have one name", advice="give each a name of its own")
        self._attestor = Attestor()
        self._progress = progress
        self._logbook = Logbook(self._open_log, lent=log)
        self._gaps = Gaps(self.state_path if log is None else None)
        self._digest = HostDigest()
        self._running = Running()
        self._portal = Portal()
        self._repeats = Repeats()
        self._environments = Environments()
        self._services = self.plugins.approval_services(tuple(map(as_service, approvals)))
        self._pipeline = Pipeline(
            self._by_name,
            self.plugins,
            self._attestor,
            Commits(self.state_path, lambda: states.open_state(self.state_path).path),
            self._digest,
            deciders=self._deciders,
            progress=progress,
            open_desk=self._open_desk,
        )

    @classmethod
    def from_policy(cls, policy: str | os.PathLike[str], **options: Any) -> Runtime:
        """A runtime under the policy file (or pack) `policy`; options as for `Runtime`."""
        return cls(policy, **options)

    @property
    def stack(self) -> PolicyStack:
        """The policy in force now: what its files say, or said before they could no longer be used."""
        return self._policy.current()

    def offers(self) -> tuple[Offer, ...]:
        """Every backend, its contract as the receipts of this host have it; attacks nothing."""
        return self._attestor.offers(self.backends)

    def decide(self, request: ExecutionRequest | str | bytes, **fields: Any) -> Explanation:
        """Decide and select without running or recording anything; for a refusal, find what would pass.

        Raises:
            InvalidRequest: the request can't be understood.
        """
        from licet.repair import decided  # no run needs it

        return decided(as_request(request, fields), self._prepare, self._digest, few=bool(self._deciders))

    async def check_types(
        self, request: ExecutionRequest | str | bytes, **fields: Any
    ) -> tuple[TypeFinding, ...]:
        """What a type checker objects to in the code, for the backend that would run it; nothing runs.

        Raises:
            InvalidRequest: the request can't be understood.
            TypesUnchecked: no backend would run it, or that one has no type checker, or it gave up.
            RuntimeClosed: the runtime was closed.
        """
        from licet.type_checking import check_types  # no run needs it

        prepared = await asyncio.to_thread(self._prepare, as_request(request, fields), no_digest)
        with self._running.one():
            return await check_types(prepared, self._by_name)

    async def run(
        self, request: ExecutionRequest | str | bytes, *, wait: float | None = None, **fields: Any
    ) -> ExecutionResult:
        """Run code if policy lets it, and say how it went.

        Where policy asks and nobody is there to answer, a run that may wait for an approval ends as
        `approval_pending`, at once or after `wait` seconds; `resume` goes on with it.

        Raises:
            InvalidRequest: the request can't be understood.
            RuntimeClosed: the runtime was closed.
        """
        return await self._begin(as_request(request, fields), wait=wait)

    async def resume(
        self, run_id: str, *, tools: Mapping[str, Any] | None = None, wait: float | None = None
    ) -> ExecutionResult:
        """Go on with a run that waits for an approval: it was kept as it was asked for, but for its `tools`.

        Its evidence is proved anew, and a policy that has changed voids what was granted under it.

        Raises:
            NoApproval: no run of this id has asked for one.
            SuspensionVoid: other tools are passed than it was asked for with.
            AuditUnavailable, ApprovalsUnavailable: this can't be looked up.
            RuntimeClosed: the runtime was closed.
        """
        self._digest.key()
        with self._running.one():
            stored = await (permits := self._pipeline.permits).waiting(run_id)
            if stored.frozen is None or stored.state not in OPEN:
                return conclude.over(stored)
            asked = permits.thawed(stored.frozen, toolkits.named(tools or {}))
            job = Job(asked, partial(self._prepared, asked), self.offers, wait=wait)
            log, stack = self._logbook.current(), self.stack
            with self._trail(log, stack, run_id=stored.request.run_id) as trail:
                try:
                    return await permits.resume(job, stored, trail)
                finally:
                    if trail.log_failed:
                        await self._logbook.give_up(log)

    async def rerun(self, request: ExecutionRequest, past: Past) -> tuple[ExecutionResult, Rerun]:
        """Run `request` again as the recorded run `past`, and tell what was not as recorded meanwhile.

        It is a new run, decided by the policy in force and recorded, on the same backend. Its tools are not
        called: they answer as recorded. The first call that is another one ends it.

        Raises:
            InvalidRequest, UsageError: this is not the request that was recorded.
            AuditUnavailable: this host has no key to compare with.
            RuntimeClosed: the runtime was closed.
        """
        again = Rerun(past, self._digest)
        result = await self._begin(request, again)
        if result.backend is not None:
            again.ended(len(result.tool_calls))
        return result, again

    async def _begin(
        self, asked: ExecutionRequest, again: Rerun | None = None, *, wait: float | None = None
    ) -> ExecutionResult:
        keyless: AuditUnavailable | None = None
        try:
            self._digest.key()
        except AuditUnavailable as problem:
            keyless = problem
        digest = no_digest if keyless else self._digest
        prepared = await self._prepared(asked, again, digest)
        job = Job(asked, partial(self._prepared, asked, again), partial(self._offers_to, again), again, wait)
        with self._running.one():
            log = UnavailableLog(keyless) if keyless else self._logbook.current()
            return await self._run(job, prepared, log)

    async def _prepared(
        self, asked: ExecutionRequest, again: Rerun | None = None, digest: Digest | None = None
    ) -> Prepared:
        """A request after its pure stages, under the policy and at the instant of now."""
        digest = digest or self._digest
        stack = self._policy.at_once() or await asyncio.to_thread(self._policy.current)
        if len(asked.code) < _LARGE_CODE and self._deciders is None:
            prepared = self._prepare(asked, digest, stack=stack)
        else:
            prepared = await asyncio.to_thread(self._prepare, asked, digest, stack=stack)
        if again is not None:
            again.check(prepared.request.digests)
            prepared = choose_again(again.without_effects(prepared), self._offers_to(again))
        return prepared

    async def _run(self, job: Job, prepared: Prepared, log: AuditLog) -> ExecutionResult:
        with self._trail(log, prepared.stack, began=prepared.facts.at) as trail:
            try:
                return await self._pipeline.run(job, prepared, trail)
            except (AuditUnavailable, ApprovalsUnavailable) as problem:
                return conclude.unable(prepared, trail, problem)
            finally:
                if trail.log_failed:
                    await self._logbook.give_up(log)

    async def verify(self, names: Collection[str] | None = None) -> Report:
        """Attack every claim of the backends `names` (None: of all), record it, and keep the receipts.

        Raises:
            AuditUnavailable: it could not be recorded; the receipts don't count then.
            RuntimeClosed: the runtime was closed.
        """
        from licet.probe import verify
        from licet.probe.attacks import here

        wanted = [
            backend
            for name, backend in self._by_name.items()
            if (names is None or name in names) and backend.describe().unavailable is None
        ]
        async with self._attacking() as witness:
            for backend in wanted:
                await witness.before(backend.describe(), here())
            report = await verify(wanted, witness.result)
            for backend in wanted:
                found = [r for r in report.results if r.backend == backend.describe().name]
                await witness.after(backend.describe(), found)
        self._attestor.keep(report.results)
        return report

    async def prove(self) -> tuple[Offer, ...]:
        """Make the quick evidence that is missing on every claim, record it, and answer as `offers` does.

        Raises:
            AuditUnavailable: nothing can be recorded here, neither attacks nor runs.
            RuntimeClosed: the runtime was closed.
        """
        self._digest.key()
        async with self._attacking() as witness:
            for backend in self.backends:
                if backend.describe().unavailable is None:
                    await self._attestor.ensure(backend, tuple(Control), witness)
        return self.offers()

    def run_sync(self, request: ExecutionRequest | str | bytes, **fields: Any) -> ExecutionResult:
        """`run` for programs without an event loop; also works where one is running."""
        return self._portal.run(self.run(request, **fields))

    def resume_sync(self, run_id: str, **how: Any) -> ExecutionResult:
        """`resume` for programs without an event loop, as `run_sync` is."""
        return self._portal.run(self.resume(run_id, **how))

    async def aclose(self) -> None:
        """Cancel the runs under way, end every pool and release the log; no run begins any more."""
        await self._running.end()
        await all_done(
            self._pipeline.close(), self._logbook.close(), *(backend.close() for backend in self.backends)
        )
        await asyncio.to_thread(telemetry.settle, 1.0)
        await asyncio.to_thread(self._portal.close)

    def close(self) -> None:
        """`aclose` for programs without an event loop."""
        closer = Portal()
        try:
            closer.run(self.aclose())
        finally:
            closer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def _prepare(
        self,
        asked: ExecutionRequest,
        digest: Digest,
        at: datetime | None = None,
        stack: PolicyStack | None = None,
    ) -> Prepared:
        stack = stack or self.stack
        given: dict[str, Any] = {
            "at": at or datetime.now(UTC),
            "directory": paths.current_directory(),
            "host_environment": os.environ,
            "digest": digest,
            "python": self._environments.find(stack.python),
            "clock": time.perf_counter_ns,
        }
        if self._deciders is None:
            return self._repeats.prepared(asked, stack, self.offers(), **given)
        return prepare(asked, stack, self.offers(), **given, deciders=self._deciders)

    def _offers_to(self, again: Rerun | None) -> tuple[Offer, ...]:
        """What a run can choose among: one that repeats another only what that ran on."""
        offers = self.offers()
        return tuple(o for o in offers if again is None or o.descriptor.name == again.past.backend)

    @asynccontextmanager
    async def _attacking(self) -> AsyncIterator[TrailWitness]:
        """Around attacks that have a trail of their own."""
        log = self._logbook.current()
        with self._running.one(), self._trail(log, self.stack, span=telemetry.VERIFY) as trail:
            try:
                yield TrailWitness(trail, self._progress)
            except asyncio.CancelledError:
                await asyncio.shield(trail.end("probe", {"interrupted": True}))
                raise
            finally:
                if trail.log_failed:
                    await self._logbook.give_up(log)

    def _trail(self, log: AuditLog, stack: PolicyStack, *, run_id: str | None = None, **how: Any) -> Trail:
        run_id = run_id or new_run_id()
        return Trail(log, run_id, best_effort=stack.audit_mode == "best_effort", gaps=self._gaps, **how)

    def _open_desk(self) -> Desk:
        from licet.approvals.desk import Desk  # most runs ask nobody

        return Desk(self._services, partial(states.open_state, self.state_path))

    def _open_log(self) -> AuditLog:
        return self.plugins.audit_log(states.open_state(self.state_path))

    def _sealed(self) -> tuple[Path, ...]:
        return tuple(filter(None, (self.state_path, states.user_state_path(), store_path())))
