"""Making proofs about a log from its hashes, its lines and its signed checkpoints.

Rules this module keeps:

- nothing is signed and nothing is written: a record that no checkpoint covers yet can't be proved yet;
- a proof is held against its checkpoint before it is handed out, so a log that was changed yields none.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from licet.errors import AuditUnavailable, UsageError
from licet.state import StateDirectory, failures

from licet_audit import tree
from licet_audit.checkpointer import signed
from licet_audit.lines import numbered
from licet_audit.notes import Head, InvalidNote, Note
from licet_audit.proofs import ConsistencyProof, RecordProof
from licet_audit.segments import lines_from, listing
from licet_audit.tiles import LogHashes

_VERIFY = "`licet audit verify` says what is wrong"


class Prover:
    """Proves what the newest checkpoint of a log covers."""

    def __init__(self, state: StateDirectory) -> None:
        self._state = state

    @cached_property
    def hashes(self) -> tree.Hashes:
        """The hashes of the log.

        Raises:
            AuditUnavailable: the log can't be read.
        """
        return LogHashes(self._state)

    @cached_property
    def checkpoint(self) -> Note:
        """The newest signed checkpoint.

        Raises:
            AuditUnavailable: there is none, or it can't be read.
        """
        note = signed(self._state)
        if note is None:
            raise AuditUnavailable(
                f"the log in `{self._state.path}` has no signed checkpoint, so nothing of it can be proved",
                advice="the next run under this policy signs one",
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
                advice="a log that is in use signs each second, and one that is closed signs all: try again",
            )
        with failures(self._state.path), _found(seq):
            hashes = tree.inclusion(self.hashes, seq, self.head.size)
        proof = RecordProof(seq, tuple(hashes), self.checkpoint, line)
        if not proof.holds(line):
            raise AuditUnavailable(f"record #{seq} is not what was signed", advice=_VERIFY)
        return proof

    def continues(self, old: Head | int, new: Note | None = None) -> ConsistencyProof:
        """The proof that a checkpoint (by default the newest) continues an old one, or an old size.

        Raises:
            UsageError: one of them is larger than it can be, or of another log.
            AuditUnavailable: the log can't be read, or does not continue what was signed.
        """
        checkpoint = new or self.checkpoint
        head = Head.parse(checkpoint.text)
        size = old if isinstance(old, int) else old.size
        if head.size > self.head.size or size > head.size:
            raise UsageError(
                f"{max(size, head.size)} records are more than a checkpoint of {min(head.size, self.head.size)} covers",
                advice="give the older one first, and none that is newer than the newest checkpoint",
            )
        if not {head.origin, self.head.origin if isinstance(old, int) else old.origin} <= {self.head.origin}:
            raise UsageError(f"that is a checkpoint of another log than `{self.head.origin}`")
        with failures(self._state.path), _found(size):
            root = tree.root(self.hashes, size)
            proof = ConsistencyProof(
                size, root, tuple(tree.consistency(self.hashes, size, head.size)), checkpoint
            )
        if not isinstance(old, int) and old.root != root:
            raise AuditUnavailable(
                f"the first {size} records of the log are not those that were signed before", advice=_VERIFY
            )
        if not proof.holds():
            raise AuditUnavailable("the records are not those that were signed", advice=_VERIFY)
        return proof
