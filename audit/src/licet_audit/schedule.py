"""When a log is due for a checkpoint.

Rules this module keeps:

- a record waits at most `DELAY` for the checkpoint that covers it, and at most `RECORDS` wait at once;
- a log where nothing happens has its head signed again each `HEARTBEAT`, so that silence is proved too;
- a checkpoint that failed is tried again with those of later records, the heartbeat or the end, and not
  before: a disk that is full is not asked all the time.
"""

from __future__ import annotations

DELAY = 1.0  # seconds
RECORDS = 1000
HEARTBEAT = 60.0  # seconds


class Schedule:
    """What one writer of a log still has to have signed; all times are seconds of one monotonic clock."""

    def __init__(self, now: float) -> None:
        self._new = 0  # records since the last try
        self._failed = 0  # records of tries that failed
        self._deadline: float | None = None
        self._heartbeat = now + HEARTBEAT

    @property
    def unsigned(self) -> int:
        """Records of this writer that no checkpoint covers, as far as it knows."""
        return self._new + self._failed

    def appended(self, records: int, now: float) -> bool:
        """Note new records; True if `wait` is shorter than it was."""
        before = self._new
        self._new += records
        if self._deadline is None:
            self._deadline = now + DELAY
            return True
        return before < RECORDS <= self._new

    def wait(self, now: float) -> float:
        """Seconds until something is due, 0 if it is."""
        if self._deadline is None:
            return max(self._heartbeat - now, 0.0)
        return 0.0 if self._new >= RECORDS else max(self._deadline - now, 0.0)

    def begin(self, now: float) -> int:
        """A checkpoint is being made now: return how many records it is for, 0 for a heartbeat."""
        due, self._new, self._failed, self._deadline = self.unsigned, 0, 0, None
        self._heartbeat = now + HEARTBEAT
        return due

    def failed(self, due: int) -> None:
        """It could not be made: those records are unsigned still."""
        self._failed += due
