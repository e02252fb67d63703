"""The tool calls of one run: each bound, decided as of now, recorded, performed, and recorded again.

Rules this module keeps:

- nothing has an effect before its decision is durable; what ended, or is not known to have ended, is
  recorded, also when the run is cancelled while a tool works;
- a call is counted and recorded whatever becomes of it, also one whose arguments don't fit, which nobody
  decides; arguments, results and time are bounded for each;
- a plain refusal is raised in the code, which may go on; a fatal one ends the run: the limit of calls is
  spent, or a rule that came to apply while the code ran denies the run itself, or the call waits for an
  approval, which its record says before the run is suspended;
- a result crosses as the tool returned it; of an exception, only its type and a message without places.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from licet import bodies, keeping, messages, telemetry, values
from licet.backend import GuestError, Reply, Termination, ToolCall
from licet.calling import signature_of
from licet.conclude import why_denied
from licet.decide import Decision, decide_call, tightened
from licet.digests import Digest, of_call
from licet.errors import AuditUnavailable
from licet.performing import Performance, ToolExit
from licet.plain import Plain, plain_body
from licet.plan import ExecutionPlan
from licet.policy.facts import CallFacts
from licet.policy.patterns import Effect
from licet.policy.signatures import bind
from licet.prepare import Deciders, Prepared
from licet.request import Tool
from licet.rerun import Recall
from licet.result import CallOutcome, ToolCallMade
from licet.scrubbing import Finding, Scrubbed
from licet.stubs import shown_signature
from licet.trail import Trail
from licet.waiting import WaitingCall, Waits

Scrub = Callable[[str], Awaitable[Scrubbed]]
"""Takes the secrets out of a message."""


async def as_it_is(text: str) -> Scrubbed:
    """The message, where nobody looks for secrets."""
    return Scrubbed(text)


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a call comes to; `size` is that of its result in wire form, `findings` were taken out of it."""

    reply: Reply
    outcome: CallOutcome
    size: int | None = None
    findings: tuple[Finding, ...] = ()


