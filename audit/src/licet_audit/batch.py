"""Appends that share a write: what to write, and where their answers are awaited.

Rules this module keeps:

- whoever claims a batch answers it, or lets others do so while it waits; only one ever does: the one who
  writes it, or the one who gives up waiting for that;
- answers reach a loop in its own thread; a loop that has ended awaits none.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from licet.errors import AuditUnavailable
from licet.record import Entry, Kept, Record

Answer = tuple[Record, ...] | AuditUnavailable


class Call(NamedTuple):
    """One append, and the future that its caller awaits."""

    entries: tuple[Entry, ...]
    future: asyncio.Future[tuple[Record, ...]]

    def settle(self, answer: Answer) -> None:
        """Give the caller its answer, in the thread of its loop."""
        if self.future.done():
            return  # it was cancelled; what it appended stays
        if isinstance(answer, AuditUnavailable):
            self.future.set_exception(answer)
        else:
            self.future.set_result(answer)


class Batch:
    """The appends of one loop that are written together, in order."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.calls: list[Call] = []
        self.size = 0  # entries
        self.keeps = False  # some of them keep content
        self.timer: asyncio.TimerHandle | None = None
        self._unclaimed = threading.Lock()

    def add(self, entries: Sequence[Entry]) -> asyncio.Future[tuple[Record, ...]]:
        """One more append, from a task of the loop; return what it awaits."""
        call = Call(tuple(entries), self.loop.create_future())
        self.calls.append(call)
        self.size += len(call.entries)
        self.keeps = self.keeps or any(entry.kept for entry in call.entries)
        return call.future

    def groups(self) -> Iterator[Sequence[Entry]]:
        """The entries of each append."""
        return (call.entries for call in self.calls)

    def kept(self) -> list[Kept]:
        """All content that its entries keep."""
        return [kept for call in self.calls for entry in call.entries for kept in entry.kept]

    def claim(self) -> bool:
        """Take it upon oneself to answer; False if somebody has."""
        return self._unclaimed.acquire(blocking=False)

    def unclaim(self) -> None:
        """Let others answer meanwhile: who claimed it has to wait for something."""
        self._unclaimed.release()

    def settle(self, answers: Sequence[Answer]) -> None:
        """Answer each call, in the thread of the loop."""
        if self.timer is not None:
            self.timer.cancel()
        for call, answer in zip(self.calls, answers, strict=True):
            call.settle(answer)

    def refusals(self, problem: AuditUnavailable) -> list[Answer]:
        """The same failure as the answer to each call, as an error of its own."""
        return [AuditUnavailable(problem.message, advice=problem.advice) for _ in self.calls]

    def answer(self, answers: Sequence[Answer]) -> None:
        """`settle`, from another thread."""
        with contextlib.suppress(RuntimeError):  # that loop has ended, and with it whoever waited
            self.loop.call_soon_threadsafe(self.settle, answers)


class Claims:
    """Batches that are written together, and which of them their writer has to answer."""

    def __init__(self, batches: Sequence[Batch]) -> None:
        self._batches = batches
        self._held: list[Batch] = []

    def take(self) -> list[Batch]:
        """Claim all that nobody has answered; all that are claimed now."""
        self._held += [batch for batch in self._batches if batch.claim()]
        return list(self._held)

    def give(self) -> None:
        """Let others answer meanwhile, as they do who gave up waiting."""
        for batch in self._held:
            batch.unclaim()
        self._held = []
