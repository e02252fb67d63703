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

from licet.errors import UsageError
from licet.record import Record
from licet.state import StateDirectory, failures

from licet_audit import contents
from licet_audit.claims import Verification
from licet_audit.segments import lines, record_of, snapshot


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
        from licet_audit.verification.verify import verify

        return verify(self._state)
