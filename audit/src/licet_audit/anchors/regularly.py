"""A log that has itself anchored every so often, in a thread of its own.

Rules this module keeps:

- appending never waits: neither for the thread, nor for what it waits for;
- what is shown has to be new: a log that says nothing but that it was anchored is left alone;
- all processes of a log together keep the interval; after a failure it is shorter;
- a process that ends does not wait for a network. Where processes are short, `licet audit anchor` in a timer
  of the system does it instead.
"""

from __future__ import annotations

import logging
import os
import re
import threading
import time
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING

from licet.plugins import Plugins
from licet.record import AuditLog, Entry, Record
from licet.state import StateDirectory, failures

from licet_audit.anchors import anchoring, receipts
from licet_audit.chain import log_record
from licet_audit.segments import lines_from, listing

if TYPE_CHECKING:
    from licet.settings import Settings

_SOON = 300.0  # seconds, unless the interval is shorter
_OWN = ("anchored", "anchor_failed", "sealed")

_NUMBER = re.compile(r"\d{16}\.\d{3}", re.ASCII)

_logger = logging.getLogger("licet.audit")


class AnchoredLog:
    """An `AuditLog` that another one keeps, with a thread beside it that has it anchored."""

    def __init__(self, log: AuditLog, state: StateDirectory, settings: Settings) -> None:
        self._log = log
        self._regular = Regular(log, state, settings)
        weakref.finalize(self, self._regular.ended.set)
        threading.Thread(target=self._regular.run, name="licet-anchor", daemon=True).start()

    async def append(self, entries: Sequence[Entry]) -> tuple[Record, ...]:
        """Append as the log does.

        Raises:
            AuditUnavailable: as for the log.
        """
        return await self._log.append(entries)

    async def close(self) -> None:
        """Have no more anchored, and close the log."""
        self._regular.ended.set()
        await self._log.close()


class Regular:
    """Has a log anchored whenever that is due, until `ended` is set."""

    def __init__(self, log: AuditLog, state: StateDirectory, settings: Settings) -> None:
        assert settings.anchors.every is not None
        self.ended = threading.Event()
        self._log, self._state, self._settings = log, state, settings
        self._every = settings.anchors.every

    def run(self) -> None:
        """Wait and work; a failure is told, and tried again."""
        pause = 0.0
        while not self.ended.wait(pause):
            try:
                pause = self.once()
            except Exception as problem:  # the next one may do, and nobody else would hear of it
                if self.ended.is_set():
                    return
                pause = min(self._every, _SOON)
                _logger.warning("the log can't be anchored: %s", problem)

    def once(self) -> float:
        """Have the log anchored if that is due; return in how many seconds to look again.

        Raises:
            AuditUnavailable: nothing can be signed, kept or recorded.
        """
        soon = min(self._every, _SOON)
        with anchoring.lock(self._state) as held:
            if held is None:
                return soon
            if (wait := _due(held) - time.time()) > 0 and wait <= self._every:
                return wait
            if not has_news(self._state):
                return soon
            _set_due(held, time.time() + soon)
            found = anchoring.anchor(self._state, Plugins(self._settings), self._log)
            for failure in found.failures:
                _logger.warning("`%s` did not see the log: %s", failure.anchor, failure.reason)
            pause = soon if found.failures else self._every
            _set_due(held, time.time() + pause)
            return pause


def has_news(state: StateDirectory) -> bool:
    """Whether there are records that no anchor has seen, besides those about anchors.

    Raises:
        AuditUnavailable: the log can't be read.
    """
    seen = max(receipts.all_of(state), default=0)
    with failures(state.path):
        return any(not _is_own(line) for _, line in lines_from(listing(state), seen))


def _is_own(line: bytes) -> bool:
    try:
        content = log_record(line)
    except ValueError:
        return False
    return content is not None and content["body"].get("event") in _OWN


def _due(held: int) -> float:
    """When it is due, in seconds since the epoch, as the file of the lock says; 0 if it doesn't.

    A time further ahead than the interval says that the clock was set back, and counts for nothing.
    """
    os.lseek(held, 0, os.SEEK_SET)
    text = os.read(held, 32).decode("ascii", "replace")
    return float(text) if _NUMBER.fullmatch(text) else 0.0


def _set_due(held: int, at: float) -> None:
    os.lseek(held, 0, os.SEEK_SET)
    os.write(held, f"{at:020.3f}".encode("ascii"))
