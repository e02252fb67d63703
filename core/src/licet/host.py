"""What a running sandbox may ask of its host, each request checked against the plan and recorded.

Rules this module keeps:

- tool calls are answered by `calls`, each by itself;
- a file access or a connection is checked against what the plan opens, and never creates a grant;
- what a run can make the trail keep is bounded: accesses by number and length, tool calls by their limit;
- a reading of the clock is durable with what is recorded next, and is not waited for;
- output is counted whole and kept within its limits, from whatever thread it comes;
- what it has counted and heard is plain data at any moment, with which the host of a suspended run goes on.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, Literal

from licet import connecting
from licet.backend import Access, GuestError, Reply, Target, ToolCall
from licet.calls import Scrub, ToolCalls, as_it_is
from licet.decide import Decision
from licet.digests import Digest
from licet.hosts import Endpoint, canonical_host
from licet.output import BoundedSink, Kept, bounded
from licet.paths import PATH_MAX
from licet.plan import ExecutionPlan
from licet.policy import PolicyDocument
from licet.policy.patterns import denies_address
from licet.policy.rule import Rule
from licet.prepare import Deciders, Prepared
from licet.rerun import Recall
from licet.result import ToolCallMade
from licet.surroundings import Readings, RealSurroundings, Surroundings
from licet.trail import Trail
from licet.waiting import Alive, Obstacle, WaitingCall, nobody

MOST_ACCESSES = 1000
"""How many file accesses of one run are recorded one by one; what code asks beyond that is refused."""

MOST_READINGS = 1000
"""How many readings of the clock of one run are recorded; beyond that they are counted."""

_MOST_ASKED = 100  # characters of the name of what reads it


class RunHost:
    """The host of one run; `surroundings` are what its code sees of the world.

    `recall` answers its calls in place of its tools, which are not called then.
    `scrub` takes secrets out of what tools raise. `obstacle` says why nobody can approve a call, or None.
    `past` is the `state` of the host that a suspended run had before.
    """

    def __init__(
        self,
        plan: ExecutionPlan,
        prepared: Prepared,
        trail: Trail,
        digest: Digest,
        deciders: Deciders | None = None,
        surroundings: Surroundings | None = None,
        recall: Recall | None = None,
        scrub: Scrub = as_it_is,
        obstacle: Obstacle = nobody,
        past: Mapping[str, Any] | None = None,
    ) -> None:
        limits = plan.limits
        then = past or _NOTHING
        self._stdout = BoundedSink(limits.stdout or 0, then["stdout"])
        self._stderr = BoundedSink(limits.stderr or 0, then["stderr"])
        self.accesses: int = then["accesses"]
        self._plan = plan
        self._prepared = prepared
        self._surroundings: Surroundings = surroundings or RealSurroundings()
        self._readings = Readings(MOST_READINGS, then["readings"])
        self._calls = ToolCalls(
            plan,
            prepared,
            trail,
            digest,
            deciders,
            scrub=scrub,
            recall=recall,
            before=self._note_readings,
            obstacle=obstacle,
            past=then["calls"],
        )
        self._random_bytes: int = then["random_bytes"]
        self._trail = trail
        self._output_left: int = (limits.output or 0) - self._stdout.total - self._stderr.total
        self._guard = threading.Lock()

    def state(self) -> dict[str, Any]:
        """All that it has counted and heard, as plain data; the trail has all readings by then."""
        self._note_readings()
        stdout, stderr = self._stdout.state(), self._stderr.state()
        with self._guard:
            return {
                "stdout": stdout,
                "stderr": stderr,
                "accesses": self.accesses,
                "readings": self._readings.state(),
                "random_bytes": self._random_bytes,
                "calls": self._calls.state(),
            }

    def write(self, stream: Literal["stdout", "stderr"], data: bytes) -> bool:
        """Keep output; False once the limit `output` is passed."""
        with self._guard:
            self._output_left -= len(data)
            (self._stdout if stream == "stdout" else self._stderr).write(data)
            return self._output_left >= 0

    def now(self, asked: str) -> float:
        """The time as the code is to see it, in seconds since the epoch."""
        value = self._surroundings.now(asked)
        self._readings.note(bounded(asked, _MOST_ASKED), value, stands=self._plan.clock == "frozen")
        return value

    def random_bytes(self, count: int) -> bytes:
        """The next random bytes of this run."""
        with self._guard:
            self._random_bytes += count
        return self._surroundings.random_bytes(count)

    def counts(self) -> dict[str, Any]:
        """How much the code asked for, at its end; what it read of its clock is in the trail then."""
        self._note_readings()
        return {
            "tool_calls": len(self.tool_calls),
            "accesses": self.accesses,
            "surroundings": {
                "clock_readings": self._readings.total,
                "clock_unrecorded": self._readings.unrecorded,
                "random_bytes": self._random_bytes,
            },
        }

    def _note_readings(self) -> None:
        """Put what was read of the clock before what comes next; durable with that."""
        for read in self._readings.drain():
            body = {"action": "clock", "target": read.asked, "allowed": True, "readings": read.times}
            self._trail.step("access", body)

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
        self._note_readings()
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
            self._note_readings()
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
        return await self._calls.call(call)

    async def settle(self, error: GuestError | None = None) -> Reply:
        """Perform and record the call that waited, or refuse it with `error` (see `ToolCalls.settle`)."""
        return await self._calls.settle(error)

    def ask_alive(self, alive: Alive) -> None:
        """Have calls approved while the sandbox waits (see `ToolCalls.ask_alive`)."""
        self._calls.ask_alive(alive)

    async def decide_again(self) -> tuple[WaitingCall, Decision]:
        """The call that waits, and the decision on it as of now (see `ToolCalls.decide_again`)."""
        return await self._calls.decide_again()

    @property
    def asked_about(self) -> tuple[WaitingCall, Decision] | None:
        """The call that waits, and the decision that asks about it."""
        return self._calls.asked_about

    @property
    def waiting(self) -> WaitingCall | None:
        """The call that waits for an approval, if one does."""
        return self._calls.waiting

    @property
    def tool_calls(self) -> list[ToolCallMade]:
        """The calls that were decided, in the order in which they ended."""
        return self._calls.made

    @property
    def why_ended(self) -> str | None:
        """Why a call ended the run, if one did."""
        return self._calls.why_ended


_NOTHING: Mapping[str, Any] = {
    **dict.fromkeys(("stdout", "stderr", "readings", "calls")),
    **dict.fromkeys(("accesses", "random_bytes"), 0),
}
"""The state of a host whose run begins."""
