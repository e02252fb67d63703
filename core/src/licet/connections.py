"""The connections of one run: each decided, recorded and made, and asked about where policy says so.

Rules this module keeps:

- nothing is looked up or dialled before the record is durable that says that it may be: a name alone tells
  whoever is asked for it something;
- what the plan opens is not decided again; what it keeps apart to be asked about is decided as of now, and an
  answer that is not `ask` opens nothing, so that an access never creates a grant;
- an approver's yes covers every later connection of the run to that target; a no is not asked about again;
- what a run can make the trail keep, and people answer, is bounded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from licet import bodies, connecting, messages
from licet.backend import GuestError, Reply, Target
from licet.conclude import why_denied
from licet.decide import Decision, decide_connection, tightened
from licet.digests import Digest, of_connection
from licet.hosts import Endpoint, canonical_host
from licet.output import bounded
from licet.plan import ExecutionPlan
from licet.policy import PolicyDocument
from licet.policy.patterns import denies_address
from licet.policy.rule import Rule
from licet.prepare import Deciders, Prepared
from licet.trail import Trail
from licet.waiting import WaitingCall, Waits

MOST_CONNECTIONS = 1000
"""How many connections of one run are recorded, and so may be made; what code asks beyond that is refused."""

MOST_QUESTIONS = 16
"""How many targets of one run people are asked about."""

_MOST_SHOWN = 300  # characters of a target that is none, which its record keeps


class Connections:
    """Makes the connections of one run.

    `before` is called ahead of each record. `past` is the `state` of a run that goes on here. A connection
    that has to be approved waits in `waits`, and its sandbox with it. `sequence` counts what was asked for.
    """

    def __init__(
        self,
        plan: ExecutionPlan,
        prepared: Prepared,
        trail: Trail,
        digest: Digest,
        deciders: Deciders | None = None,
        *,
        before: Callable[[], None] = lambda: None,
        waits: Waits,
        past: Mapping[str, Any] | None = None,
    ) -> None:
        self.sequence: int = past["sequence"] if past else 0
        self._granted: dict[str, str] = dict(past["granted"]) if past else {}  # targets, and what grants them
        self._refused: dict[str, str] = dict(past["refused"]) if past else {}  # targets, and why
        self._asked: int = past["asked"] if past else 0
        self._plan = plan
        self._prepared = prepared
        self._trail = trail
        self._digest = digest
        self._deciders = deciders
        self._before = before
        self._waits = waits
        self._turn = asyncio.Lock()

    def state(self) -> dict[str, Any]:
        """What was connected to and answered so far, as plain data."""
        return {
            "sequence": self.sequence,
            "granted": dict(self._granted),
            "refused": dict(self._refused),
            "asked": self._asked,
        }

    async def connect(self, target: Target) -> int:
        """Connect to a target that is open or gets approved, by addresses that were all checked.

        Raises:
            AuditUnavailable, ApprovalsUnavailable: it could not be recorded or asked about; nothing was made.
            PermissionError: policy or an approver refuses the target, or an address behind it.
            OSError: it can't be resolved or reached.
        """
        self.sequence += 1
        if (sequence := self.sequence) > MOST_CONNECTIONS:
            raise PermissionError(f"one run makes at most {MOST_CONNECTIONS} connections")
        try:
            wanted = Endpoint(canonical_host(target.host), target.port)
        except ValueError as problem:
            await self._note(bounded(str(target), _MOST_SHOWN), allowed=False)
            raise PermissionError(str(problem)) from None
        name = str(wanted)
        if self._plan.opened.opens("network", name):
            await self._note(name, allowed=True)
        elif self._plan.opened.asks(name):
            await self._ask_once(sequence, name)
        else:
            await self._note(name, allowed=False)
            raise PermissionError(f"`{name}` is not opened by this run's policy")
        return await self._reach(wanted)

    async def settle(self, waiting: WaitingCall, error: GuestError | None = None) -> Reply:
        """Open the target of the connection that waited for the rest of the run, or refuse it with `error`.

        Raises:
            AuditUnavailable: the answer could not be recorded.
        """
        target = waiting.arguments
        if error is not None:
            self._refused[target] = error.message
            await self._note(target, allowed=False, call_digest=waiting.digest)
            return Reply(error=error)
        await self._note(target, allowed=True, call_digest=waiting.digest)
        self._granted[target] = waiting.digest
        return Reply()

    async def decide_again(self, waiting: WaitingCall) -> Decision:
        """The decision on the connection that waits, as of now."""
        return await self._decide(waiting.arguments)

    async def _ask_once(self, sequence: int, target: str) -> None:
        """Return if an approver opens a target, or has; others that want the same wait for that answer.

        Raises:
            PermissionError: nobody opens it.
        """
        why: str | None = None
        async with self._turn:
            if (digest := self._granted.get(target)) is not None:
                await self._note(target, allowed=True, call_digest=digest)
            elif (why := self._refused.get(target)) is not None:
                await self._note(target, allowed=False)
            else:
                why = await self._ask(sequence, target)
        if why is not None:
            raise PermissionError(why)

    async def _ask(self, sequence: int, target: str) -> str | None:
        """Why nobody opens a target; None if somebody does."""
        if self._asked >= MOST_QUESTIONS:
            await self._note(target, allowed=False)
            return f"`{target}` has to be approved, and one run asks about at most {MOST_QUESTIONS} targets"
        decision = await self._decide(target)
        digest = of_connection(self._digest, self._plan.plan_digest, sequence, target)
        body = {"action": "network", "target": target, "sequence": sequence, "call_digest": digest}
        self._before()
        self._trail.step("access", {**body, **bodies.connection(decision)}, phase="before")
        if (why := self._obstacle(target, decision)) is not None:
            await self._note(target, allowed=False, call_digest=digest)
            return why
        await self._trail.commit()
        self._asked += 1
        waiting = WaitingCall(sequence, target, digest, target, kind="network")
        error = (await self._waits.answered(waiting, decision)).error
        if error is None:
            return None
        if target not in self._refused:  # nobody was asked
            await self._note(target, allowed=False, call_digest=digest)
        return error.message

    def _obstacle(self, target: str, decision: Decision) -> str | None:
        """Why nobody is asked about a target."""
        if decision.effect == "ask":
            why = self._waits.obstacle(decision)
        elif decision.effect == "deny":
            why = why_denied(decision)
        else:  # it came to be allowed while the code ran, which opens nothing
            why = f"`{target}` was not open when this run began"
        return messages.without_places(why) if why is not None else None

    async def _decide(self, target: str) -> Decision:
        facts = replace(self._prepared.facts, at=datetime.now(UTC))
        decision = decide_connection(facts, self._prepared.stack, target)
        if self._deciders is None:
            return decision
        request = self._prepared.request
        return tightened(decision, await asyncio.to_thread(self._deciders, request, decision))

    async def _note(self, target: str, *, allowed: bool, call_digest: str | None = None) -> None:
        """Make durable whether a connection may be made, and by which grant if one was needed."""
        by = {"call_digest": call_digest} if call_digest is not None else {}
        self._before()
        self._trail.step("access", {"action": "network", "target": target, "allowed": allowed, **by})
        await self._trail.commit()

    async def _reach(self, wanted: Endpoint) -> int:
        """Look a target up, judge what is behind it, and dial that; durable with what comes next."""
        patience = min(connecting.PATIENCE_S, self._plan.limits.wall_time or connecting.PATIENCE_S)
        addresses: list[str] = []
        outcome = "unknown"
        try:
            places = await connecting.look_up(
                wanted, opens=self._opens, denies=self._denies, patience=patience
            )
            addresses = connecting.spelled(places)
            descriptor = await connecting.reach(wanted, places, patience=patience)
            outcome = "connected"
        except OSError as problem:
            outcome = type(problem).__name__
            raise
        finally:
            body = {"action": "network", "target": str(wanted), "addresses": addresses, "outcome": outcome}
            self._trail.step("access", body, phase="after")
        return descriptor

    def _opens(self, address: Endpoint) -> bool:
        return self._plan.opened.opens("network", str(address)) or str(address) in self._granted

    def _denies(self, address: Endpoint) -> bool:
        stack = self._prepared.stack
        parts: tuple[PolicyDocument | Rule, ...] = (*stack.documents, *stack.hits)
        return any(denies_address(entry, address) for part in parts for entry in part.deny)
