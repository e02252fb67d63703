"""The runtime: one request through all stages, and the only module that sees them all.

Rules this module keeps:

- normalize → decide → select → authorize → seal → execute, each from the values before it;
- nothing runs before its decision and its `before` record are durable; the `result` record follows;
- `run` never raises for what the code or the policy did; a malformed request raises `InvalidRequest`.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from licet import backend as backends
from licet import bodies, conclude
from licet import plan as plans
from licet import state as states
from licet.approval import authorize
from licet.backend import Backend, Outcome, Termination
from licet.conclude import Prepared
from licet.decide import decide
from licet.errors import AuditUnavailable, BackendError, InvalidRequest, LaunchFailed
from licet.host import Digest, RunHost
from licet.logbook import Gaps, Logbook
from licet.normalize import normalize
from licet.output import bounded
from licet.plan import ExecutionPlan
from licet.plugins import Plugins
from licet.policy import MANAGED, PolicySource, PolicyStack, load_stack
from licet.portal import Portal
from licet.record import AuditLog, UnavailableLog
from licet.report import Explanation, explain
from licet.request import CodeNeeds, ExecutionRequest
from licet.result import ExecutionResult
from licet.running import Running
from licet.screen import screen
from licet.select import Chosen, select
from licet.settings import Settings, directory_of, settings_beside
from licet.trail import Trail

DEFAULT_POLICY = "licet:compute"
_LARGE_CODE = 32 << 10  # bytes from which screening leaves the event loop

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = [first + second for first in _CROCKFORD for second in _CROCKFORD]


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
        managed: Path = MANAGED,
    ) -> None:
        """Load `policy` (a file, or `licet:PACK`).

        `log` and `backends` replace those of the plugins, for programs that bring their own.

        Raises:
            InvalidPolicy: the policy or one of its bounds is missing or wrong.
            InvalidSettings: the settings are wrong.
        """
        name = os.fspath(policy)
        beside = directory_of(name)
        self.settings = settings or settings_beside(beside, os.environ)
        self.state_path = self.settings.state_beside(beside)
        self.plugins = Plugins(self.settings)
        source = PolicySource(self.plugins.packs(), managed, self.settings.may_pass)
        self.stack: PolicyStack = load_stack(name, source, sealed=self._sealed())
        self.backends = tuple(backends) if backends is not None else self.plugins.backends()
        self._offers = [(backend.describe(), backend) for backend in self.backends]
        self._logbook = Logbook(self._open_log, lent=log)
        self._gaps = Gaps(self.state_path if log is None else None)
        self._key: bytes | None = None
        self._running = Running()
        self._portal = Portal()

    @classmethod
    def from_policy(cls, policy: str | os.PathLike[str], **options: Any) -> Runtime:
        """A runtime under the policy file (or pack) `policy`; options as for `Runtime`."""
        return cls(policy, **options)

    def decide(self, request: ExecutionRequest | str | bytes, **fields: Any) -> Explanation:
        """Decide and select without running or recording anything.

        Raises:
            InvalidRequest: the request can't be understood.
        """
        asked = _request(request, fields)
        try:
            return self._prepare(asked, self._digest).explanation
        except AuditUnavailable:  # without a key, all can be said but the digest of the plan
            return replace(self._prepare(asked, _no_digest).explanation, plan_digest=None)

    async def run(self, request: ExecutionRequest | str | bytes, **fields: Any) -> ExecutionResult:
        """Run code if policy lets it, and say how it went.

        Raises:
            InvalidRequest: the request can't be understood.
            RuntimeClosed: the runtime was closed.
        """
        asked = _request(request, fields)
        keyless: AuditUnavailable | None = None
        try:
            self._host_key()
        except AuditUnavailable as problem:
            keyless = problem
        digest = _no_digest if keyless else self._digest
        if len(asked.code) < _LARGE_CODE:
            prepared = self._prepare(asked, digest)
        else:
            prepared = await asyncio.to_thread(self._prepare, asked, digest)
        with self._running.one():
            return await self._run(prepared, UnavailableLog(keyless) if keyless else self._logbook.current())

    async def _run(self, prepared: Prepared, log: AuditLog) -> ExecutionResult:
        best_effort = self.stack.audit_mode == "best_effort"
        with Trail(log, new_run_id(), best_effort=best_effort, gaps=self._gaps) as trail:
            try:
                return await self._recorded(prepared, trail)
            except AuditUnavailable as problem:
                return conclude.refused(
                    prepared, trail, Termination.audit_unavailable, problem.message, problem.advice
                )
            finally:
                if trail.log_failed:
                    await self._logbook.give_up(log)

    def run_sync(self, request: ExecutionRequest | str | bytes, **fields: Any) -> ExecutionResult:
        """`run` for programs without an event loop; also works where one is running."""
        return self._portal.run(self.run(request, **fields))

    async def aclose(self) -> None:
        """Cancel the runs under way, end every pool and release the log; no run begins any more."""
        await self._running.end()
        for backend in self.backends:
            await backend.close()
        await self._logbook.close()
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

    def _prepare(self, asked: ExecutionRequest, digest: Digest) -> Prepared:
        """The pure stages: normalize → screen → decide → select."""
        request = normalize(
            asked,
            self.stack,
            directory=_current_directory(),
            host_environment=os.environ,
            digest=digest,
        )
        seen = screen(request.code, denied_modules=self.stack.denied_modules)
        decision = decide(request, self.stack, seen)
        needs = seen.needs if seen.syntax_error is None else CodeNeeds()
        selection = select(request, decision, needs, self.stack, [offer for offer, _ in self._offers])
        explanation = explain(decision, selection, seen.syntax_error)
        return Prepared(request, decision, selection, explanation, seen.syntax_error)

    async def _recorded(self, prepared: Prepared, trail: Trail) -> ExecutionResult:
        """Record, authorize, seal and execute."""
        if (refusal := _noted(prepared, self.stack, trail)) is not None:
            trail.step("result", bodies.refusal(*refusal), phase="after")
            await trail.commit()
            return conclude.refused(prepared, trail, *refusal)
        chosen = prepared.selection.chosen
        assert chosen is not None
        plan = self._plan(prepared, chosen, trail.run_id)
        host = RunHost(plan, prepared.request, self.stack, trail, self._digest)
        trail.step("execution", bodies.execution(plan, chosen.descriptor.version), phase="before")
        try:
            await trail.commit()
            outcome = await self._execute(plan, host)
        except asyncio.CancelledError:
            await asyncio.shield(self._finish(prepared, plan, host, Outcome(Termination.cancelled), trail))
            raise
        return await self._finish(prepared, plan, host, outcome, trail)

    def _plan(self, prepared: Prepared, chosen: Chosen, run_id: str) -> ExecutionPlan:
        request = prepared.request
        return plans.seal(
            ExecutionPlan(
                run_id=run_id,
                backend=chosen.descriptor.name,
                code=request.code,
                inputs=request.inputs,
                stdin=request.stdin,
                environment=request.environment,
                workdir=request.workdir,
                limits=request.limits,
                opened=chosen.opened,
                contract=chosen.descriptor.sandbox_enforcement_contract,
                plan_digest=chosen.plan_digest,
                policy_class=self.stack.digest,
                tenant=request.subject.tenant,
            )
        )

    async def _execute(self, plan: ExecutionPlan, host: RunHost) -> Outcome:
        backend = next(backend for offer, backend in self._offers if offer.name == plan.backend)
        try:
            return await backends.execute(backend, plan, host)
        except AuditUnavailable as problem:  # a tool call could not be recorded
            return Outcome(Termination.audit_unavailable, detail=problem.message)
        except LaunchFailed as problem:
            return Outcome(Termination.launch_failed, detail=str(problem))
        except BackendError as problem:
            return Outcome(Termination.backend_error, detail=str(problem))
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is None or task.cancelling():
                raise
            return Outcome(Termination.backend_error, detail=f"`{plan.backend}` cancelled itself")
        except (Exception, SystemExit) as problem:  # a stranger's backend can fail in any way
            detail = f"`{plan.backend}` failed: {type(problem).__name__}: {problem}"
            return Outcome(Termination.backend_error, detail=bounded(detail, 1000))

    async def _finish(
        self, prepared: Prepared, plan: ExecutionPlan, host: RunHost, outcome: Outcome, trail: Trail
    ) -> ExecutionResult:
        """Record how it ended, and say so."""
        output, calls = host.output(), host.tool_calls
        body = bodies.result(outcome, output, self._digest, tool_calls=len(calls), accesses=host.accesses)
        trail.step("result", body, phase="after")
        unrecorded: AuditUnavailable | None = None
        try:
            await trail.commit()
        except AuditUnavailable as problem:
            unrecorded = problem
        result = conclude.finished(prepared, plan, outcome, output, calls, trail)
        return conclude.unrecorded(result, unrecorded) if unrecorded else result

    def _open_log(self) -> AuditLog:
        return self.plugins.audit_log(states.open_state(self.state_path))

    def _digest(self, name: str, content: bytes) -> str:
        # most parts of most requests are small and the same: limits, directory, an empty input
        digest = _small_digest if len(content) <= 256 else states.digest
        return digest(self._host_key(), name.encode(), content)

    def _host_key(self) -> bytes:
        if self._key is None:
            self._key = states.host_key()
        return self._key

    def _sealed(self) -> tuple[Path, ...]:
        users = states.user_state_path()
        return (self.state_path, users) if users is not None else (self.state_path,)


def _no_digest(name: str, content: bytes) -> str:
    """Stands for digests where there is no key to make them with, and nothing is recorded."""
    return ""


def _current_directory() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 (a Path is made to be taken apart again)
    except FileNotFoundError:
        raise InvalidRequest("the current directory is gone", advice="change into one that exists") from None


_small_digest = lru_cache(maxsize=512)(states.digest)


def new_run_id() -> str:
    """A ULID: 10 characters of time in milliseconds, 16 of randomness, sortable by time."""
    number = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    return "".join([_PAIRS[number >> shift & 1023] for shift in range(120, -1, -10)])


def _request(request: ExecutionRequest | str | bytes, fields: Mapping[str, Any]) -> ExecutionRequest:
    from pydantic import ValidationError

    try:
        if not isinstance(request, ExecutionRequest):
            return ExecutionRequest(code=request, **fields)
        return ExecutionRequest(**{**dict(request), **fields}) if fields else request
    except ValidationError as problem:
        first = problem.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"]))
        raise InvalidRequest(f"`{field}`: {first['msg'].removeprefix('Value error, ').lower()}") from None


def _noted(prepared: Prepared, stack: PolicyStack, trail: Trail) -> tuple[Termination, str] | None:
    """Note the stages before an execution; if one of them ends the run, say how and why."""
    trail.step("request", bodies.request(prepared.request))
    trail.step("decision", bodies.decision(prepared.decision, stack))
    trail.step("selection", bodies.selection(prepared.selection))
    if prepared.decision.effect == "deny":
        return Termination.policy_denied, conclude.why_denied(prepared.decision)
    if (unreadable := prepared.syntax_error) is not None:
        return Termination.exited, unreadable.message
    if prepared.selection.chosen is None:
        return Termination.no_backend, "no backend can run this here"
    authorization = authorize(prepared.decision)
    trail.step("authorization", bodies.authorization(authorization))
    return None if authorization.granted else (Termination.approval_denied, authorization.reason)
