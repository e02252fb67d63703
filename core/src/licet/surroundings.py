"""What code sees of the world when it asks for the time or for randomness.

Rules this module keeps: whoever stands for a host in a test or an attack has real surroundings; those of a
run are made by its host.
"""

from __future__ import annotations

import os
import time
from typing import Protocol


class Surroundings(Protocol):
    """The time and the randomness of a run; asked from any thread, and never waiting."""

    def now(self, asked: str) -> float:
        """The time as the code is to see it, in seconds since the epoch; `asked` names what reads it."""
        ...

    def random_bytes(self, count: int) -> bytes:
        """The next `count` random bytes."""
        ...


class RealSurroundings:
    """The clock and the randomness of this machine."""

    def now(self, asked: str) -> float:
        """The time, in seconds since the epoch."""
        return time.time()

    def random_bytes(self, count: int) -> bytes:
        """Bytes of the system's generator."""
        return os.urandom(count)
