"""A recorded run as a new run meets it again: its clock, its random bytes, and what its tools answered.

Rules this module keeps:

- no tool is called: what a call returned or raised is taken from the record, by the number of the call;
- nothing is opened by which code could change anything outside: an effect is not repeated;
- a call is the recorded one if its number, its tool and its arguments are, and the decision on it; the first
  that is not ends the run, and says what differs;
- calls that run side by side end in the order in which they ended then, since code may go by it;
- a clock that is read in another way than the record says does not end the run, since nothing waits for a
  clock: it is noted, and shows the last time that it showed.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from licet.backend import Reply, Termination
from licet.decide import Decision
from licet.digests import HostDigest, of_call
from licet.errors import UsageError
from licet.plan import ExecutionPlan
from licet.policy.patterns import Effect
from licet.policy.stack import PolicyStack
from licet.prepare import Prepared
from licet.request import FieldDigests
from licet.result import CallOutcome
from licet.surroundings import ByteStream, Clock, Randomness, RunSurroundings, Surroundings


@dataclass(frozen=True, slots=True)
class PastCall:
    """One recorded call of a tool: what it was answered, and in which words its record says so.

    `before` is the number of the call that ended right before this one; None if none did.
    """

    tool: str
    digest: str
    effect: Effect
    outcome: CallOutcome
    reply: Reply = field(repr=False)
    before: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Past:
    """What a log has kept of a run that it takes to run it again.

    `readings` are those of its clock in order, each with what read it, `calls` those of its tools by number,
    `refusals` what the code was told where it could not make one; None if that was not kept.
    `at` is the instant of its request, in seconds since the epoch.
    """

    run_id: str
    backend: str
    plan_digest: str
    digests: Mapping[str, str]
    at: float
    clock: Clock = "real"
    random: Randomness = "real"
    readings: Sequence[tuple[str, float]] = ()
    calls: Mapping[int, PastCall] = field(default_factory=dict)
    refusals: Mapping[int, Reply | None] = field(default_factory=dict)


class Recall(Protocol):
    """What answers the calls of a run in place of its tools."""

    async def answer(
        self, sequence: int, tool: str, arguments: str, decision: Decision
    ) -> tuple[Reply, CallOutcome]:
        """The reply to a call, and its outcome, when it is due; `arguments` are JSON."""
        ...

    def refused(self, sequence: int, tool: str) -> None:
        """Hear of a call that can't be made."""
        ...


