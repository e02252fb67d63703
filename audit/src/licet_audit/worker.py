"""One writer of a log, and the thread that writes for it what a loop had better not wait for.

Rules this module keeps:

- a batch is written where it was gathered if that is quick: both locks are free, nothing is queued before it,
  it is small, and the disk was quick of late; everything else is written by the thread;
- whoever has the turn uses the writer, one at a time; what was queued is written before what comes later;
- the thread waits for the locks of the log as long as it takes, and the loops keep the deadline, so that a
  holder that is stopped hangs neither those who append nor `leave`; who gave up while the thread waited for
  others to sync may find its records in the log all the same;
- content is durable before the lock is taken for the record that names it.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import islice

from licet.errors import AuditUnavailable
from licet.state import StateDirectory, unavailable

from licet_audit import contents
from licet_audit.batch import Answer, Batch, Claims
from licet_audit.drafted import Drafted
from licet_audit.locking import Lock, LogLocks
from licet_audit.pace import Pace
from licet_audit.signing import Signing
from licet_audit.writer import ChainWriter

PATIENCE = 30.0  # seconds that others may hold the lock, a long recovery included
_SMALL = 128  # entries that are written in place at most
_MOST = 1024  # batches that share one sync at most

CLOSED = AuditUnavailable("the log is closed", advice="open it again")

_Answered = tuple[Batch, Sequence[Answer]]


class Worker:
    """Writes batches with one `ChainWriter`, which joins the log with the first one."""

    def __init__(self, state: StateDirectory, segment_bytes: int) -> None:
        self._state = state
        self._writer = ChainWriter(state, segment_bytes)
        self._signing = Signing(state)
        self._pace = Pace()
        self._turn = threading.Lock()
        self._queue: queue.SimpleQueue[Batch | None] = queue.SimpleQueue()
        self._count = threading.Lock()  # guards the two that follow
        self._waiting = 0  # batches that are queued or with the thread
        self._leaving = False
        self._locking_since: float | None = None  # the thread waits for the lock of the log
        self._thread = threading.Thread(target=self._work, name="licet-audit", daemon=True)
        self._thread.start()

    def take(self, batch: Batch) -> None:
        """Write a batch, here or in the thread, and answer it; call this in its loop."""
        if not self._write_here(batch):
            self.queue(batch)

    def queue(self, batch: Batch) -> None:
        """Have the thread write a batch; call this in its loop, which keeps the deadline."""
        with self._count:
            closed = self._leaving
            if not closed:
                self._waiting += 1
                self._queue.put(batch)
        if closed:
            batch.settle(batch.refusals(CLOSED))
        else:
            batch.timer = batch.loop.call_later(PATIENCE, self._overdue, batch)

    def leave(self) -> None:
        """Finish what is queued and close; safe to call again, and from any thread.

        A thread that can't get the lock in time is left behind: it finishes when it gets it.
        """
        with self._count:
            if not self._leaving:
                self._leaving = True
                self._queue.put(None)
        if threading.current_thread() in (self._thread, self._signing.thread):
            return  # what was forgotten is collected in any thread, and these two can't wait for themselves
        while self._thread.is_alive():
            left = self._patience_left()
            if left <= 0:
                return
            self._thread.join(left)

    def abandon(self) -> None:
        """Drop all that a forked child inherited; its parent goes on with it."""
        self._writer.abandon()

    def _write_here(self, batch: Batch) -> bool:
        """Write in the thread of the caller if that is quick; False if it is for the other thread."""
        if self._waiting or batch.size > _SMALL or batch.keeps or not self._pace.quick:
            return False
        if not self._turn.acquire(blocking=False):
            return False
        try:
            if not self._writer.joined or not self._writer.locks.attempt():
                return False
            try:
                drafts = self._writer.draft(batch.groups())
                answers = self._measured(lambda: self._writer.write(drafts))
            finally:
                self._writer.unlock()
        except AuditUnavailable as problem:
            answers = batch.refusals(problem)
        except BaseException as problem:
            batch.settle(batch.refusals(_fault(problem)))
            raise
        finally:
            self._turn.release()
        batch.settle(answers)
        return True

    def _overdue(self, batch: Batch) -> None:
        """Refuse a batch whose patience has ended while the thread waits for the lock."""
        left = self._patience_left()
        if left > 0:
            batch.timer = batch.loop.call_later(left, self._overdue, batch)
        elif batch.claim():
            held = f"another process held the lock of `{self._state.path}` for {PATIENCE:.0f} s"
            advice = "end the process that hangs, then run again"
            batch.settle(batch.refusals(AuditUnavailable(held, advice=advice)))

    def _patience_left(self) -> float:
        """Seconds that the thread may go on waiting for the lock, if it does."""
        since = self._locking_since
        return PATIENCE if since is None else since + PATIENCE - time.monotonic()

    def _work(self) -> None:
        running = True
        while running:
            batches, running = self._next()
            with self._turn:
                answered = self._serve(batches)
            with self._count:
                self._waiting -= len(batches)
            for batch, answers in answered:
                batch.answer(answers)
        with self._turn:
            self._signing.finish(sound=self._writer.sound)
            self._writer.close()

    def _next(self) -> tuple[list[Batch], bool]:
        """Wait for batches and take all there are; False with the last ones."""
        batches = list[Batch]()
        while len(batches) < _MOST and not (batches and self._queue.empty()):
            batch = self._queue.get()  # waits only for the first: nobody else takes
            if batch is None:
                return batches, False
            batches.append(batch)
        return batches, True

    def _serve(self, batches: Sequence[Batch]) -> list[_Answered]:
        """Write batches as one; batches that were refused while they waited are left out."""
        answered, claims = list[_Answered](), Claims(batches)
        try:
            answered += [one for batch in batches if batch.keeps and (one := self._store_content(batch))]
            self._writer.prepare()
            drafts = {batch: self._writer.draft(batch.groups()) for batch in batches}
            try:
                answered += self._write(claims, drafts)
            finally:
                self._writer.unlock()
        except Exception as problem:  # whatever it is, it must not leave anybody waiting
            failure = problem if isinstance(problem, AuditUnavailable) else _fault(problem)
            answered += [(batch, batch.refusals(failure)) for batch in claims.take()]
        return answered

    def _write(self, claims: Claims, drafts: Mapping[Batch, Sequence[Drafted]]) -> list[_Answered]:
        """Write what nobody refused yet: behind others, or under both locks if that is not enough."""
        writer = self._writer
        if writer.joined:
            self._wait_for(writer.locks.append)
            batches = claims.take()
            written = writer.append([one for batch in batches for one in drafts[batch]])
            writer.locks.append.release()
            if written is not None:
                if written.end is not None:
                    claims.give()
                    self._wait_for(writer.locks.sync)
                answers = self._measured(lambda: writer.settle(written))
                left = claims.take()
                return [one for one in _split(batches, answers) if one[0] in left]
            claims.give()
        self._wait_for(writer.locks)
        if batches := claims.take():
            writer.join()
            groups = [one for batch in batches for one in drafts[batch]]
            answers = self._measured(lambda: writer.write(groups))
            return _split(batches, answers)
        return []

    def _store_content(self, batch: Batch) -> _Answered | None:
        """Make content durable before the record that names it; claim and refuse the batch if that fails."""
        try:
            contents.store(self._state, batch.kept())
        except OSError as problem:
            failure = unavailable(problem, self._state.path / "content")
            return (batch, batch.refusals(failure)) if batch.claim() else None
        return None

    def _wait_for(self, lock: Lock | LogLocks) -> None:
        """Take a lock of the log, or both, however long others hold them."""
        self._locking_since = time.monotonic()
        try:
            lock.take()
        except OSError as problem:
            raise unavailable(problem, self._state.path) from problem
        finally:
            self._locking_since = None

    def _measured(self, write: Callable[[], list[Answer]]) -> list[Answer]:
        """Make records durable by `write`; note how long a sync of ours took, and what is to be signed."""
        began, before = time.monotonic(), self._writer.syncs
        answers = write()
        if self._writer.syncs > before:
            self._pace.wrote(time.monotonic() - began)
        self._signing.appended(self._writer.written, self._writer.size)
        return answers


def _split(batches: Sequence[Batch], answers: Sequence[Answer]) -> list[_Answered]:
    rest = iter(answers)
    return [(batch, list(islice(rest, len(batch.calls)))) for batch in batches]


def _fault(problem: BaseException) -> AuditUnavailable:
    return AuditUnavailable(f"the log failed: {type(problem).__name__}: {problem}")
