"""Whether the next write to a disk may be waited for where it would hold up others.

Rules this module keeps: one slow write is enough to be careful, and only a row of quick ones, the last of
them just now, ends that; so a disk that hangs holds up an event loop once and not again.
"""

from __future__ import annotations

import time
from collections.abc import Callable

QUICK = 0.005  # seconds; a twentieth of what asyncio calls slow, and many times what a quick disk takes
ROW = 8  # quick writes in a row that make the next one likely quick; slow ones come in spells
FRESH = 10.0  # seconds that they say something


class Pace:
    """What the last writes to one disk took; `clock` counts seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._row = 0
        self._last = 0.0

    def wrote(self, seconds: float) -> None:
        """Note that a write, with its sync, ended just now and took so long."""
        self._row = self._row + 1 if seconds < QUICK else 0
        self._last = self._clock()

    @property
    def quick(self) -> bool:
        """Whether the next write is likely as quick as the last ones."""
        return self._row >= ROW and self._clock() - self._last < FRESH
