"""One writer of a log: it finds the end of the chain, writes behind it, and makes that durable.

Rules this module keeps:

- `log.lock` is held from reading the end of the chain to the end of the write that continues it; where all is
  as usual, others may write behind that before it is durable, and one sync serves them all;
- everything unusual is done under both locks, from the first look to the sync: joining, a new segment, an
  end that nobody vouches for;
- nothing is answered before a sync that began after its write has succeeded, whoever made that;
- the first write or sync that fails is the last: what it may have left is cut off, and whoever wrote that
  refuses from then on, because a second sync would claim success for data that the first one lost;
- it continues only a chain that ends in a record of this log, which continues the checkpoint that was seen;
- what a dead writer left is recovered before anything new is written, and a failure of this process that
  ended the writer before is recorded.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence

from licet.errors import AuditUnavailable, EntryRefused
from licet.files import sync_directory
from licet.plain import plain
from licet.record import Entry, Record
from licet.state import StateDirectory, failures, unavailable

from licet_audit import recovery, removals, segments
from licet_audit.batch import Answer
from licet_audit.chain import NOTHING, Draft, Head, Spelling, log_entry
from licet_audit.drafted import Drafted, Written, empty_answer, has_lines
from licet_audit.growing import Growing, Stopped
from licet_audit.identity import identity
from licet_audit.locking import LogLocks
from licet_audit.pinned import MOVE_ASIDE, require_continued
from licet_audit.segments import SEALED, Damaged, Segment

ALONE = 8  # batches in a row after which a writer takes itself to be the only one

_failed: dict[str, str] = {}
"""Why this process gave up writing to a log, by its id, until the log has recorded that."""


class ChainWriter:
    """Appends to the log of one state directory; used by one thread at a time, which takes its `locks`."""

    def __init__(self, state: StateDirectory, segment_bytes: int) -> None:
        self._state = state
        self._segment_bytes = segment_bytes
        self.joined = False
        self.written = 0  # records that are durable
        self._spelling = Spelling(state.log_id, {})
        self._locks: LogLocks | None = None
        self._tip: Growing | None = None
        self._sealed = True  # the next batch begins a segment
        self._tails_pending = True  # a writer that died may have set a tail aside without recording it
        self._head = NOTHING
        self._open_runs: dict[str, int] = {}  # run id to its first record
        self._row = 0  # batches since others wrote, as far as both locks were free for them
        self._presence: recovery.Writer | None = None
        self._broken: AuditUnavailable | None = None

    def prepare(self) -> None:
        """Make what the log needs and open its lock.

        Raises:
            AuditUnavailable: the log can't be written.
        """
        self._require_sound()
        if self._locks is not None:
            return
        with failures(self._state.path):
            for name in ("log", "writers", "quarantine"):
                folder = self._state.path / name
                if not folder.is_dir():
                    folder.mkdir(mode=0o700, exist_ok=True)
                    sync_directory(self._state.path)
            self._locks = LogLocks(self._state)
        self._tip = Growing(self._state, self._locks)
        self._spelling = Spelling(self._state.log_id, identity())

    @property
    def locks(self) -> LogLocks:
        """The locks of the log; there are none before `prepare`, and none after `abandon`."""
        if self._locks is None:
            raise RuntimeError("the log is not open")
        return self._locks

    @property
    def syncs(self) -> int:
        """How many syncs this writer made itself, since it opened the log."""
        return self._tip.syncs if self._tip is not None else 0

    def unlock(self) -> None:
        """Give back what locks are held; a writer that left has none."""
        if self._locks is not None:
            self._locks.release()

    def join(self) -> None:
        """Join the log, or begin it, unless that is done; close what dead writers left open.

        Both locks are held.

        Raises:
            AuditUnavailable: the log can't be written, or is not what was last seen.
        """
        if self.joined:
            return
        try:
            self._look()
            self._enter()
        except BaseException as problem:
            self.abandon()
            raise self._failure(problem) from problem
        self.joined = True

    def draft(self, groups: Iterable[Sequence[Entry]]) -> list[Drafted]:
        """Spell groups of entries as far as that goes before the lock is held; a group is refused alone."""
        return [self._draft(group) for group in groups]

    def append(self, groups: Sequence[Drafted]) -> Written | None:
        """Write all groups as one batch behind what others wrote; `log.lock` is held.

        None if all is not as usual: nothing is written then, and `write` does it under both locks.

        Raises:
            AuditUnavailable: nothing of the batch is written.
        """
        self._require_sound()
        if not self._tails_pending and not any(map(has_lines, groups)):
            return Written(list(map(empty_answer, groups)))
        try:
            return self._append(groups) if self._goes_on() else None
        except BaseException as problem:
            raise self._failure(problem) from problem

    def settle(self, written: Written) -> list[Answer]:
        """Make a batch durable, unless another process has; the lock of `sync.lock` is held.

        Raises:
            AuditUnavailable: nothing of the batch is known to be durable.
        """
        try:
            if written.end is not None:
                self._last.settle(written.data, written.end)
        except BaseException as problem:
            raise self._failure(problem) from problem
        self.written += written.records
        return written.answers

    def write(self, groups: Sequence[Drafted]) -> list[Answer]:
        """Append all groups as one durable batch; answer each with its records, or why it has none.

        Both locks are held. Where others append too, the one for that is given back before the sync.

        Raises:
            AuditUnavailable: nothing of the batch is known to be durable.
        """
        try:
            if not self._is_alone(groups):
                if (written := self.append(groups)) is not None:
                    self.locks.append.release()
                    return self.settle(written)
                self._look()
            return self._append_alone(groups)
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
        if self._tip is not None:
            self._tip.close()
        if self._locks is not None:
            self._locks.close()
        self._tip = self._locks = None
        self.joined = False
        if presence is not None:
            presence.release()

    def _give_up(self, failure: AuditUnavailable) -> AuditUnavailable:
        """Write nothing from now on; return the failure that says so at once."""
        message = f"the log was given up after a failure: {failure.message}"
        self._broken = AuditUnavailable(message, advice=failure.advice)
        _failed.setdefault(self._state.log_id, failure.message)
        return failure

    @property
    def _last(self) -> Growing:
        """The last segment, of a writer that is prepared."""
        if self._tip is None:
            raise RuntimeError("the log is not open")
        return self._tip

    def _require_sound(self) -> None:
        if self._broken is not None:
            raise AuditUnavailable(self._broken.message, advice=self._broken.advice)

    def _failure(self, problem: BaseException) -> BaseException:
        """What to raise for a problem; a fault of ours, or an interruption, is the end of this writer.

        It leaves a state that nobody thought of, and must leave nobody waiting.
        """
        if isinstance(problem, AuditUnavailable):
            return problem
        if isinstance(problem, Stopped):
            return self._give_up(problem.failure)
        if isinstance(problem, OSError):
            return unavailable(problem, self._state.path)
        failure = self._give_up(AuditUnavailable(f"the log failed: {type(problem).__name__}: {problem}"))
        return failure if isinstance(problem, Exception) else problem

    def _is_alone(self, groups: Sequence[Drafted]) -> bool:
        """Whether groups can be written with both locks held to the end, which spares words to others.

        So it is if nobody else wrote for a while. Whoever comes now waits for one sync, and then finds what
        was written durable and said.
        """
        usual = self.sound and not (self._sealed or self._tails_pending) and any(map(has_lines, groups))
        if not usual or not self._last.is_as_left():
            return False
        self._row += 1
        return self._row > ALONE

    def _goes_on(self) -> bool:
        """Move the end to where others wrote to, if all writers agree on that; False if it takes a look."""
        if self._sealed or self._tails_pending:
            return False
        size = self._last.agreed_size()
        return size is not None and self._is_followed_to(size)

    def _look(self) -> None:
        """Look at what other writers did since; cut off what a sync lost, set a torn tail aside."""
        self.locks.ends.cut_lost(self._state)
        last = self._last
        if last.file >= 0:
            if (size := last.size_now()) is None:
                cut = f"`{last.segment.path}` was cut, moved or deleted while in use"
                raise Stopped(AuditUnavailable(cut, advice=MOVE_ASIDE))
            if not (self._sealed or last.is_of_another_epoch()) and self._is_followed_to(size):
                return  # after a sealed segment somebody else may have begun the next one
        try:
            listed = segments.listing(self._state)
            tail = segments.find_tail(listed, self._state.log_id)
        except Damaged as problem:
            raise AuditUnavailable(str(problem), advice=MOVE_ASIDE) from None
        if self._presence is None:
            require_continued(self._state, listed, tail.head)
        self._head, self._sealed = tail.head, tail.sealed
        if listed:
            last.switch_to(listed[-1])
            if last.segment.size > tail.end:
                recovery.set_aside(self._state, last.segment, last.file, tail.end)
                self._tails_pending = True
            last.move_to(tail.end)

    def _is_followed_to(self, size: int) -> bool:
        """Move the end to where others wrote to, if they left this segment open and whole."""
        last = self._last
        if size == last.segment.size:
            return True
        self._row = 0
        head = segments.grown_head(last.file, last.segment, size, self._head)
        if head is None:
            return False
        self._head = head
        last.move_to(size)
        return True

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
            self._append_alone(self.draft([entries]))
            _failed.pop(self._state.log_id, None)
        removals.finish_if_left(self._state)

    def _draft(self, group: Sequence[Entry]) -> Drafted:
        try:
            return [self._spelling.draft(entry) for entry in group]
        except ValueError as problem:
            return EntryRefused(f"an entry can't be recorded: {problem}")

    def _append(self, groups: Sequence[Drafted]) -> Written:
        """Write one batch behind an end that all writers vouch for, and vouch for the new one."""
        answers, lines, head = self._seated(groups)
        sealed, head = self._seal_if_full(lines, head)
        data, before = b"".join(lines), self._head
        end = self._last.write_behind(data)
        self._head, self._sealed = head, sealed
        self._remember(answers)
        return Written(answers, data, end, head.seq - before.seq)

    def _append_alone(self, groups: Sequence[Drafted]) -> list[Answer]:
        """Write one batch and make it durable, with all that it stands on; both locks are held."""
        tails = recovery.pending_tails(self._state) if self._tails_pending else {}
        if tails:
            groups = [*self.draft([tuple(tails.values())]), *groups]
        answers, lines, head = self._seated(groups)
        if lines:
            self._commit(lines, head)
        else:
            self._last.sync()  # this writer goes on from what stands there, so that must not be lost any more
        if self._tails_pending:
            with contextlib.suppress(OSError):  # the batch is durable; at worst a tail is recorded twice
                recovery.mark_recorded(tails)
                self._tails_pending = False
        self._remember(answers)
        return answers[1:] if tails else answers

    def _seated(self, groups: Sequence[Drafted]) -> tuple[list[Answer], list[bytes], Head]:
        """Give all groups their places behind the end: their answers and lines, and the last record."""
        head, lines, answers = self._head, list[bytes](), list[Answer]()
        for group in groups:
            if isinstance(group, EntryRefused):
                answers.append(group)
            else:
                records, head = self._seat(group, head, lines)
                answers.append(records)
        return answers, lines, head

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
        """Make `lines`, which end at `head`, the durable continuation of the log; both locks are held."""
        last, new = self._last, self._sealed
        if new:
            if last.file >= 0:
                last.sync()  # nobody syncs a segment once it is left
            first = self._head.seq + 1
            last.switch_to(Segment(segments.segment_path(self._state, first), first, 0), make=True)
            if self._presence is not None:
                self._presence.advance(min(self._open_runs.values(), default=first))
        sealed, head = self._seal_if_full(lines, head)
        last.write(b"".join(lines), new=new)
        self.written += head.seq - self._head.seq
        self._head, self._sealed = head, sealed

    def _seal_if_full(self, lines: list[bytes], head: Head) -> tuple[bool, Head]:
        """Add the line that seals the segment if this batch fills it; whether it does, and the head."""
        sealed = self._last.segment.size + sum(map(len, lines)) >= self._segment_bytes
        if sealed:
            _, head = self._seat([self._spelling.draft(log_entry(SEALED))], head, lines)
        return sealed, head

    def _remember(self, answers: Iterable[Answer]) -> None:
        for answer in answers:
            for record in answer if isinstance(answer, tuple) else ():
                entry = record.entry
                event = entry.body.get("event") if entry.kind == "approval" else None
                if entry.kind == "result" or event == "waiting":
                    self._open_runs.pop(entry.run_id, None)
                elif event == "resumed" or (entry.kind == "execution" and entry.phase == "before"):
                    self._open_runs.setdefault(entry.run_id, record.seq)


def forget_failures() -> None:
    """Forget why this process gave up logs: a forked child leaves it to its parent to say so."""
    _failed.clear()
