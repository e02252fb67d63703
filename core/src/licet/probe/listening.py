"""Hearing what another process says, on a thread; pipes and sockets of every system alike.

Rules this module keeps: the thread owns its descriptor, so that a number given anew is never read by mistake;
it ends when nobody holds the other end any more.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable

_PIECE = 1 << 16


def listen(descriptor: int, take: Callable[[bytes], object], *over: threading.Event) -> None:
    """Hand all that comes from `descriptor` to `take`; the events are set after the last of it."""
    own = os.dup(descriptor)

    def read() -> None:
        try:
            with contextlib.suppress(OSError):
                while data := os.read(own, _PIECE):
                    take(data)
        finally:
            os.close(own)
            for event in over:
                event.set()

    threading.Thread(target=read, name="licet-probe-ear", daemon=True).start()
