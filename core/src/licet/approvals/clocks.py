"""Instants by two clocks, so that a wall clock that is set lengthens nothing.

Rules this module keeps:

- what has passed is the longer of what both clocks say; the second one counts from the start of the system,
  through its sleep, and says nothing across a restart;
- a wall clock that stands before the instant that it is compared with is wrong, and what depends on it has
  expired, unless the system has not been restarted since: then the other clock tells.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from licet.machine import boot

_SINCE_BOOT = getattr(time, "CLOCK_BOOTTIME", None)


@dataclass(frozen=True, slots=True)
class Moment:
    """An instant: `wall` is in seconds since the epoch, `running` in seconds since the start `boot`."""

    wall: float
    running: float
    boot: str | None = None

    def passed_since(self, earlier: Moment) -> float:
        """The seconds since `earlier`; infinite where the wall clock went back over a restart."""
        wall = self.wall - earlier.wall
        if self.boot is not None and self.boot == earlier.boot:
            return max(wall, self.running - earlier.running)
        return wall if wall >= 0 else float("inf")


def now() -> Moment:
    """This instant."""
    running = time.clock_gettime(_SINCE_BOOT) if _SINCE_BOOT is not None else time.monotonic()
    return Moment(time.time(), running, boot())


def age(asked: Moment, seen: Moment, at: Moment) -> float:
    """The seconds from `asked` to `at`, of which those up to `seen` are known to have passed.

    So a wall clock that is set back over a restart gains nothing of the time before `seen`.
    """
    return max(at.passed_since(asked), seen.passed_since(asked) + max(at.passed_since(seen), 0.0))
