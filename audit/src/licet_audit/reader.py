"""Reading a log without writing to it.

Rules this module keeps:

- nothing in the state directory is written; the only trace of reading is the checkpoint that `verify`
  remembers in the user's own state directory, and only for a log that is this user's or that nobody here has
  registered;
- a snapshot is taken under the lock, so what a writer is about to finish is not mistaken for damage;
- a run is looked up in the index, which lies in the user's cache; `records` and `verify` never ask it;
- memory does not grow with the log: `records` holds one line, `verify` the runs without a result.
"""

from __future__ import annotations

from collections.abc import Iterator

from licet.errors import AuditUnavailable, UsageError
from licet.record import Record
from licet.state import StateDirectory, failures, may_pin

from licet_audit import checkpointer, contents, keys, seen
from licet_audit.claims import Claim, Verification
from licet_audit.notes import Head, InvalidNote, Note
from licet_audit.seen import Seen
from licet_audit.segments import lines, record_of, snapshot
from licet_audit.verify import Verifier, unreadable


class LogReader:
    """The `licet.record.AuditReader` of a state directory."""

    def __init__(self, state: StateDirectory) -> None:
        self._state = state

    @property
    def state(self) -> StateDirectory:
        """The directory that the log lies in."""
        return self._state

    def records(self) -> Iterator[Record]:
        """All records, oldest first; a line that a writer did not finish is left out.

        Raises:
            AuditUnavailable: the log can't be read, or a line of it is no record.
        """
        with failures(self._state.path):
            for segment in snapshot(self._state):
                for line in lines(segment):
                    if line.complete:
                        yield record_of(segment, line)

    def records_of(self, run_id_prefix: str) -> tuple[Record, ...]:
        """The records of the one run whose id starts so, in the order of the log.

        Raises:
            UsageError: no run does, or several do.
            AuditUnavailable: the log can't be read.
        """
        from licet_audit.index import Index, Wanted

        with Index.open(self._state) as index:
            runs = list(index.runs(Wanted(run=run_id_prefix, limit=2)))
            if len(runs) > 1:
                raise UsageError(
                    f"`{run_id_prefix}` may mean `{runs[0].run_id}` or `{runs[1].run_id}`",
                    advice="give more of the run id",
                )
            if not runs:
                raise UsageError(
                    f"no run in this log has an id that starts with `{run_id_prefix}`",
                    advice="`licet audit list` shows the runs",
                )
            return index.records(runs[0].run_id)

    def content(self, commitment: str) -> bytes | None:
        """The content that is kept under a commitment; None if it is erased, or not what was committed to.

        Raises:
            AuditUnavailable: it can't be read.
        """
        return contents.read(self._state, commitment)

    def verify(self) -> Verification:
        """Check the whole log, and remember its checkpoint if all holds."""
        known, pin_problem = self._known()
        verifier = Verifier(self._state.log_id, known, pin_problem)
        checkpoint = self._checkpoint()
        if checkpoint is not None:
            verifier.roots.setdefault(Head.parse(checkpoint.text).size, None)
        try:
            for segment in snapshot(self._state):
                verifier.start(segment)
                for line in lines(segment):
                    verifier.check(line)
        except OSError as problem:
            return unreadable(f"`{problem.filename}`: {(problem.strerror or str(problem)).lower()}")
        result = verifier.result()
        if result.status == "proven" and pin_problem is None and checkpoint is not None:
            head = Head.parse(checkpoint.text)
            if verifier.roots[head.size] == head.root:
                return self._pin(result, checkpoint)
        return result

    def _checkpoint(self) -> Note | None:
        """The newest checkpoint beside the log, if the log's key signed it."""
        try:
            known, found = seen.of(self._state.log_id), checkpointer.signed(self._state)
            key = known.key if known and known.key else keys.published(self._state)
        except (AuditUnavailable, InvalidNote):
            return None
        return found if found and key and found.signed_by(key) else None

    def _known(self) -> tuple[Seen | None, str | None]:
        try:
            return seen.of(self._state.log_id), None
        except AuditUnavailable as problem:
            return None, problem.message

    def _pin(self, result: Verification, checkpoint: Note) -> Verification:
        try:
            known = seen.of(self._state.log_id)
            key = known.key if known and known.key else keys.published(self._state)
            if may_pin(self._state) and key is not None:
                seen.remember(self._state, key, checkpoint)
            return result
        except (AuditUnavailable, InvalidNote) as problem:
            claim = Claim("pinned", None, f"the checkpoint could not be remembered: {problem}")
            return Verification(result.status, result.records, (*result.claims, claim), result.not_proven)
