"""What code sees of the world when it asks for the time or for randomness.

Rules this module keeps:

- whoever stands for a host in a test or an attack has real surroundings; those of a run are made by its host;
- the random bytes of a run are a stream that its key alone determines, so that they can be had again without
  being recorded;
- the stream is SHAKE-256 over key and counter: a standard function with a secret prefix, which is a
  pseudorandom function as it stands (a sponge has no length extension), read block by block.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Clock = Literal["real", "frozen"]
Randomness = Literal["real", "seeded"]

_BLOCK = 8 * 136  # bytes; SHAKE-256 makes 136 at a time


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


class ByteStream:
    """The bytes that follow from `key`, in order, however they are asked for; `taken` of them were before."""

    def __init__(self, key: bytes, taken: int = 0) -> None:
        self._key = key
        self._counter, within = divmod(taken, _BLOCK)
        self._left = self._block()[within:] if within else b""
        self._guard = threading.Lock()

    def take(self, count: int) -> bytes:
        """The next `count` bytes."""
        with self._guard:
            parts = [self._left]
            missing = count - len(self._left)
            while missing > 0:
                parts.append(self._block())
                missing -= _BLOCK
            ready = b"".join(parts)
            self._left = ready[count:]
            return ready[:count]

    def _block(self) -> bytes:
        counter, self._counter = self._counter, self._counter + 1
        return hashlib.shake_256(self._key + counter.to_bytes(8, "big")).digest(_BLOCK)


class RunSurroundings:
    """Those of one run: a clock that goes on, or stands at `frozen_at`, and the stream of a key.

    A clock that goes on is never set back: it begins as that of the machine, and goes by its monotonic one.
    Of a run that goes on elsewhere, `taken` bytes were drawn before, and its clock showed `reached` last.
    """

    def __init__(
        self, key: bytes, frozen_at: float | None = None, *, taken: int = 0, reached: float = 0.0
    ) -> None:
        self._stream = ByteStream(key, taken)
        self._frozen_at = frozen_at
        self._began = max(time.time(), reached) - time.monotonic()

    def now(self, asked: str) -> float:
        """The time, in seconds since the epoch."""
        return self._began + time.monotonic() if self._frozen_at is None else self._frozen_at

    def random_bytes(self, count: int) -> bytes:
        """The next bytes of the stream."""
        return self._stream.take(count)


@dataclass(frozen=True, slots=True)
class Read:
    """Readings of the clock by one function, one after the other, in seconds since the epoch."""

    asked: str
    times: tuple[float, ...]


class Readings:
    """What code has read of its clock and not yet been recorded of it; from any thread.

    At most `most` readings of a run are kept, and none of a clock that stands; all are counted. `latest` is
    what the clock showed last. `past` is the `state` of those of a run that goes on here.
    """

    def __init__(self, most: int, past: Mapping[str, Any] | None = None) -> None:
        self.total: int = past["total"] if past else 0
        self.unrecorded: int = past["unrecorded"] if past else 0
        self.latest: float = past["latest"] if past else 0.0
        self._left: int = past["left"] if past else most
        self._kept: list[tuple[str, float]] = []
        self._guard = threading.Lock()

    def note(self, asked: str, value: float, *, stands: bool) -> None:
        """Take in one reading."""
        with self._guard:
            self.total += 1
            self.latest = max(self.latest, value)
            if stands:
                return
            if self._left:
                self._left -= 1
                self._kept.append((asked, value))
            else:
                self.unrecorded += 1

    def state(self) -> dict[str, Any]:
        """What it has counted, as plain data; what was not handed out yet is not in it."""
        with self._guard:
            counted = {"total": self.total, "unrecorded": self.unrecorded}
            return {**counted, "latest": self.latest, "left": self._left}

    def drain(self) -> list[Read]:
        """Hand out what was not handed out before, in order."""
        if not self._kept:  # what comes meanwhile comes with the next
            return []
        with self._guard:
            kept, self._kept = self._kept, []
        found: list[tuple[str, list[float]]] = []
        for asked, value in kept:
            if not found or found[-1][0] != asked:
                found.append((asked, []))
            found[-1][1].append(value)
        return [Read(asked, tuple(times)) for asked, times in found]
