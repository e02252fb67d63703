"""One writer of a log: it takes the lock, finds the end of the chain, and appends durably.

Rules this module keeps:

- the lock of the log is held from reading the end of the chain to the sync that makes its continuation last;
- nothing is returned before it is durable; a batch costs one sync, whatever is in it;
- the first write or sync that fails is the last: what it may have left is cut off, and the writer refuses
  from then on, because a second sync would claim success for data that the first one lost;
- it continues only a chain that ends in a record of this log, which continues the checkpoint that was seen;
- what a dead writer left is recovered before anything new is written, and a failure of this process that
  ended the writer before is recorded.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence

from licet.errors import AuditUnavailable, EntryRefused
from licet.files import open_plain, sync_directory
from licet.locks import take_lock, try_lock, unlock
from licet.plain import plain
from licet.record import Entry, Record
from licet.state import StateDirectory, failures, unavailable

from licet_audit import recovery, removals, seen, segments
from licet_audit.batch import Answer
from licet_audit.chain import NOTHING, Draft, Head, Spelling, log_entry
from licet_audit.files import sync, write_all
from licet_audit.identity import identity
from licet_audit.leaves import Snapshot
from licet_audit.segments import SEALED, Damaged, Segment
from licet_audit.tiles import has_root

_MOVE_ASIDE = "run `licet audit verify`, then move the state directory aside to start a new log"

Drafted = list[Draft] | EntryRefused
"""The entries of one append, or why they can't be recorded."""

_failed: dict[str, str] = {}
"""Why this process gave up writing to a log, by its id, until the log has recorded that."""


