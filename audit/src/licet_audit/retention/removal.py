"""Removing for good, so that it is recorded first and finished later, whenever the process dies.

Rules this module keeps:

- one removal at a time in a log: who holds `removal.lock` may remove;
- a record that says what goes is durable before anything does, and what goes is read from that record;
- a mark, `removal.begun`, is there from before the record until all that it names is gone: whoever removes
  next, or joins the log as a writer, finishes what the record says; a mark without a record means nothing;
- segments are removed under the lock of the log, oldest first, so that what is left has no hole.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
from licet import files
from licet.errors import AuditUnavailable, reason_of
from licet.files import open_plain, read_plain, sync_directory
from licet.locks import try_lock, wait_lock
from licet.record import Entry, Record
from licet.state import StateDirectory, failures

from licet_audit import contents, segments
from licet_audit.log import DurableLog
from licet_audit.retention.survey import commitments_of

_log = logging.getLogger("licet")
_PATIENCE = 30.0  # seconds that another removal may take
_DIGITS = 20


@contextlib.contextmanager
def alone(state: StateDirectory) -> Iterator[None]:
    """Around a removal: no other process removes, holds or releases; what one left undone is finished first.

    Raises:
        AuditUnavailable: another process has been at it for too long, or what it left can't be finished.
    """
    with failures(state.path):
        descriptor = open_plain(state.path / "removal.lock", os.O_RDWR | os.O_CREAT)
    try:
        if not wait_lock(descriptor, _PATIENCE):
            raise AuditUnavailable(
                f"another process is erasing, holding or pruning in `{state.path}`",
                advice="let it come to its end, or answer its question, then do this again",
            )
        if _mark(state).exists():
            with log_lock(state):
                _finish(state)
        yield
    finally:
        os.close(descriptor)


def finish_if_left(state: StateDirectory) -> None:
    """Finish what a removal that died left undone; the caller holds the lock of the log.

    What can't be finished keeps nobody from running code: it is told, and tried again the next time.
    """
    if not _mark(state).exists():
        return
    try:
        descriptor = open_plain(state.path / "removal.lock", os.O_RDWR | os.O_CREAT)
        try:
            if try_lock(descriptor):  # else who removes is alive
                _finish(state)
        finally:
            os.close(descriptor)
    except OSError as problem:
        _log.warning("an erasure that is recorded could not be finished: %s", reason_of(problem))


@contextlib.contextmanager
def log_lock(state: StateDirectory) -> Iterator[None]:
    """Around what no writer may see half done.

    Raises:
        AuditUnavailable: writers have held the lock for too long.
    """
    with failures(state.path):
        descriptor = open_plain(state.path / "log.lock", os.O_RDWR | os.O_CREAT)
    try:
        if not wait_lock(descriptor, _PATIENCE):
            raise AuditUnavailable(
                f"another process held the lock of `{state.path}` for {_PATIENCE:.0f} s",
                advice="end the process that hangs, then do this again",
            )
        yield
    finally:
        os.close(descriptor)


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
        files.replace(_mark(state), b"%020d\n" % size)
    records = record(state, entries)
    try:
        prunes = any(entry.body.get("event") == "pruned" for entry in entries)
        with log_lock(state) if prunes else contextlib.nullcontext(), failures(state.path):
            for one in records:
                remove(state, one.entry.body)
            _unmark(state)
    except AuditUnavailable as problem:
        raise AuditUnavailable(
            f"the removal is recorded (#{records[-1].seq}), but not all of it is gone: {problem.message}",
            advice="repair that and do it again: what is recorded is finished first",
        ) from problem
    return records


def remove(state: StateDirectory, body: Mapping[str, Any]) -> None:
    """Remove what the body of an `erased` or `pruned` record names; what is gone already is no error.

    Raises:
        OSError: not all of it is known to be gone.
    """
    if body.get("event") == "erased":
        contents.delete(state, commitments_of(body))
    elif body.get("event") == "pruned":
        for one in sorted(int(segment["first"]) for segment in body["segments"]):
            segments.segment_path(state, one).unlink(missing_ok=True)
        sync_directory(segments.log_directory(state))


def _finish(state: StateDirectory) -> None:
    mark = _mark(state)
    text = read_plain(mark, _DIGITS + 1).strip()
    since = int(text) if text.isdigit() else 0
    for line in segments.lines_from(segments.listing(state), since):
        if b'"kind":"log"' not in line:
            continue
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):  # for `verify` to tell
            content = orjson.loads(line)
            if content["kind"] == "log":
                remove(state, content["body"])
    _unmark(state)


def _mark(state: StateDirectory) -> Path:
    return state.path / "removal.begun"


def _unmark(state: StateDirectory) -> None:
    _mark(state).unlink(missing_ok=True)
    sync_directory(state.path)
