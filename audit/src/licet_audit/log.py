"""The durable log that a runtime appends to.

Rules this module keeps:

- file work happens in a thread of its own, so that a slow disk stops nobody's event loop;
- what is queued while a sync runs shares the next one, whichever loop or thread it came from;
- a cancelled `append` is carried out all the same: whoever waits for it goes, the record stays whole;
- a forked child drops what it inherited at once and joins the log as a writer of its own at its next append.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import threading
import weakref
from collections.abc import Sequence

from licet.errors import AuditUnavailable
from licet.record import Entry, Record
from licet.state import StateDirectory

from licet_audit.segments import SEGMENT_BYTES
from licet_audit.writer import Answer, ChainWriter

_BATCH = 1024  # appends that share one sync at most


class DurableLog:
    """The `licet.record.AuditLog` of a state directory; joins the log at the first append.

    Any number of these, in any number of processes, may append to one log. `segment_bytes` is the size at
    which a segment is sealed.
    """

    def __init__(self, state: StateDirectory, *, segment_bytes: int = SEGMENT_BYTES) -> None:
        self._state = state
        self._segment_bytes = segment_bytes
        self._guard = threading.Lock()
        self._worker: _Worker | None = None
        self._closed = False
        _LOGS.add(self)

    async def append(self, entries: Sequence[Entry]) -> tuple[Record, ...]:
        """Append all entries in order, as one durable write.

        Raises:
            AuditUnavailable: nothing is known to be durable; the caller runs nothing.
        """
        call = _Call(tuple(entries), asyncio.get_running_loop())
        with self._guard:
            if self._closed:
                raise AuditUnavailable("the log is closed", advice="open it again")
            if self._worker is None:
                self._worker = _Worker(self._state, self._segment_bytes)
                weakref.finalize(self, self._worker.leave)
            self._worker.calls.put(call)
        return await call.future

    async def close(self) -> None:
        """Finish what is queued, sign the last records, and release every file; what was appended stays."""
        with self._guard:
            worker, self._worker, self._closed = self._worker, None, True
        if worker is not None:
            await asyncio.to_thread(worker.leave)

    def _after_fork_in_child(self) -> None:
        worker, self._worker, self._guard = self._worker, None, threading.Lock()
        if worker is not None:
            worker.writer.abandon()


class _Call:
    """One append: what to write, and where its answer is awaited."""

    def __init__(self, entries: tuple[Entry, ...], loop: asyncio.AbstractEventLoop) -> None:
        self.entries = entries
        self.loop = loop
        self.future: asyncio.Future[tuple[Record, ...]] = loop.create_future()

    def answer(self, answer: Answer) -> None:
        """Hand the answer to the loop of the caller, from another thread."""
        with contextlib.suppress(RuntimeError):  # that loop has ended, and with it whoever waited
            self.loop.call_soon_threadsafe(self._settle, answer)

    def _settle(self, answer: Answer) -> None:
        if self.future.done():
            return
        if isinstance(answer, AuditUnavailable):
            self.future.set_exception(answer)
        else:
            self.future.set_result(answer)


class _Worker:
    """The thread that owns one `ChainWriter`; `calls` ends with None."""

    def __init__(self, state: StateDirectory, segment_bytes: int) -> None:
        self.calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self.writer = ChainWriter(state, segment_bytes)
        self._joined = False
        self.thread = threading.Thread(target=self._work, name="licet-audit", daemon=True)
        self.thread.start()

    def leave(self) -> None:
        """Finish what is queued and close; safe to call again, and from any thread."""
        self.calls.put(None)
        if threading.current_thread() is not self.thread:
            self.thread.join()

    def _work(self) -> None:
        running = True
        while running:
            batch = self._next_batch()
            running = batch[-1] is not None
            calls = [call for call in batch if call is not None]
            for call, answer in zip(calls, self._write(calls), strict=True):
                call.answer(answer)
        self.writer.close()

    def _next_batch(self) -> list[_Call | None]:
        batch = [self.calls.get()]
        while batch[-1] is not None and len(batch) < _BATCH and not self.calls.empty():
            batch.append(self.calls.get())  # does not wait: nobody else takes
        return batch

    def _write(self, calls: Sequence[_Call]) -> Sequence[Answer]:
        if not calls:
            return []
        try:
            if not self._joined:
                self.writer.open()
                self._joined = True
            return self.writer.write([call.entries for call in calls])
        except AuditUnavailable as problem:
            return [AuditUnavailable(problem.message, advice=problem.advice) for _ in calls]
        except Exception as problem:
            # A fault of ours must not leave anybody waiting, nor a writer in a state that nobody thought of.
            failure = AuditUnavailable(f"the log failed: {type(problem).__name__}: {problem}")
            self.writer.give_up(failure)
            return [failure for _ in calls]


_LOGS: weakref.WeakSet[DurableLog] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for log in list(_LOGS):
        log._after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
