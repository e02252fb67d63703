"""Has keepers wait for the next run, so that it need not start a process of its own for its supervision.

Rules this module keeps:

- what waits has seen no code, and was started with an empty environment: the code gets an interpreter that
  is started for it, with its own environment, hash seed and address space;
- a keeper waits only after its run ended by itself with no descendant left, only if the code could not reach
  it, and is used only while it is what a child of this process would be that was started now;
- runs of different `Spec.sharing` never get the same keeper;
- no keeper outlives `close`, this process, or an idle time; none is started to wait before a second run.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref

from licet.supervise.inheritance import inheritance
from licet.supervise.keeper import Ends, Keeper
from licet.supervise.spec import Spec

IDLE = 10.0
"""How many seconds a keeper waits for its next run."""

MOST = 4
"""How many keepers last at once, busy or waiting."""


class Launcher:
    """Makes the start of runs cheaper from the third one on; give it to `run`, from any thread.

    What a keeper has inherited from this process is compared before each use, see `inheritance`. A Landlock
    domain can't be seen: who enters one closes the launchers that were used before. Closed, or outside Linux,
    it does nothing, and runs start as without one.
    """

    def __init__(self, idle: float = IDLE) -> None:
        self._idle = idle
        self._closed = sys.platform != "linux"
        self._begin()

    def _begin(self) -> None:
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._used = float("-inf")
        self._lasting: dict[Keeper, tuple[object, str]] = {}
        self._waiting: list[Keeper] = []
        weakref.finalize(self, _dismiss, self._waiting, self._owner)

    def find(self, ends: Ends, spec: Spec) -> Keeper | None:
        """Return a keeper that was given `ends`; None if the run has to start one of its own.

        Only runs of equal `Spec.sharing` get the same keeper.
        """
        sharing = spec.sharing
        if self._owner != os.getpid():
            self._disown()
        lately = time.monotonic() - self._used < self._idle
        if self._closed or not (lately or self._waiting):
            return None
        inherited = inheritance()
        while (keeper := self._pick(inherited, sharing)) is not None:
            if keeper.ask(ends):
                return keeper
            self.part(keeper, well=False)
        return self._start(ends, inherited, sharing)

    def _pick(self, inherited: object, sharing: str) -> Keeper | None:
        """Return who waited last; send away who can't be used."""
        with self._lock:
            unfit = [one for one in self._waiting if self._lasting[one][0] != inherited or not one.is_alive()]
            self._waiting[:] = [one for one in self._waiting if one not in unfit]
            fit = [one for one in self._waiting if self._lasting[one][1] == sharing]
            picked = fit[-1] if fit else None
            if picked is not None:
                self._waiting.remove(picked)
            for one in unfit:
                del self._lasting[one]
        _dismiss(unfit, self._owner)
        return picked

    def _start(self, ends: Ends, inherited: object, sharing: str) -> Keeper | None:
        """Start a keeper that lasts, if there is room for one."""
        with self._lock:
            if len(self._lasting) >= MOST:
                return None
            try:
                keeper = Keeper(sys.executable, {}, ends, self._idle)
            except OSError:
                return None
            self._lasting[keeper] = inherited, sharing
        return keeper

    def part(self, keeper: Keeper, /, *, well: bool) -> None:
        """Take leave of a keeper whose run is over; one that lasts waits for another if it ended `well`."""
        self._used = time.monotonic()
        with self._lock:
            stays = well and not self._closed and keeper in self._lasting
            if stays:
                self._waiting.append(keeper)
            else:
                self._lasting.pop(keeper, None)
        if not stays:
            keeper.dismiss()

    def close(self) -> None:
        """Dismiss whoever waits, and let nobody wait any more. Again does nothing more."""
        self._closed = True
        with self._lock:
            waiting = self._waiting[:]
            self._waiting.clear()
        _dismiss(waiting, self._owner)

    def _disown(self) -> None:
        """In a fork of the process that used it: these keepers are not ours."""
        for keeper in self._waiting:
            keeper.forget()
        self._begin()


def _dismiss(keepers: list[Keeper], owner: int) -> None:
    if owner == os.getpid():
        for keeper in keepers:
            keeper.dismiss()
