"""The limits that a session gets, and how a limit is told from code that imitates one.

Rules this module keeps:

- every limit that Monty has is set; where the plan states none, a default holds;
- memory and time limits are shortened by a random amount that the code can't learn (exceeding one ends the
  run at once, uncatchable), and Monty's message spells the limit: so `raise MemoryError("memory limit
  exceeded: …")` passes for a limit with odds of one in tens of thousands, for one single try a run;
- time spent in Monty's interpreter counts against `cpu_time`; all time counts against `wall_time`.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from licet.backend import Termination
from licet.request import Limits

if TYPE_CHECKING:
    from pydantic_monty import ResourceLimits

WALL_S = 60.0
MEMORY_BYTES = 128 << 20
RECURSION = 1000
MOST_RECURSION = 10_000  # beyond that the native stack of a worker may overflow, which kills it
ACCESSES = 10_000
SUSPENSIONS = 1_000_000

_MEMORY_JITTER = 1 << 16
_TIME_JITTER_NS = 1_000_000
_HARD_MEMORY = "the worker exceeded its memory limit and was terminated"


@dataclass(frozen=True, slots=True)
class Bounds:
    """What holds for one session: durations in seconds, the interpreter's time in ns, memory in bytes."""

    wall: float
    interpreter_ns: int
    interpreter_cause: Termination
    memory: int
    recursion: int

    def limits(self) -> ResourceLimits:
        """The same in Monty's words."""
        seconds = self.interpreter_ns / 1e9
        return {
            "max_feed_duration_secs": seconds,
            "max_turn_duration_secs": seconds,
            "max_memory": self.memory,
            "max_recursion_depth": self.recursion,
            "max_suspensions": SUSPENSIONS,
            "max_total_sleep_secs": self.wall,
        }

    def cause(self, kind: str, message: str, *, framed: bool) -> Termination | None:
        """Say which limit an exception tells of, None if it is the code's own.

        `framed` says whether it has a traceback, which whatever the code raises has.
        """
        if kind == "MemoryError":
            soft = message.startswith("memory limit exceeded: ") and message.endswith(f" > {self.memory} bytes")
            hard = message == _HARD_MEMORY and not framed
            return Termination.memory_limit if soft or hard else None
        if kind == "TimeoutError" and not framed and message.endswith(f" > {spell(self.interpreter_ns)}"):
            return self.interpreter_cause
        if kind == "RuntimeError" and not framed and message.startswith("suspension limit "):
            return Termination.tool_limit
        return None


def bounds(limits: Limits) -> Bounds:
    """Return what a plan's limits mean for a session."""
    wall = limits.wall_time or WALL_S
    interpreter = min(wall, limits.cpu_time or wall)
    memory = limits.memory or MEMORY_BYTES
    time_ns = round(interpreter * 1e9)
    return Bounds(
        wall=wall,
        interpreter_ns=time_ns - secrets.randbelow(min(_TIME_JITTER_NS, time_ns // 16 + 1)),
        interpreter_cause=Termination.cpu_limit if interpreter < wall else Termination.timeout,
        memory=memory - secrets.randbelow(min(_MEMORY_JITTER, memory // 16 + 1)),
        recursion=min(limits.recursion or RECURSION, MOST_RECURSION),
    )


def spell(nanoseconds: int) -> str:
    """Write a duration as Monty's messages do: `2s`, `1.999999347s`, `199.5ms`."""
    for unit, size in (("s", 10**9), ("ms", 10**6), ("µs", 10**3), ("ns", 1)):
        if nanoseconds >= size:
            whole, rest = divmod(nanoseconds, size)
            fraction = f"{rest:0{len(str(size)) - 1}d}".rstrip("0") if rest else ""
            return f"{whole}.{fraction}{unit}" if fraction else f"{whole}{unit}"
    return "0ns"
