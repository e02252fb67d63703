"""One writer of a log: it takes the lock, finds the end of the chain, and appends durably.

Rules this module keeps:

- the lock of the log is held from reading the end of the chain to the sync that makes its continuation last;
- nothing is returned before it is durable; a batch costs one sync, whatever is in it;
- the first write or sync that fails is the last: what it may have left is cut off, and the writer refuses
  from then on, because a second sync would claim success for data that the first one lost;
- it continues only a chain that ends in a record of this log, which continues the checkpoint that was seen;
- what a dead writer left is recovered before anything new is written.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from typing import Any

from licet.errors import AuditUnavailable, EntryRefused
from licet.files import open_plain, sync_directory
from licet.locks import unlock, wait_lock
from licet.record import Entry, Record
from licet.state import StateDirectory, failures, unavailable

from licet_audit import recovery, seen, segments, tree
from licet_audit.chain import NOTHING, Head, encode, log_entry
from licet_audit.checkpointer import Notary
from licet_audit.files import sync, write_all
from licet_audit.identity import identity
from licet_audit.leaves import Snapshot
from licet_audit.segments import SEALED, Damaged, Segment
from licet_audit.tiles import LogHashes

_PATIENCE = 30.0  # seconds that others may hold the lock, a long recovery included
_MOVE_ASIDE = "run `licet audit verify`, then move the state directory aside to start a new log"

Answer = tuple[Record, ...] | AuditUnavailable


class ChainWriter:
    """Appends to the log of one state directory; used by one thread, one instance a process and object."""

    def __init__(self, state: StateDirectory, segment_bytes: int) -> None:
        self.notary = Notary(state)
        self._state = state
        self._segment_bytes = segment_bytes
        self._identity: Mapping[str, Any] = {}
        self._lock = -1
        self._file = -1
        self._segment = Segment(segments.segment_path(state, 0), 0, 0)
        self._sealed = True  # the next batch begins a segment
        self._tails_pending = True  # a writer that died may have set a tail aside without recording it
        self._head = NOTHING
        self._written: Head | None = None
        self._open_runs: dict[str, int] = {}  # run id to its first record
        self._presence: recovery.Writer | None = None
        self._broken: AuditUnavailable | None = None

    def open(self) -> None:
        """Join the log, or begin it; close what dead writers left open.

        Raises:
            AuditUnavailable: the log can't be written, or is not what was last seen.
        """
        self._require_sound()
        self._identity = identity()
        try:
            with failures(self._state.path):
                self._prepare()
                self._take_lock()
                try:
                    self._find_end()
                    self._join()
                finally:
                    unlock(self._lock)
        except BaseException:
            self.abandon()
            raise

    def write(self, groups: Sequence[Sequence[Entry]]) -> list[Answer]:
        """Append all groups as one durable batch; answer each with its records, or why it has none.

        Raises:
            AuditUnavailable: nothing of the batch is known to be durable.
        """
        self._require_sound()
        try:
            self._take_lock()
            try:
                self._find_end()
                return self._append(groups)
            finally:
                unlock(self._lock)
        except OSError as problem:
            raise unavailable(problem, self._state.path) from problem

    def close(self) -> None:
        """Sign the last records and leave; runs that are still open are left for the next writer to close."""
        if self._written is not None and self._broken is None:
            # The log itself is durable; an older checkpoint only makes `verify` claim less.
            with contextlib.suppress(AuditUnavailable):
                self.notary.close()
        presence, self._presence = self._presence, None
        if presence is not None and (self._broken is not None or self._open_runs):
            presence.release()
        elif presence is not None:
            with contextlib.suppress(OSError):
                presence.remove()
        self.abandon()

    def abandon(self) -> None:
        """Close all files and touch nothing: a forked child does so with its parent's writer."""
        presence, self._presence = self._presence, None
        for descriptor in (self._file, self._lock):
            if descriptor >= 0:
                os.close(descriptor)
        self._file = self._lock = -1
        if presence is not None:
            presence.release()

    def give_up(self, failure: AuditUnavailable) -> AuditUnavailable:
        """Write nothing from now on; return the failure that says so at once."""
        message = f"the log was given up after a failure: {failure.message}"
        self._broken = AuditUnavailable(message, advice=failure.advice)
        return failure

    def _require_sound(self) -> None:
        if self._broken is not None:
            raise self._broken

    def _prepare(self) -> None:
        for name in ("log", "writers", "quarantine"):
            folder = self._state.path / name
            if not folder.is_dir():
                folder.mkdir(mode=0o700, exist_ok=True)
                sync_directory(self._state.path)
        self._lock = open_plain(self._state.path / "log.lock", os.O_RDWR | os.O_CREAT)

    def _take_lock(self) -> None:
        if not wait_lock(self._lock, _PATIENCE):
            raise AuditUnavailable(
                f"another process held the lock of `{self._state.path}` for {_PATIENCE:.0f} s",
                advice="end the process that hangs, then run again",
            )

    def _find_end(self) -> None:
        """Look at what other writers did since; set a torn tail aside."""
        if self._file >= 0:
            now = os.fstat(self._file)
            if now.st_nlink == 0 or now.st_size < self._segment.size:
                cut = f"`{self._segment.path}` was cut or deleted while in use"
                raise self.give_up(AuditUnavailable(cut, advice=_MOVE_ASIDE))
            if now.st_size == self._segment.size and not self._sealed:
                return  # after a sealed segment somebody else may have begun the next one
        try:
            listed = segments.listing(self._state)
            tail = segments.find_tail(listed, self._state.log_id)
        except Damaged as problem:
            raise AuditUnavailable(str(problem), advice=_MOVE_ASIDE) from None
        if self._presence is None:
            self._check_pinned_head(listed, tail.head)
        self._head, self._sealed = tail.head, tail.sealed
        if listed:
            self._switch_to(listed[-1], os.O_RDWR | os.O_APPEND)
            if self._segment.size > tail.end:
                recovery.set_aside(self._state, self._segment, self._file, tail.end)
                self._tails_pending = True
            self._segment = self._segment.resized(tail.end)

    def _check_pinned_head(self, listed: Sequence[Segment], head: Head) -> None:
        """Refuse, before anything is touched, to continue a log that lost what this user saw of it."""
        known = seen.of(self._state.log_id)
        if known is None:
            seen.begin(self._state)
        if known is None or known.head is None:
            return
        before, size = known.head, head.seq + 1
        if before.size > size:
            raise AuditUnavailable(
                f"the log ends at record #{head.seq}, but record #{before.size - 1} was there before",
                advice=_MOVE_ASIDE,
            )
        hashes = LogHashes(self._state, Snapshot(tuple(listed), size, sealed=False))
        try:
            found = tree.root(hashes, before.size)
        except LookupError as problem:
            raise AuditUnavailable(
                f"the first {before.size} records are gone: {problem}", advice=_MOVE_ASIDE
            ) from None
        if found != before.root:
            raise AuditUnavailable(
                f"the first {before.size} records are not those that were there before", advice=_MOVE_ASIDE
            )

    def _join(self) -> None:
        """Become a writer of this log, and say what became of those who died."""
        with recovery.dead_writers(self._state) as dead:
            self._presence = recovery.announce(self._state, self._identity["instance"], self._head.seq + 1)
            entries = [log_entry("opened", log=self._state.log_id)] if self._head == NOTHING else []
            entries += recovery.unknown_results(segments.listing(self._state), dead)
            if entries:
                self._append([entries])

    def _append(self, groups: Sequence[Sequence[Entry]]) -> list[Answer]:
        """Write one batch; the lock is held and the end of the chain is known."""
        tails = recovery.pending_tails(self._state) if self._tails_pending else {}
        head, data, answers = self._head, bytearray(), list[Answer]()
        for group in [tuple(tails.values()), *groups] if tails else groups:
            try:
                records, lines, head = self._encode(group, head)
            except ValueError as problem:
                answers.append(EntryRefused(f"an entry can't be recorded: {problem}"))
            else:
                data += lines
                answers.append(records)
        if data:
            self._commit(data, head)
            if self._tails_pending:
                with contextlib.suppress(OSError):  # the batch is durable; at worst a tail is recorded twice
                    recovery.mark_recorded(tails)
                    self._tails_pending = False
        for answer in answers:
            self._remember(answer)
        return answers[1:] if tails else answers

    def _encode(self, group: Sequence[Entry], head: Head) -> tuple[tuple[Record, ...], bytearray, Head]:
        """Make `group` the records after `head`; return them, their lines, and the last of them as head."""
        records, lines, seq, prev = list[Record](), bytearray(), head.seq, head.leaf
        for seq, entry in enumerate(group, head.seq + 1):
            record, line = encode(entry, log=self._state.log_id, seq=seq, prev=prev, writer=self._identity)
            prev = record.leaf
            records.append(record)
            lines += line
        return tuple(records), lines, Head(seq, prev)

    def _commit(self, data: bytearray, head: Head) -> None:
        """Make `data`, which ends at `head`, the durable continuation of the log."""
        fresh = self._sealed
        if fresh:
            first = Segment(segments.segment_path(self._state, self._head.seq + 1), self._head.seq + 1, 0)
            self._switch_to(first, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL)
            if self._presence is not None:
                self._presence.advance(min(self._open_runs.values(), default=first.first))
        sealed = self._segment.size + len(data) >= self._segment_bytes
        if sealed:
            _, line, head = self._encode([log_entry(SEALED)], head)
            data += line
        try:
            write_all(self._file, data)
            sync(self._file)
            if fresh:
                sync_directory(self._segment.path.parent)
        except OSError as problem:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self._segment.size)
            raise self.give_up(unavailable(problem, self._segment.path)) from problem
        self._segment = self._segment.resized(self._segment.size + len(data))
        self._head = self._written = head
        self._sealed = sealed

    def _remember(self, answer: Answer) -> None:
        for record in answer if isinstance(answer, tuple) else ():
            if record.entry.kind == "result":
                self._open_runs.pop(record.entry.run_id, None)
            elif record.entry.kind == "execution" and record.entry.phase == "before":
                self._open_runs[record.entry.run_id] = record.seq

    def _switch_to(self, segment: Segment, flags: int) -> None:
        descriptor = open_plain(segment.path, flags)
        if self._file >= 0:
            os.close(self._file)
        self._file, self._segment = descriptor, segment