class Rerun:
    """One new run of a recorded one; `differences` says in order what was not as recorded while it ran.

    `digests` are those of its own request, made with `digest`.
    """

    def __init__(self, past: Past, digest: HostDigest) -> None:
        self.past = past
        self.differences: list[str] = []
        self.digest = digest
        self.digests: Mapping[str, str] = {}
        self._stream = ByteStream(stream_key(digest, past.random, past.run_id, past.plan_digest))
        self._read = 0
        self._over: dict[int, asyncio.Event] = {}
        self._guard = threading.Lock()

    def check(self, digests: FieldDigests) -> None:
        """Refuse another request than the recorded one.

        Raises:
            UsageError: its code, standard input or inputs are not those that were recorded.
        """
        self.digests = given = digests.as_json()
        for name, called in _CALLED.items():
            if self.past.digests.get(name) != given[name]:
                raise UsageError(
                    f"this is not the {called} of the run `{self.past.run_id}`: their digests differ",
                    advice=f"give the {called} as it was, on the host that recorded the run",
                )

    @staticmethod
    def without_effects(prepared: Prepared) -> Prepared:
        """The same decision, with nothing opened by which code could change anything outside.

        The selection has to be made again from it.
        """
        opened = replace(
            prepared.decision.opened,
            write=(),
            write_masked=(),
            network=(),
            network_masked=(),
            network_asked=(),
            shell=False,
        )
        return replace(prepared, decision=replace(prepared.decision, opened=opened))

    def now(self, asked: str) -> float:
        """The next recorded time; or the last one, where the record has no such reading."""
        past = self.past
        if past.clock == "frozen":
            return past.at
        with self._guard:
            number, self._read = self._read, self._read + 1
            there = past.readings[number] if number < len(past.readings) else None
            if there is not None and there[0] == asked:
                return there[1]
            was = f"`{there[0]}` did then" if there is not None else "nothing did then"
            self._note(f"reading {number + 1} of the clock: `{asked}` reads it, and {was}")
            if there is not None:
                return there[1]
            return past.readings[-1][1] if past.readings else past.at

    def random_bytes(self, count: int) -> bytes:
        """The same bytes as then, from where they came from."""
        return self._stream.take(count)

    async def answer(
        self, sequence: int, tool: str, arguments: str, decision: Decision
    ) -> tuple[Reply, CallOutcome]:
        """What the recorded call of this number was answered; ends the run if this is another call."""
        if (refusal := self.past.refusals.get(sequence)) is not None:
            return refusal, "refused"
        past = self.past.calls.get(sequence)
        why = self._difference(past, sequence, tool, arguments)
        ending = Termination.cancelled
        if past is not None and why is None:
            if past.effect == decision.effect:
                await self._due(sequence, past)
                return past.reply, past.outcome
            why = f"`{tool}` was {_DECIDED[past.effect]} then, and is {_DECIDED[decision.effect]} now"
            ending = ending if decision.effect == "allow" else Termination.policy_denied
        self._note(f"call {sequence}: {why}")
        return Reply(fatal=ending), "differs"

    def refused(self, sequence: int, tool: str) -> None:
        """Note where a call can't be made that could be made then."""
        if sequence not in self.past.refusals:
            self._note(f"call {sequence}: the arguments of `{tool}` don't fit, and they did then")

    def ended(self, calls: int) -> None:
        """Note what was recorded and did not happen again; `calls` is how many calls were made."""
        left = len(self.past.readings) - self._read
        if self.past.clock == "real" and left > 0:
            self._note(f"the clock was read {self._read} times, and {len(self.past.readings)} times then")
        if calls < len(self.past.calls):
            self._note(f"{calls} calls of tools were made, and {len(self.past.calls)} then")

    async def _due(self, sequence: int, past: PastCall) -> None:
        """Wait for the call that ended right before this one then."""
        if past.before is not None and not self._end_of(past.before).is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._end_of(past.before).wait(), _PATIENCE_S)
            if not self._end_of(past.before).is_set():
                self._note(f"call {sequence}: it ended after call {past.before} then, and that is not over")
        self._end_of(sequence).set()

    def _end_of(self, sequence: int) -> asyncio.Event:
        return self._over.setdefault(sequence, asyncio.Event())

    def _difference(self, past: PastCall | None, sequence: int, tool: str, arguments: str) -> str | None:
        if past is None and sequence in self.past.refusals:
            return f"`{tool}` is called, and its arguments did not fit then"
        if past is None:
            return f"`{tool}` is called, and the recorded run has no such call"
        if past.tool != tool:
            return f"`{tool}` is called, and it was `{past.tool}` then"
        if of_call(self.digest, self.past.plan_digest, sequence, tool, arguments) != past.digest:
            return f"`{tool}` is called with other arguments than then"
        return None

    def _note(self, what: str) -> None:
        if len(self.differences) < _MOST_DIFFERENCES:
            self.differences.append(what)


def stream_key(digest: HostDigest, random: Randomness, run_id: str, plan_digest: str) -> bytes:
    """The key of the random bytes of a run: its own, or, where they are seeded, that of its plan.

    Raises:
        AuditUnavailable: the host has no key.
    """
    return digest.of_random(random, plan_digest if random == "seeded" else run_id)


def surroundings(
    digest: HostDigest,
    stack: PolicyStack,
    plan: ExecutionPlan,
    at: float,
    *,
    taken: int = 0,
    reached: float = 0.0,
) -> Surroundings:
    """What the code of a run sees of the world under its policy; `at` is the instant of its request.

    `taken` and `reached` are for a run that was suspended (see `RunSurroundings`).

    Raises:
        AuditUnavailable: the host has no key.
    """
    key = stream_key(digest, stack.random, plan.run_id, plan.plan_digest)
    frozen_at = at if stack.clock == "frozen" else None
    return RunSurroundings(key, frozen_at, taken=taken, reached=reached)


_CALLED = {"code": "code", "stdin": "standard input", "inputs": "inputs"}
_DECIDED = {"allow": "allowed", "ask": "to be approved", "deny": "denied"}
_MOST_DIFFERENCES = 100
_PATIENCE_S = 10.0  # for a call that is due before another one, and may not be made at all this time
