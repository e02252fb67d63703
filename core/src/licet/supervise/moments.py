"""When a run began, by clocks that tell whether a file was changed since.

Rules this module keeps:

- a change of a file is stamped with a clock that ticks every few milliseconds, or with a finer one: once that
  clock has ticked past a moment, no later change carries a stamp that lies before it;
- whoever relies on that lets the clock tick first, and asks at the end whether it was set back meanwhile;
- a stamp is read as the latest moment that it can mean, since some file systems keep no more than seconds.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

SLACK_NS = 1_000_000
"""How far two readings of the clocks may lie apart; a clock that is set back by less changes nothing."""

_COARSE = 5  # CLOCK_REALTIME_COARSE, which `time` has no name for
_STEP_S = 0.0005
_MOST_WAIT_S = 1.0
_READINGS = 5
_CLOSE_NS = 50_000
_GRAINS = (2 * 10**9, *(10**power for power in range(9, 0, -1)))


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment of this host: `wall_ns` since 1970, and by how much that clock is ahead of the one since boot.

    What has to come later than the moment waits with `await_coarse(moment.settled_ns)`.
    """

    wall_ns: int
    ahead_ns: int

    @classmethod
    def now(cls) -> Moment:
        """This moment."""
        _, most = _ahead()
        return cls(time.time_ns(), most)

    @property
    def settled_ns(self) -> int:
        """What the coarse clock has to show before anything may happen that is to count as later."""
        return self.wall_ns + SLACK_NS

    def is_sound(self) -> bool:
        """Whether the clock was not set back since, so that stamps of files tell what came later."""
        least, _ = _ahead()
        return least >= self.ahead_ns - SLACK_NS

    def precedes(self, stamp_ns: int) -> bool:
        """Whether what carries this stamp can have happened later."""
        if stamp_ns % 10:  # nearly all of them: kept to the nanosecond
            return stamp_ns > self.wall_ns
        grain = next((one for one in _GRAINS if stamp_ns % one == 0), 1)
        return stamp_ns + grain - 1 > self.wall_ns


def coarse_now() -> int:
    """What the kernel stamps a change with at least, in nanoseconds since 1970."""
    return time.clock_gettime_ns(_COARSE)


def await_coarse(until_ns: int) -> None:
    """Wait until the coarse clock shows that much: a few milliseconds, or a second if it is set back."""
    end = time.monotonic() + _MOST_WAIT_S
    while coarse_now() < until_ns and time.monotonic() < end:
        time.sleep(_STEP_S)


def _ahead() -> tuple[int, int]:
    """How far the clock of the wall is ahead of the one since boot: at least, and at most."""
    best = (0, 1 << 63)
    for _ in range(_READINGS):
        before = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        wall = time.time_ns()
        after = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        if after - before < best[1] - best[0]:
            best = (wall - after, wall - before)
        if after - before <= _CLOSE_NS:
            break
    return best
