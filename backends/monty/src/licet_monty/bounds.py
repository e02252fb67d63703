"""The limits that a session gets, and how a limit is told from code that imitates one.

Rules this module keeps:

- every limit that Monty has is set; where the plan states none, a default holds;
- what the code raises has a traceback, what Monty raises at a time limit has none: so `raise TimeoutError`
  never passes for a limit;
- what Monty raises at a limit of memory or suspensions has one, but its message spells the limit, which was
  changed by a random amount that code can't learn (exceeding it ends the run at once, uncatchable): so code
  that says Monty's words passes for a limit with odds of one in tens of thousands, at one single try a run;
- `wall_time` counts all time; `cpu_time` counts processor time of the worker where the kernel tells that of
  another process (Linux), elsewhere the time in which the interpreter runs.
"""

from __future__ import annotations

import secrets
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from licet.backend import Termination
from licet.request import Limits

if TYPE_CHECKING:
    from pydantic_monty import ResourceLimits

CPU_CLOCK = sys.platform == "linux"
"""Whether the processor time of a worker can be read."""

WALL_S = 60.0
MEMORY_BYTES = 128 << 20
RECURSION = 1000
MOST_RECURSION = 10_000  # beyond that the native stack of a worker may overflow, which kills it
ACCESSES = 10_000
SUSPENSIONS = 1_000_000

_JITTER_BITS = 16
SHORTEST_S = 0.001  # Monty counts in milliseconds, and takes less for none at all
_TIME = ("feed time limit exceeded: ", "turn time limit exceeded: ")
_MEMORY = "memory limit exceeded: "
_HARD_MEMORY = "the worker exceeded its memory limit and was terminated"


@dataclass(frozen=True, slots=True)
class Bounds:
    """What holds for one session: durations in seconds, memory in bytes.

    `cpu` is None where `wall` is reached first anyway. `interpreter` is the limit of Monty's own clock.
    """

    wall: float
    cpu: float | None
    interpreter: float
    interpreter_cause: Termination
    memory: int
    recursion: int
    suspensions: int

    def limits(self) -> ResourceLimits:
        """The same in Monty's words."""
        return {
            "max_feed_duration_secs": self.interpreter,
            "max_turn_duration_secs": self.interpreter,
            "max_memory": self.memory,
            "max_recursion_depth": self.recursion,
            "max_suspensions": self.suspensions,
            "max_total_sleep_secs": self.wall,
        }

    def cause(self, kind: str, message: str, *, framed: bool) -> Termination | None:
        """Say which limit an exception tells of, None if it is the code's own; `framed`: has a traceback."""
        if kind == "MemoryError":
            soft = message.startswith("memory limit exceeded: ") and message.endswith(
                f" > {self.memory} bytes"
            )
            hard = message == _HARD_MEMORY and not framed
            return Termination.memory_limit if soft or hard else None
        if kind == "RuntimeError" and message == f"suspension limit {self.suspensions} exceeded":
            return Termination.tool_limit
        if framed:
            return None
        if kind == "TimeoutError" and message.startswith(_TIME):
            return self.interpreter_cause
        return None


def bounds(limits: Limits) -> Bounds:
    """Return what a plan's limits mean for a session."""
    wall = limits.wall_time or WALL_S
    cpu = limits.cpu_time if limits.cpu_time is not None and limits.cpu_time < wall else None
    watched = cpu is None or CPU_CLOCK
    memory = limits.memory or MEMORY_BYTES
    return Bounds(
        wall=wall,
        cpu=cpu,
        interpreter=max(wall if watched else cpu or wall, SHORTEST_S),
        interpreter_cause=Termination.timeout if watched else Termination.cpu_limit,
        memory=memory - secrets.randbits(_JITTER_BITS) % (memory // 16 + 1),
        recursion=min(limits.recursion or RECURSION, MOST_RECURSION),
        suspensions=SUSPENSIONS + secrets.randbits(_JITTER_BITS),
    )