class ToolCalls:
    """Answers the calls of one run.

    `scrub` takes secrets out of what exceptions tell the code. `recall` answers in place of the tools, which
    are not called then. `before` is called ahead of each record. `past` is the `state` of a run that goes on
    here. A call that has to be approved waits in `waits`.
    """

    def __init__(
        self,
        plan: ExecutionPlan,
        prepared: Prepared,
        trail: Trail,
        digest: Digest,
        deciders: Deciders | None = None,
        *,
        scrub: Scrub = as_it_is,
        recall: Recall | None = None,
        before: Callable[[], None] = lambda: None,
        waits: Waits,
        past: Mapping[str, Any] | None = None,
    ) -> None:
        self.made: list[ToolCallMade] = [ToolCallMade(**made) for made in past["made"]] if past else []
        self.why_ended: str | None = None
        self._plan = plan
        self._prepared = prepared
        self._trail = trail
        self._digest = digest
        self._deciders = deciders
        self._scrub = scrub
        self._recall = recall
        self._before = before
        self._waits = waits
        self._sequence: int = past["sequence"] if past else 0
        loaded = prepared.stack.loaded or prepared.stack
        self._steady = deciders is None and not (loaded.has_rules or loaded.rehearsed)
        self._is_async: dict[str, bool] = {}

    def state(self) -> dict[str, Any]:
        """What was called so far, as plain data."""
        made = [asdict(one) for one in self.made]
        return {"sequence": self._sequence, "made": made}

    async def call(self, call: ToolCall) -> Reply:
        """Decide, record, perform and record one call.

        Raises:
            AuditUnavailable: it could not be recorded; nothing was performed, or its outcome is not recorded.
        """
        self._sequence += 1
        sequence, name = self._sequence, call.name
        allowed = self._plan.limits.tool_calls or 0
        if sequence > allowed:
            return self._fatal(Termination.tool_limit, f"the limit `tool_calls` is {allowed}")
        tool = self._prepared.request.tools.get(name)
        try:
            arguments = self._arguments(call, tool)
            began_ns = time.monotonic_ns()
            decision = await self._decide(call, tool)
        except ValueError as problem:
            return await self._refused(sequence, name, str(problem))
        took_ns = time.monotonic_ns() - began_ns
        digest = of_call(self._digest, self._plan.plan_digest, sequence, name, arguments)
        body = Plain(self._told(name, call.line, decision, tool), sequence=sequence, call_digest=digest)
        body |= {"argument_bytes": len(arguments), "took_ns": took_ns}
        self._before()
        self._trail.step("tool_call", body, phase="before", kept=keeping.of_call(self._prepared, arguments))
        begun = _Begun(sequence, name, digest, decision.effect, time.monotonic())
        recalled: tuple[Reply, CallOutcome] | None = None
        try:
            await self._trail.commit()
            if self._recall is not None:
                recalled = await self._recall.answer(sequence, name, arguments, decision)
        except asyncio.CancelledError:
            self._note_end(begun, _Answer(Reply(), "refused"))  # durable with the end of the run
            raise
        if recalled is None and self._has_to_wait(tool, decision):
            return await self._wait(WaitingCall(sequence, name, digest, arguments, call.line), decision)
        with self._trail.inside(f"{telemetry.CALL} {sequence}"):
            if recalled is not None:
                answer = _Answer(*recalled)
            else:
                answer = self._refusal(call, tool, decision) or await self._perform(begun, call, tool)
        await self._ended(begun, answer)
        return answer.reply

    async def settle(self, waiting: WaitingCall, error: GuestError | None = None) -> Reply:
        """Perform the call that waited, or refuse it with `error`; it was recorded when it was made.

        That it may happen is to be durable before: it is not decided again here.

        Raises:
            AuditUnavailable: its outcome could not be recorded.
            ValueError: its tool is not passed any more.
        """
        self.why_ended = None
        tool = self._tool_of(waiting)
        args, kwargs = values.from_json(waiting.arguments)
        begun = _Begun(waiting.sequence, waiting.name, waiting.digest, "ask", time.monotonic())
        if error is not None:
            answer = _Answer(Reply(error=error), "denied")
        else:
            call = ToolCall(waiting.name, tuple(args), kwargs, waiting.line)
            answer = await self._perform(begun, call, tool)
        await self._ended(begun, answer)
        return answer.reply

    async def decide_again(self, waiting: WaitingCall) -> Decision:
        """The decision on the call that waits, as of now.

        Raises:
            ValueError: it does not fit its tool any more.
        """
        tool = self._tool_of(waiting)
        args, kwargs = values.from_json(waiting.arguments)
        return await self._decide(ToolCall(waiting.name, tuple(args), kwargs, waiting.line), tool)

    def _tool_of(self, waiting: WaitingCall) -> Tool:
        if (tool := self._prepared.request.tools.get(waiting.name)) is None:
            raise ValueError(f"there is no tool `{waiting.name}`")
        return tool

    async def _wait(self, waiting: WaitingCall, decision: Decision) -> Reply:
        """Let a call wait; where the run does not end for that, one after the other."""
        if not self._waits.lasting:
            return await self._waits.answered(waiting, decision)
        await self._waits.hold(waiting, decision)
        why = f"the call of `{waiting.name}` waits for an approval"
        return self._fatal(Termination.approval_pending, why)

    def _has_to_wait(self, tool: Tool | None, decision: Decision) -> bool:
        asked = tool is not None and decision.effect == "ask" and not decision.ends_run
        return asked and self._waits.obstacle(decision) is None

    def _told(self, name: str, line: int | None, decision: Decision, tool: Tool | None) -> Plain:
        """What a record says of a decision; where only name and line decide, it is made once for these."""

        def make() -> Plain:
            return plain_body({"tool": name, **bodies.call(decision, tool)})

        steady = self._steady and not (tool and tool.touches)  # links on the way to these may change
        return self._prepared.shared.once((name, line), make) if steady else make()

    def _arguments(self, call: ToolCall, tool: Tool | None) -> str:
        """The arguments of a call in wire form.

        Raises:
            ValueError: they can't cross, or are too large; the message says so to the code.
        """
        if call.refused is not None:
            raise ValueError(call.refused)
        given = [list(call.args), dict(call.kwargs)]
        try:
            text = values.exactly(given)
        except ValueError as problem:
            raise ValueError(f"the arguments of `{call.name}` can't cross: {problem}") from None
        if tool is not None and len(text) > tool.most_bytes:
            raise ValueError(
                f"the arguments of `{call.name}` have {len(text)} bytes, it takes at most {tool.most_bytes}"
            )
        return text

    async def _decide(self, call: ToolCall, tool: Tool | None) -> Decision:
        """Decide a call as of now.

        Raises:
            ValueError: its arguments don't fit the tool's signature, which the message shows.
        """
        request, stack = self._prepared.request, self._prepared.stack
        signature = signature_of(call.name, stack, tool.handler if tool else None)
        try:
            args = bind(signature, call.args, call.kwargs) if signature else dict(call.kwargs)
        except ValueError as problem:
            shown = f"; it is `{shown_signature(tool, signature)}`" if tool else ""
            raise ValueError(f"{call.name}() {problem}{shown}") from None
        facts = replace(
            self._prepared.facts, at=datetime.now(UTC), call=CallFacts(call.name, args, signature)
        )
        touches = tool.touches if tool is not None else ()
        decision = decide_call(facts, stack, call.line, touches=touches)
        if self._deciders is None:
            return decision
        return tightened(decision, await asyncio.to_thread(self._deciders, request, decision))

    def _refusal(self, call: ToolCall, tool: Tool | None, decision: Decision) -> _Answer | None:
        """What the code is told of a call that does not happen; None if it does."""
        if decision.ends_run:
            return _Answer(self._fatal(Termination.policy_denied, why_denied(decision)), "denied")
        if decision.effect != "allow":
            obstacle = self._waits.obstacle(decision) if decision.effect == "ask" else None
            why = messages.without_places(obstacle or why_denied(decision))  # policies lie somewhere, too
            return _Answer(_error("PermissionError", why), "denied")
        if tool is None:
            return _Answer(_error("NameError", f"name '{call.name}' is not defined"), "unknown tool")
        return None

    async def _refused(self, sequence: int, name: str, why: str) -> Reply:
        """Record a call that nobody decided, since it can't be made, and say so to the code."""
        if self._recall is not None:
            self._recall.refused(sequence, name)
        reply = _error("TypeError", why)
        body = {"sequence": sequence, "tool": name, "outcome": "refused", "error": "TypeError"}
        self._before()
        self._trail.step("tool_call", body, phase="after", kept=keeping.of_reply(self._prepared, reply))
        await self._trail.commit()
        return reply

    def _fatal(self, termination: Termination, why: str) -> Reply:
        self.why_ended = self.why_ended or why
        return Reply(fatal=termination)

    async def _perform(self, begun: _Begun, call: ToolCall, tool: Tool | None) -> _Answer:
        assert tool is not None
        if (is_async := self._is_async.get(call.name)) is None:
            is_async = self._is_async[call.name] = tool.is_async
        performance = Performance(tool, call, is_async=is_async)
        try:
            await performance.wait(self._patience(tool))
            if performance.is_over:
                return await self._answer(performance, tool)
        except asyncio.CancelledError:
            await asyncio.shield(self._abandoned(begun, performance, tool))
            raise
        await performance.stop()
        message = (
            f"{tool.name}() gave no answer within {self._patience(tool):g} s, and may have had its effect"
        )
        return _Answer(_error("TimeoutError", message), "timed_out" if performance.is_gone else "unknown")

    def _patience(self, tool: Tool) -> float | None:
        """How long one call may take; what is left of the run's own time is its backend's to watch."""
        bounds = [limit for limit in (tool.timeout, self._plan.limits.wall_time) if limit is not None]
        return min(bounds, default=None)

    async def _abandoned(self, begun: _Begun, performance: Performance, tool: Tool) -> None:
        """Stop what the run no longer waits for, and record what is known of it."""
        if performance.is_over:
            answer = await self._answer(performance, tool)
        else:
            await performance.stop()
            answer = _Answer(Reply(), "unknown")
        with contextlib.suppress(AuditUnavailable):  # then whoever opens the log next says the same
            await self._ended(begun, answer)

    async def _answer(self, performance: Performance, tool: Tool) -> _Answer:
        """What a tool that came to its end returned or raised, as the code gets it."""
        try:
            value = performance.result()
        except ToolExit as problem:
            return await self._raised(problem.kind, problem)
        except BaseException as problem:
            return await self._raised(type(problem).__name__, problem)
        try:
            size = len(values.exactly(value))
        except ValueError as problem:
            return _withheld(f"{tool.name}() returned what can't cross: {problem}")
        if size > tool.most_bytes:
            why = f"{tool.name}() returned {size} bytes, at most {tool.most_bytes} cross; ask it for less"
            return replace(_withheld(why), size=size)
        return _Answer(Reply(value=value), "returned", size)

    async def _raised(self, kind: str, problem: BaseException) -> _Answer:
        clean = await self._scrub(messages.told(problem, (self._plan.workdir,)))
        return _Answer(_error(kind, clean.text), "raised", findings=clean.findings)

    async def _ended(self, begun: _Begun, answer: _Answer) -> None:
        self._note_end(begun, answer)
        await self._trail.commit()

    def _note_end(self, begun: _Begun, answer: _Answer) -> None:
        duration = time.monotonic() - begun.at
        self.made.append(
            ToolCallMade(begun.sequence, begun.name, begun.digest, begun.effect, answer.outcome, duration)
        )
        body: dict[str, Any] = {"sequence": begun.sequence, "tool": begun.name, "outcome": answer.outcome}
        if answer.size is not None:
            body["result_bytes"] = answer.size
        if answer.reply.error is not None:
            body["error"] = answer.reply.error.type
        if answer.findings:
            body["scrubbed"] = [bodies.finding(one) for one in answer.findings]
        told = answer.outcome == "returned" or answer.reply.error is not None
        kept = keeping.of_reply(self._prepared, answer.reply) if told else ()
        self._before()
        self._trail.step("tool_call", body, phase="after", kept=kept)


@dataclass(frozen=True, slots=True)
class _Begun:
    """A call whose `before` record is durable; `at` is on the monotonic clock."""

    sequence: int
    name: str
    digest: str
    effect: Effect
    at: float


def _error(kind: str, message: str) -> Reply:
    return Reply(error=GuestError(kind, message))


def _withheld(why: str) -> _Answer:
    return _Answer(_error("ValueError", why), "withheld")
