"""Whether this machine keeps pace: on one that does not, late proves nothing.

Rules this module keeps: what is measured is the share of a processor that a busy thread of this process gets,
which other programs, other threads and a stopped machine all lessen; it costs a twentieth of a processor.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import deque
from types import TracebackType

_GAP_S = 0.1
_WORK_S = 0.005  # longer than what a scheduler grants to whoever has just slept
_PIECE = bytes(1 << 19)
_SLOW = 1.5  # times as long as the work takes undisturbed
_KEPT = 600
_SILENCE_S = 1.0  # without any measure


class Pace:
    """Measures from `__enter__` to `__exit__`, on a thread of its own."""

    def __init__(self) -> None:
        self._measures: deque[tuple[float, float]] = deque(maxlen=_KEPT)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._measure, name="licet-probe-pace", daemon=True)

    def __enter__(self) -> Pace:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()

    def lost_since(self, when: float) -> bool:
        """Whether work took too long at a third of the moments since `when`, on the monotonic clock."""
        slowed = [slow > _SLOW for at, slow in list(self._measures) if at >= when - 2 * _GAP_S]
        if not slowed:
            return time.monotonic() - when > _SILENCE_S
        return 3 * sum(slowed) >= len(slowed)

    def _measure(self) -> None:
        while not self._over.wait(_GAP_S):
            began, start = time.monotonic(), time.thread_time()
            while (worked := time.thread_time() - start) < _WORK_S:
                hashlib.sha256(_PIECE).digest()  # during which other threads of this process go on
            ended = time.monotonic()
            self._measures.append((ended, (ended - began) / worked))
