"""The durable log that a runtime appends to.

Rules this module keeps:

- what tasks of one loop append in the same tick is one batch, written in place where that is quick and by a
  thread where it is not; so a slow disk or a lock that others hold stops nobody's event loop;
- what is queued while a sync runs shares the next one, whichever loop or thread it came from;
- a cancelled `append` is carried out all the same: whoever waits for it goes, the record stays whole;
- a forked child drops what it inherited at once and joins the log as a writer of its own at its next append.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import weakref
from collections.abc import Sequence

from licet.errors import AuditUnavailable
from licet.record import Entry, Record
from licet.state import StateDirectory

from licet_audit import writer
from licet_audit.batch import Batch
from licet_audit.segments import SEGMENT_BYTES
from licet_audit.worker import CLOSED, Worker


class DurableLog:
    """The `licet.record.AuditLog` of a state directory; joins the log at the first append.

    Any number of these, in any number of processes, may append to one log. `segment_bytes` is the size at
    which a segment is sealed.
    """

    def __init__(self, state: StateDirectory, *, segment_bytes: int = SEGMENT_BYTES) -> None:
        self._state = state
        self._segment_bytes = segment_bytes
        self._guard = threading.Lock()
        self._gathered: dict[asyncio.AbstractEventLoop, Batch] = {}  # of the tick that each loop is in
        self._worker: Worker | None = None
        self._leave: weakref.finalize[[], DurableLog] | None = None
        self._closed = False
        _LOGS.add(self)

    async def append(self, entries: Sequence[Entry]) -> tuple[Record, ...]:
        """Append all entries in order, as one durable write.

        Raises:
            AuditUnavailable: nothing is known to be durable; the caller runs nothing.
        """
        loop = asyncio.get_running_loop()
        with self._guard:
            if self._closed:
                raise AuditUnavailable(CLOSED.message, advice=CLOSED.advice)
            batch = self._gathered.get(loop)
            first = batch is None
            if batch is None:
                batch = self._gathered[loop] = Batch(loop)
            future = batch.add(entries)
        if first:
            try:
                await asyncio.sleep(0)
            except BaseException:
                with contextlib.suppress(RuntimeError):  # the loop is closed, so nobody waits
                    loop.call_soon(self._flush, batch)  # this one goes, others may wait for the batch
                raise
            self._flush(batch)
        return await future

    async def close(self) -> None:
        """Finish what is queued, sign the last records, and release every file; what was appended stays."""
        with self._guard:
            batch = self._gathered.pop(asyncio.get_running_loop(), None)
            worker = self._started_for(batch) if batch else self._worker
            self._worker, self._closed = None, True
        if worker is not None:
            if batch is not None:
                worker.queue(batch)
            await asyncio.to_thread(worker.leave)

    def _flush(self, batch: Batch) -> None:
        """Have what a loop gathered written, in the next tick of that loop."""
        with self._guard:
            if self._gathered.get(batch.loop) is not batch:
                return  # `close` took it along, or this is a forked child, which appends nothing twice
            del self._gathered[batch.loop]
            worker = self._started_for(batch)
        if worker is not None:
            worker.take(batch)

    def _started_for(self, batch: Batch) -> Worker | None:
        """Who writes a batch; None if nobody can, and then it is refused."""
        if self._closed:
            batch.settle(batch.refusals(CLOSED))
            return None
        if self._worker is None:
            try:
                self._worker = Worker(self._state, self._segment_bytes)
            except (
                RuntimeError
            ) as problem:  # the system, or the end of the interpreter, allows no more threads
                failure = AuditUnavailable(
                    f"nothing can write the log: {problem}",
                    advice="raise the limit (`ulimit -u`), then run again",
                )
                batch.settle(batch.refusals(failure))
                return None
            self._leave = weakref.finalize(self, self._worker.leave)
        return self._worker

    def _after_fork_in_child(self) -> None:
        worker, self._worker, self._guard, self._gathered = self._worker, None, threading.Lock(), {}
        if worker is not None:
            worker.abandon()
        if self._leave is not None:
            self._leave.detach()


_LOGS: weakref.WeakSet[DurableLog] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    writer.forget_failures()
    for log in list(_LOGS):
        log._after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
