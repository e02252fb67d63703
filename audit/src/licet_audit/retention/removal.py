"""Removing for good: recorded first, then done.

Rules this module keeps:

- one removal at a time in a log: who holds `removal.lock` may remove, and may set or release holds;
- a record that says what goes is durable before anything does;
- what is under way is marked, so that it is finished whenever its process dies (see `removals`);
- segments are removed under the lock of the log.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Sequence

from licet import files
from licet.errors import ApprovalsUnavailable, AuditUnavailable
from licet.locks import lock_file
from licet.record import Entry, Record
from licet.state import StateDirectory, failures

from licet_audit import removals
from licet_audit.log import DurableLog

_PATIENCE = 30.0  # seconds that another removal may take


@contextlib.contextmanager
def alone(state: StateDirectory) -> Iterator[None]:
    """Around a removal: no other process removes, holds or releases; what one left undone is finished first.

    Raises:
        AuditUnavailable: another process has been at it for too long, or what it left can't be finished.
    """
    with contextlib.ExitStack() as stack:
        with failures(state.path):
            held = stack.enter_context(lock_file(state.path / removals.LOCK, _PATIENCE))
        if not held:
            raise AuditUnavailable(
                f"another process is erasing, holding or pruning in `{state.path}`",
                advice="let it come to its end, or answer its question, then do this again",
            )
        if removals.mark(state).exists():
            with log_lock(state), failures(state.path):
                removals.finish(state)
        yield


@contextlib.contextmanager
def log_lock(state: StateDirectory) -> Iterator[None]:
    """Around what no writer may see half done.

    Raises:
        AuditUnavailable: writers have held the lock for too long.
    """
    with contextlib.ExitStack() as stack:
        with failures(state.path):
            held = stack.enter_context(lock_file(state.path / "log.lock", _PATIENCE))
        if not held:
            raise AuditUnavailable(
                f"another process held the lock of `{state.path}` for {_PATIENCE:.0f} s",
                advice="end the process that hangs, then do this again",
            )
        yield


def record(state: StateDirectory, entries: Sequence[Entry]) -> tuple[Record, ...]:
    """Append entries about the log itself, durably.

    Raises:
        AuditUnavailable: nothing is known to be recorded.
    """

    async def append() -> tuple[Record, ...]:
        log = DurableLog(state)
        try:
            return await log.append(entries)
        finally:
            await log.close()

    return asyncio.run(append())


def carry_out(state: StateDirectory, entries: Sequence[Entry], *, size: int) -> tuple[Record, ...]:
    """Record what goes, then remove it; inside of `alone`. `size` is that of the log, or less.

    Raises:
        AuditUnavailable: nothing is recorded, so nothing is gone; or all is recorded, and not all is gone.
    """
    with failures(state.path):
        files.replace(removals.mark(state), b"%020d\n" % size)
    records = record(state, entries)
    try:
        prunes = any(entry.body.get("event") == "pruned" for entry in entries)
        with log_lock(state) if prunes else contextlib.nullcontext(), failures(state.path):
            for one in records:
                removals.remove(state, one.entry.body)
            removals.unmark(state)
    except (AuditUnavailable, ApprovalsUnavailable) as problem:
        raise AuditUnavailable(
            f"the removal is recorded (#{records[-1].seq}), but not all of it is gone: {problem.message}",
            advice="repair that and do it again: what is recorded is finished first",
        ) from problem
    return records
