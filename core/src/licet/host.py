"""What a running sandbox may ask of its host, each request checked against the plan and recorded.

Rules this module keeps:

- a tool call is decided when it happens, recorded before it has an effect, and recorded after;
- a file access or a connection is checked against what the plan opens, and never creates a grant;
- what a run can make the trail keep is bounded: accesses by number and length, tool calls by their limit;
- output is counted whole and kept within its limits, from whatever thread it comes.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal

from licet import bodies, connecting, keeping, telemetry, values
from licet.backend import Access, GuestError, Reply, Target, Termination, ToolCall
from licet.calling import signature_of
from licet.conclude import why_denied
from licet.decide import Decision, decide_call, tightened
from licet.hosts import Endpoint, canonical_host
from licet.output import BoundedSink, Kept
from licet.paths import PATH_MAX
from licet.plan import ExecutionPlan
from licet.policy import PolicyDocument
from licet.policy.facts import CallFacts
from licet.policy.patterns import denies_address
from licet.policy.rule import Rule
from licet.policy.signatures import bind
from licet.prepare import Deciders, Prepared
from licet.result import ToolCallMade
from licet.trail import Trail

Digest = Callable[[str, bytes], str]

MOST_ACCESSES = 1000
"""How many file accesses of one run are recorded one by one; what code asks beyond that is refused."""


class RunHost:
    """The host of one run."""

    def __init__(
        self,
        plan: ExecutionPlan,
        prepared: Prepared,
        trail: Trail,
        digest: Digest,
        deciders: Deciders | None = None,
    ) -> None:
        limits = plan.limits
        self._stdout = BoundedSink(limits.stdout or 0)
        self._stderr = BoundedSink(limits.stderr or 0)
        self.tool_calls: list[ToolCallMade] = []
        self.accesses = 0
        self._plan = plan
        self._prepared = prepared
        self._deciders = deciders
        self._trail = trail
        self._digest = digest
        self._sequence = 0
        self._output_left = limits.output or 0
        self._guard = threading.Lock()

    def write(self, stream: Literal["stdout", "stderr"], data: bytes) -> bool:
        """Keep output; False once the limit `output` is passed."""
        with self._guard:
            self._output_left -= len(data)
            (self._stdout if stream == "stdout" else self._stderr).write(data)
            return self._output_left >= 0

    def written(self) -> tuple[Kept, Kept]:
        """What is kept of standard output and error so far, uncleaned."""
        return self._stdout.pieces(), self._stderr.pieces()

    async def access(self, access: Access) -> bool:
        """Say whether the plan opens a file access, and record the answer."""
        self.accesses += 1
        if self.accesses > MOST_ACCESSES or len(access.target) > PATH_MAX:
            return False  # not recorded one by one, so not granted either; the result counts them
        answer = self._plan.opened.opens(access.action, access.target)
        body = {"action": access.action, "target": access.target, "allowed": answer}
        self._trail.step("access", body)
        await self._trail.commit()
        return answer

    async def connect(self, target: Target) -> int:
        """Connect to a target that the plan opens, by the one address that was checked.

        Raises:
            PermissionError: the plan does not open the target, or an address behind it is not to be reached.
            OSError: it can't be resolved or reached.
        """
        allowed = False
        try:
            wanted = Endpoint(canonical_host(target.host), target.port)
            allowed = self._plan.opened.opens("network", str(wanted))
        except ValueError as problem:
            raise PermissionError(str(problem)) from None
        finally:
            self._trail.step("access", {"action": "network", "target": str(target), "allowed": allowed})
            await self._trail.commit()
        if not allowed:
            raise PermissionError(f"`{wanted}` is not opened by this run's policy")
        return await connecting.connect(
            wanted,
            opens=lambda address: self._plan.opened.opens("network", str(address)),
            denies=self._denies,
            patience=min(connecting.PATIENCE_S, self._plan.limits.wall_time or connecting.PATIENCE_S),
        )

    def _denies(self, address: Endpoint) -> bool:
        stack = self._prepared.stack
        parts: tuple[PolicyDocument | Rule, ...] = (*stack.documents, *stack.hits)
        entries = (entry for part in parts for entry in part.deny)
        return any(denies_address(entry, address) for entry in entries)

    async def call(self, call: ToolCall) -> Reply:
        """Decide, record, perform and record one tool call."""
        self._sequence += 1
        sequence, name = self._sequence, call.name
        if sequence > (self._plan.limits.tool_calls or 0):
            return Reply(fatal=Termination.tool_limit)
        try:
            values.check_crossing([list(call.args), dict(call.kwargs)])
            arguments = values.to_json([list(call.args), dict(call.kwargs)])
        except ValueError as problem:
            return Reply(error=GuestError("TypeError", f"the arguments of `{name}` can't cross: {problem}"))
        digest = self._digest("call", f"{self._plan.plan_digest}\0{sequence}\0{name}\0{arguments}".encode())
        began_ns = time.monotonic_ns()
        try:
            decision = await self._decide(call)
        except ValueError as problem:
            return Reply(error=GuestError("TypeError", f"{name}() {problem}"))
        began = time.monotonic()
        took = {"took_ns": time.monotonic_ns() - began_ns}
        body = {"sequence": sequence, "tool": name, "call_digest": digest, **bodies.call(decision), **took}
        self._trail.step("tool_call", body, phase="before", kept=keeping.of_call(self._prepared, arguments))
        await self._trail.commit()
        with self._trail.inside(f"{telemetry.CALL} {sequence}"):
            reply, outcome = await self._perform(call, decision)
        made = ToolCallMade(sequence, name, digest, decision.effect, outcome, time.monotonic() - began)
        self.tool_calls.append(made)
        body = {"sequence": sequence, "tool": name, "outcome": outcome}
        self._trail.step("tool_call", body, phase="after", kept=keeping.of_reply(self._prepared, reply))
        await self._trail.commit()
        return reply

    async def _decide(self, call: ToolCall) -> Decision:
        """Decide a call as of now.

        Raises:
            ValueError: its arguments don't fit the tool's signature.
        """
        request, stack = self._prepared.request, self._prepared.stack
        handler = request.tools.get(call.name)
        signature = signature_of(call.name, stack, handler)
        args = bind(signature, call.args, call.kwargs) if signature else dict(call.kwargs)
        made = CallFacts(call.name, args, signature)
        facts = replace(self._prepared.facts, at=datetime.now(UTC), call=made)
        decision = decide_call(facts, stack, call.line)
        if self._deciders is None:
            return decision
        return tightened(decision, await asyncio.to_thread(self._deciders, request, decision))

    async def _perform(self, call: ToolCall, decision: Decision) -> tuple[Reply, str]:
        if decision.effect != "allow":
            return Reply(error=GuestError("PermissionError", why_denied(decision))), "denied"
        handler = self._prepared.request.tools.get(call.name)
        if handler is None:
            return Reply(error=GuestError("NameError", f"name '{call.name}' is not defined")), "unknown tool"
        try:
            value = await _invoke(handler, call)
            values.check_crossing(value)
        except (Exception, SystemExit) as problem:
            error = GuestError(type(problem).__name__, values.repr_bounded(str(problem))[1:-1])
            return Reply(error=error), "raised"
        return Reply(value=value), "returned"


async def _invoke(handler: Callable[..., Any], call: ToolCall) -> Any:
    """Call a tool where it belongs: async ones on this loop, others on a thread."""
    if inspect.iscoroutinefunction(handler):
        return await handler(*call.args, **call.kwargs)
    value = await asyncio.to_thread(handler, *call.args, **call.kwargs)
    return await value if inspect.isawaitable(value) else value