class ChainWriter:
    """Appends to the log of one state directory; used by one thread at a time, which holds the lock."""

    def __init__(self, state: StateDirectory, segment_bytes: int) -> None:
        self._state = state
        self._segment_bytes = segment_bytes
        self.joined = False
        self.written = 0  # records
        self._spelling = Spelling(state.log_id, {})
        self._lock = -1
        self._file = -1
        self._segment = Segment(segments.segment_path(state, 0), 0, 0)
        self._sealed = True  # the next batch begins a segment
        self._tails_pending = True  # a writer that died may have set a tail aside without recording it
        self._head = NOTHING
        self._open_runs: dict[str, int] = {}  # run id to its first record
        self._presence: recovery.Writer | None = None
        self._broken: AuditUnavailable | None = None

    def prepare(self) -> None:
        """Make what the log needs and open its lock.

        Raises:
            AuditUnavailable: the log can't be written.
        """
        self._require_sound()
        if self._lock >= 0:
            return
        with failures(self._state.path):
            for name in ("log", "writers", "quarantine"):
                folder = self._state.path / name
                if not folder.is_dir():
                    folder.mkdir(mode=0o700, exist_ok=True)
                    sync_directory(self._state.path)
            self._lock = open_plain(self._state.path / "log.lock", os.O_RDWR | os.O_CREAT)
        self._spelling = Spelling(self._state.log_id, identity())

    def lock(self) -> None:
        """Take the lock of the log, however long others hold it.

        Raises:
            OSError: the file system can't lock.
        """
        take_lock(self._lock)

    def try_lock(self) -> bool:
        """Take the lock of the log if it is free; False also if it can't be asked for, which `lock` tells."""
        with contextlib.suppress(OSError):
            return try_lock(self._lock)
        return False

    def unlock(self) -> None:
        """Give the lock back; a writer that left has none."""
        if self._lock >= 0:
            unlock(self._lock)

    def join(self) -> None:
        """Join the log, or begin it, unless that is done; close what dead writers left open.

        Raises:
            AuditUnavailable: the log can't be written, or is not what was last seen.
        """
        if self.joined:
            return
        try:
            self._find_end()
            self._enter()
        except BaseException as problem:
            self.abandon()
            raise self._failure(problem) from problem
        self.joined = True

    def draft(self, groups: Iterable[Sequence[Entry]]) -> list[Drafted]:
        """Spell groups of entries as far as that goes before the lock is held; a group is refused alone."""
        return [self._draft(group) for group in groups]

    def write(self, groups: Sequence[Drafted]) -> list[Answer]:
        """Append all groups as one durable batch; answer each with its records, or why it has none.

        Raises:
            AuditUnavailable: nothing of the batch is known to be durable.
        """
        self._require_sound()
        try:
            self._find_end()
            return self._append(groups)
        except BaseException as problem:
            raise self._failure(problem) from problem

    def close(self) -> None:
        """Leave; runs that are still open are left for the next writer to close."""
        presence, self._presence = self._presence, None
        if presence is not None and (self._broken is not None or self._open_runs):
            presence.release()
        elif presence is not None:
            with contextlib.suppress(OSError):
                presence.remove()
        self.abandon()

    @property
    def size(self) -> int:
        """How many records the log has, as far as this writer has seen."""
        return self._head.seq + 1

    @property
    def sound(self) -> bool:
        """Whether nothing has failed yet."""
        return self._broken is None

    def abandon(self) -> None:
        """Close all files and touch nothing: a forked child does so with its parent's writer."""
        presence, self._presence = self._presence, None
        for descriptor in (self._file, self._lock):
            if descriptor >= 0:
                os.close(descriptor)
        self._file = self._lock = -1
        self.joined = False
        if presence is not None:
            presence.release()

    def _give_up(self, failure: AuditUnavailable) -> AuditUnavailable:
        """Write nothing from now on; return the failure that says so at once."""
        message = f"the log was given up after a failure: {failure.message}"
        self._broken = AuditUnavailable(message, advice=failure.advice)
        _failed.setdefault(self._state.log_id, failure.message)
        return failure

    def _require_sound(self) -> None:
        if self._broken is not None:
            raise AuditUnavailable(self._broken.message, advice=self._broken.advice)

    def _failure(self, problem: BaseException) -> BaseException:
        """What to raise for a problem; a fault of ours, or an interruption, is the end of this writer.

        It leaves a state that nobody thought of, and must leave nobody waiting.
        """
        if isinstance(problem, AuditUnavailable):
            return problem
        if isinstance(problem, OSError):
            return unavailable(problem, self._state.path)
        failure = self._give_up(AuditUnavailable(f"the log failed: {type(problem).__name__}: {problem}"))
        return failure if isinstance(problem, Exception) else problem

    def _find_end(self) -> None:
        """Look at what other writers did since; set a torn tail aside."""
        if self._file >= 0:
            now = os.fstat(self._file)
            if now.st_nlink == 0 or now.st_size < self._segment.size:
                cut = f"`{self._segment.path}` was cut or deleted while in use"
                raise self._give_up(AuditUnavailable(cut, advice=_MOVE_ASIDE))
            if not self._sealed and self._is_followed_to(now.st_size):
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

    def _is_followed_to(self, size: int) -> bool:
        """Move the end to where others wrote to, if they left this segment open and whole."""
        if size == self._segment.size:
            return True
        head = segments.grown_head(self._file, self._segment, size, self._head)
        if head is None:
            return False
        self._head, self._segment = head, self._segment.resized(size)
        return True

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
        snapshot = Snapshot(tuple(listed), size, sealed=False)
        try:
            same = has_root(self._state, snapshot, before.size, before.root)
        except LookupError as problem:
            raise AuditUnavailable(
                f"the first {before.size} records are gone: {problem}", advice=_MOVE_ASIDE
            ) from None
        if not same:
            raise AuditUnavailable(
                f"the first {before.size} records are not those that were there before", advice=_MOVE_ASIDE
            )

    def _enter(self) -> None:
        """Become a writer of this log, and say what became of those who died."""
        with recovery.dead_writers(self._state) as dead:
            self._presence = recovery.announce(
                self._state, self._spelling.writer["instance"], self._head.seq + 1
            )
            entries = [log_entry("opened", log=self._state.log_id)] if self._head == NOTHING else []
            reason = _failed.get(self._state.log_id)
            entries += [log_entry("reopened", reason=plain(reason))] if reason is not None else []
            entries += recovery.unknown_results(segments.listing(self._state), dead)
            if entries:
                self._append(self.draft([entries]))
            _failed.pop(self._state.log_id, None)
        removals.finish_if_left(self._state)

    def _draft(self, group: Sequence[Entry]) -> Drafted:
        try:
            return [self._spelling.draft(entry) for entry in group]
        except ValueError as problem:
            return EntryRefused(f"an entry can't be recorded: {problem}")

    def _append(self, groups: Sequence[Drafted]) -> list[Answer]:
        """Write one batch; the lock is held and the end of the chain is known."""
        tails = recovery.pending_tails(self._state) if self._tails_pending else {}
        if tails:
            groups = [*self.draft([tuple(tails.values())]), *groups]
        head, lines, answers = self._head, list[bytes](), list[Answer]()
        for group in groups:
            if isinstance(group, EntryRefused):
                answers.append(group)
            else:
                records, head = self._seat(group, head, lines)
                answers.append(records)
        if lines:
            self._commit(lines, head)
            if self._tails_pending:
                with contextlib.suppress(OSError):  # the batch is durable; at worst a tail is recorded twice
                    recovery.mark_recorded(tails)
                    self._tails_pending = False
        for answer in answers:
            self._remember(answer)
        return answers[1:] if tails else answers

    def _seat(
        self, group: Sequence[Draft], head: Head, lines: list[bytes]
    ) -> tuple[tuple[Record, ...], Head]:
        """Make `group` the records after `head` and add their lines; return them, and the last as head."""
        records, seq, prev = list[Record](), head.seq, head.leaf
        for seq, draft in enumerate(group, head.seq + 1):
            line, leaf = draft.seat(seq, prev)
            records.append(self._spelling.record(draft, seq, prev, leaf))
            lines.append(line)
            prev = leaf
        return tuple(records), Head(seq, prev)

    def _commit(self, lines: list[bytes], head: Head) -> None:
        """Make `lines`, which end at `head`, the durable continuation of the log."""
        fresh = self._sealed
        if fresh:
            first = Segment(segments.segment_path(self._state, self._head.seq + 1), self._head.seq + 1, 0)
            self._switch_to(first, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL)
            if self._presence is not None:
                self._presence.advance(min(self._open_runs.values(), default=first.first))
        sealed = self._segment.size + sum(map(len, lines)) >= self._segment_bytes
        if sealed:
            _, head = self._seat([self._spelling.draft(log_entry(SEALED))], head, lines)
        data = b"".join(lines)
        try:
            write_all(self._file, data)
            sync(self._file)
            if fresh:
                sync_directory(self._segment.path.parent)
        except BaseException as problem:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self._segment.size)
            if isinstance(problem, OSError):
                raise self._give_up(unavailable(problem, self._segment.path)) from problem
            raise
        self._segment = self._segment.resized(self._segment.size + len(data))
        self.written += head.seq - self._head.seq
        self._head = head
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


def forget_failures() -> None:
    """Forget why this process gave up logs: a forked child leaves it to its parent to say so."""
    _failed.clear()
