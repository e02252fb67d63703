"""What a running sandbox may ask of its host, each request checked against the plan and recorded.

Rules this module keeps:

- tool calls are answered by `calls`, each by itself, connections are made by `connections`;
- a file access is checked against what the plan opens, and never creates a grant;
- what a run can make the trail keep is bounded: accesses by number and length, tool calls by their limit;
- a reading of the clock is durable with what is recorded next, and is not waited for;
- output is counted whole and kept within its limits, from whatever thread it comes;
- what it has counted and heard is plain data at any moment, with which the host of a suspended run goes on.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Literal

from licet.backend import Access, GuestError, Reply, Target, ToolCall
from licet.calls import Scrub, ToolCalls, as_it_is
from licet.connections import Connections
from licet.decide import Decision
from licet.digests import Digest
from licet.output import BoundedSink, Kept, bounded
from licet.paths import PATH_MAX
from licet.plan import ExecutionPlan
from licet.prepare import Deciders, Prepared
from licet.rerun import Recall
from licet.result import ToolCallMade
from licet.surroundings import Readings, RealSurroundings, Surroundings
from licet.trail import Trail
from licet.waiting import Alive, Obstacle, WaitingCall, Waits, nobody

MOST_ACCESSES = 1000
"""How many file accesses of one run are recorded one by one; what code asks beyond that is refused."""

MOST_READINGS = 1000
"""How many readings of the clock of one run are recorded; beyond that they are counted."""

_MOST_ASKED = 100  # characters of the name of what reads it


class RunHost:
    """The host of one run; `surroundings` are what its code sees of the world.

    `recall` answers its calls in place of its tools, which are not called then.
    `scrub` takes secrets out of what tools raise. `obstacle` says why nobody can approve something, or None.
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
        self._surroundings: Surroundings = surroundings or RealSurroundings()
        self._readings = Readings(MOST_READINGS, then["readings"])
        waiting = then["waiting"]
        self._waits = Waits(obstacle, WaitingCall(**waiting) if waiting else None)
        self._calls = ToolCalls(
            plan,
            prepared,
            trail,
            digest,
            deciders,
            scrub=scrub,
            recall=recall,
            before=self._note_readings,
            waits=self._waits,
            past=then["calls"],
        )
        self._connections = Connections(
            plan,
            prepared,
            trail,
            digest,
            deciders,
            before=self._note_readings,
            waits=self._waits,
            past=then["connections"],
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
                "waiting": asdict(self._waits.call) if self._waits.call is not None else None,
                "calls": self._calls.state(),
                "connections": self._connections.state(),
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
            "accesses": self.accesses + self._connections.sequence,
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
        """Connect to a target that the plan opens, or that is approved when this asks (see `Connections`).

        Raises:
            PermissionError: policy or an approver refuses the target, or an address behind it.
            OSError: it can't be resolved or reached.
        """
        return await self._connections.connect(target)

    async def call(self, call: ToolCall) -> Reply:
        """Decide, record, perform and record one tool call."""
        return await self._calls.call(call)

    async def settle(self, error: GuestError | None = None) -> Reply:
        """Do what waited, or refuse it with `error`.

        Raises:
            AuditUnavailable: what came of it could not be recorded.
            ValueError: nothing waits, or it can't be done any more.
        """
        if (waiting := self._waits.settled()) is None:
            raise ValueError("no call waits")
        return await self._answering(waiting).settle(waiting, error)

    def ask_alive(self, alive: Alive, *, lasting: bool) -> None:
        """Have things approved while the sandbox waits (see `Waits.ask_alive`)."""
        self._waits.ask_alive(alive, lasting=lasting)

    async def decide_again(self) -> tuple[WaitingCall, Decision]:
        """What waits, and the decision on it as of now.

        Raises:
            ValueError: nothing waits, or it can't be done any more.
        """
        if (waiting := self._waits.call) is None:
            raise ValueError("no call waits")
        return waiting, await self._answering(waiting).decide_again(waiting)

    def _answering(self, waiting: WaitingCall) -> ToolCalls | Connections:
        return self._calls if waiting.kind == "tool" else self._connections

    @property
    def asked_about(self) -> tuple[WaitingCall, Decision] | None:
        """What waits and why, if this process decided it."""
        waits = self._waits
        return (waits.call, waits.asked) if waits.call is not None and waits.asked is not None else None

    @property
    def waiting(self) -> WaitingCall | None:
        """What waits for an approval, if something does."""
        return self._waits.call

    @property
    def tool_calls(self) -> list[ToolCallMade]:
        """The calls that were decided, in the order in which they ended."""
        return self._calls.made

    @property
    def why_ended(self) -> str | None:
        """Why a call ended the run, if one did."""
        return self._calls.why_ended


_NOTHING: Mapping[str, Any] = {
    **dict.fromkeys(("stdout", "stderr", "readings", "waiting", "calls", "connections")),
    **dict.fromkeys(("accesses", "random_bytes"), 0),
}
"""The state of a host whose run begins."""
