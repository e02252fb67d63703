"""Making proofs about a log from its hashes, its lines and its signed checkpoints.

Rules this module keeps:

- nothing is signed and nothing is written: a record that no checkpoint covers yet can't be proved yet;
- a proof is held against its checkpoint before it is handed out, so a log that was changed yields none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property

from licet.errors import AuditUnavailable, UsageError
from licet.state import StateDirectory, failures

from licet_audit import checkpointer, tree
from licet_audit.leaves import Snapshot
from licet_audit.notes import Head, InvalidNote, Note
from licet_audit.proofs import ConsistencyProof, RecordProof, RecordsProof
from licet_audit.segments import Damaged, lines_from, listing
from licet_audit.tiles import LogHashes

_VERIFY = "`licet audit verify` says what is wrong"


class Prover:
    """Proves what the newest checkpoint of a log covers, as the log was when it was first asked."""

    def __init__(self, state: StateDirectory) -> None:
        self._state = state

    @cached_property
    def checkpoint(self) -> Note:
        """The newest signed checkpoint.

        Raises:
            AuditUnavailable: there is none, or it can't be read.
        """
        try:
            note = checkpointer.signed(self._state)
        except InvalidNote as problem:
            raise AuditUnavailable(f"the log's checkpoint is none: {problem}", advice=_VERIFY) from None
        if note is None:
            raise AuditUnavailable(
                f"the log in `{self._state.path}` has no signed checkpoint, so nothing of it can be proved",
                advice="the next run in it signs one",
            )
        return note

    @cached_property
    def head(self) -> Head:
        """What that checkpoint says.

        Raises:
            AuditUnavailable: it says nothing.
        """
        try:
            return Head.parse(self.checkpoint.text)
        except InvalidNote as problem:
            raise AuditUnavailable(f"the log's checkpoint is none: {problem}", advice=_VERIFY) from None

    @cached_property
    def hashes(self) -> tree.Hashes:
        """The hashes of the log.

        Raises:
            AuditUnavailable: the log can't be read, or is shorter than its checkpoint says.
        """
        expected = self.head.size  # read before the log is listed, which then holds at least as much
        with failures(self._state.path):
            try:
                snapshot = Snapshot.of(listing(self._state), self._state.log_id)
            except Damaged as problem:
                raise AuditUnavailable(str(problem), advice=_VERIFY) from None
        if snapshot.size < expected:
            raise AuditUnavailable(
                f"the log has {snapshot.size} records, its checkpoint covers {expected}", advice=_VERIFY
            )
        return LogHashes(self._state, snapshot)

    def record(self, seq: int) -> RecordProof:
        """The proof of one record, with its line.

        Raises:
            UsageError: there is no such record, or no checkpoint covers it yet.
            AuditUnavailable: the log can't be read, or is not what was signed.
        """
        line = self._line(seq)
        if seq >= self.head.size:
            raise UsageError(
                f"record #{seq} is newer than the newest checkpoint, which covers {self.head.size} records",
                advice="a log in use is signed each second and whenever it is closed: try again",
            )
        with self._readable():
            hashes = tree.inclusion(self.hashes, seq, self.head.size)
        proof = RecordProof(seq, tuple(hashes), self.checkpoint, line)
        if not proof.holds(line):
            raise AuditUnavailable(f"record #{seq} is not the one that was signed", advice=_VERIFY)
        return proof

    def records(self, seqs: Sequence[int]) -> RecordsProof:
        """The proof of many records, whose numbers ascend and are covered; their lines are not looked at.

        Raises:
            AuditUnavailable: the log can't be read.
        """
        with self._readable():
            return RecordsProof(tuple(tree.cover(self.hashes, seqs, self.head.size)), self.checkpoint)

    def head_at(self, size: int) -> Head:
        """What a checkpoint of the first `size` records says; it is computed, and nobody has signed it.

        Raises:
            UsageError: the newest checkpoint covers fewer.
            AuditUnavailable: the log can't be read.
        """
        if size > self.head.size:
            raise UsageError(f"the newest checkpoint covers {self.head.size} records, not {size}")
        with self._readable():
            return Head(self.head.origin, size, tree.root(self.hashes, size))

    def signed_at(self, size: int) -> Note:
        """A signed checkpoint of the first `size` records: the newest, or one that was kept.

        Raises:
            UsageError: there is none.
            AuditUnavailable: it can't be read.
        """
        if size == self.head.size:
            return self.checkpoint
        if (note := checkpointer.kept(self._state, size)) is None:
            raise UsageError(
                f"no signed checkpoint of {size} records is kept",
                advice=f"the newest covers {self.head.size}, older ones are in `checkpoints` beside the log",
            )
        return note

    def continues(self, old: Head, checkpoint: Note | None = None) -> ConsistencyProof:
        """The proof that a checkpoint, by default the newest, continues the head `old`.

        Raises:
            UsageError: they are of another log, or in the wrong order, or newer than the newest checkpoint.
            AuditUnavailable: the log can't be read, or is not what one of them says.
        """
        note = checkpoint or self.checkpoint
        new = Head.parse(note.text)
        for one in (old, new):
            if one.origin != self.head.origin:
                raise UsageError(f"that is a checkpoint of `{one.origin}`, this log is `{self.head.origin}`")
            if one != self.head_at(one.size):
                raise AuditUnavailable(
                    f"the first {one.size} records of the log are not those of that checkpoint",
                    advice=_VERIFY,
                )
        if old.size > new.size:
            raise UsageError(
                f"{new.size} records can't continue {old.size}", advice="name the older one first"
            )
        with self._readable():
            hashes = tree.consistency(self.hashes, old.size, new.size)
        return ConsistencyProof(old.size, old.root, tuple(hashes), note)

    def _line(self, seq: int) -> bytes:
        with failures(self._state.path):
            segments = listing(self._state)
            if segments and segments[0].first > seq:
                raise UsageError(f"record #{seq} was pruned; the log begins with #{segments[0].first}")
            found = next(lines_from(segments, seq), None)
        if found is None:
            raise UsageError(
                f"there is no record #{seq} in this log", advice="`licet audit list` shows the last"
            )
        return found[1]

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            with failures(self._state.path):
                yield
        except LookupError as problem:
            raise AuditUnavailable(
                f"the tree of the log can't be computed: {problem}", advice=_VERIFY
            ) from None
