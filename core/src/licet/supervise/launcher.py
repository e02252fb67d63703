"""Keeps keepers between runs, so that a run need not start two interpreters, nor fork the one it starts.

Rules this module keeps:

- what is kept has seen no code and hands nothing from one run to the next: the code gets an interpreter that
  was started for it, with its own environment, hash seed and address space;
- a keeper serves the interpreter and the environment that it was started with, and no other;
- it is used again only after its run ended by itself with no descendant left, and only while it is what a
  child of this process would be that was started now;
- no keeper outlives `close`, this process, or an idle time.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref

from licet.supervise.birth import Birth
from licet.supervise.keeper import Keeper

IDLE = 10.0
"""How many seconds a keeper waits for its next run."""

MOST = 4
"""How many keepers wait at once, at most."""


class Launcher:
    """Makes the start of runs cheaper from the second one on; give it to `run`, from any thread.

    What a keeper has inherited from this process is compared before each use: user, groups, capabilities,
    seccomp, umask, ignored signals, processors, limits, priority, control groups, namespaces, root. A
    Landlock domain can't be seen from outside: who enters one closes the launchers that were used before.
    Closed, or outside Linux, it keeps nothing, and runs start as without one.
    """

    def __init__(self, idle: float = IDLE) -> None:
        self.idle = idle if sys.platform == "linux" else None
        self._reset()

    def _reset(self) -> None:
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._waiting: list[Keeper] = []
        weakref.finalize(self, _dismiss, self._waiting, self._owner)

    def take(self, birth: Birth) -> Keeper | None:
        """Return a keeper that waits and was born so; None if there is none."""
        if self._owner != os.getpid():
            self._disown()
        with self._lock:
            gone = [keeper for keeper in self._waiting if not keeper.is_alive()]
            fits = [keeper for keeper in self._waiting if keeper.birth == birth and keeper not in gone]
            self._waiting[:] = [keeper for keeper in self._waiting if keeper not in (*gone, *fits[-1:])]
        for keeper in gone:
            keeper.forget()
        return fits[-1] if fits else None

    def put(self, keeper: Keeper) -> None:
        """Take a keeper back whose run is over."""
        surplus = [keeper]
        with self._lock:
            if self.idle is not None and self._owner == os.getpid():
                self._waiting.append(keeper)
                surplus = self._waiting[:-MOST]
                del self._waiting[:-MOST]
        _dismiss(surplus, self._owner)

    def close(self) -> None:
        """Dismiss whoever waits, and let nobody wait any more. Again does nothing more."""
        self.idle = None
        with self._lock:
            waiting = self._waiting[:]
            self._waiting.clear()
        _dismiss(waiting, self._owner)

    def _disown(self) -> None:
        """In a fork of the process that used it: these keepers are not ours."""
        for keeper in self._waiting:
            keeper.forget()
        self._reset()


def _dismiss(keepers: list[Keeper], owner: int) -> None:
    if owner == os.getpid():
        for keeper in keepers:
            keeper.dismiss()
