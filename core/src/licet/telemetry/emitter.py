"""One thread that talks to OpenTelemetry, so that no run ever does.

Rules this module keeps:

- what a processor, sampler or exporter raises ends here, is logged once, and reaches nobody;
- a run waits for a span's ids only, and only as long as `_PATIENCE_S`, which shrinks with every time that it
  was in vain; all else is put in a queue that forgets what it has no room for, and counts it;
- a forked child has no thread and no queue of its parent's; it starts anew.
"""

from __future__ import annotations

import atexit
import logging
import os
import queue
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
Work = Callable[[], object]

_PATIENCE_S = 0.05
_LEAST_PATIENCE_S = 0.001
_AT_EXIT_S = 2.0
MOST_WAITING = 10_000
"""How much work waits at most for a processor that is slow."""

_log = logging.getLogger("licet")


class Emitter:
    """Does work in its order on a thread of its own."""

    def __init__(self, most: int = MOST_WAITING) -> None:
        self.dropped = 0
        self._most = most
        self._waiting: queue.SimpleQueue[Work] = queue.SimpleQueue()
        self._patience = _PATIENCE_S
        self._started = False
        self._guard = threading.Lock()
        self._complained: set[str] = set()

    def do(self, work: Work) -> bool:
        """Have `work` done soon; False if there is no room for it, and it is forgotten."""
        if self._waiting.qsize() >= self._most:
            self.dropped += 1
            return False
        self._waiting.put(work)
        if not self._started:
            self._start()
        return True

    def ask(self, work: Callable[[], T]) -> T | None:
        """What `work` answers, None if it fails or takes too long; it is done in any case."""
        answers: list[T] = []
        answered = threading.Lock()  # the cheapest thing that one thread can wait for another by
        answered.acquire()

        def answer() -> None:
            try:
                answers.append(work())
            finally:
                answered.release()

        if not self.do(answer) or not answered.acquire(timeout=self._patience):
            self._patience = max(self._patience / 2, _LEAST_PATIENCE_S)
            return None
        self._patience = _PATIENCE_S
        return answers[0] if answers else None

    def settle(self, seconds: float) -> bool:
        """Wait until all that was put in before is done; False if it took longer than `seconds`."""
        if not self._started:
            return True
        done = threading.Event()
        return self.do(done.set) and done.wait(seconds)

    def _start(self) -> None:
        with self._guard:
            if not self._started:
                threading.Thread(target=self._work, name="licet-telemetry", daemon=True).start()
                self._started = True

    def _work(self) -> None:
        while True:
            self.attempt(self._waiting.get())

    def attempt(self, work: Work) -> None:
        """Do `work` here, on the emitter's thread; what it raises ends here."""
        try:
            work()
        except BaseException as problem:  # a stranger's code; this thread is there to end it
            self._complain(problem)

    def _complain(self, problem: BaseException) -> None:
        kind = type(problem).__name__
        if kind not in self._complained and len(self._complained) < 100:
            self._complained.add(kind)
            _log.warning(
                "OpenTelemetry failed (%s: %s): spans may be missing, records are not", kind, problem
            )


_emitter = Emitter()


def emitter() -> Emitter:
    """The one of this process."""
    return _emitter


def settle(seconds: float) -> bool:
    """Wait until what runs have given so far is with OpenTelemetry, for `seconds` at most."""
    return _emitter.settle(seconds)


def _anew() -> None:
    global _emitter
    _emitter = Emitter()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_anew)
atexit.register(lambda: settle(_AT_EXIT_S))
