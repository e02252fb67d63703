"""Wall time along a log: where it went back by more than a second.

Rules this module keeps: the order of a log is that of its numbers; time is only told, it proves nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z", re.ASCII)
_TOLERANCE = timedelta(seconds=1)  # writers take their times before they wait for each other


@dataclass(slots=True)
class Moments:
    """The first and the last time of some records, and the places where time went back."""

    first_seq: int = 0
    first: str = ""
    last: str = ""
    jumps: int = 0
    place: int | None = None
    """The record before which time went back first."""
    told: str = ""

    def follow(self, seq: int, times: Sequence[str]) -> None:
        """Go on with the times of the records from `seq` on."""
        if not times:
            return
        if not self.first:
            self.first_seq, self.first = seq, times[0]
        in_order = list(times) == sorted(times)
        for number, time in enumerate(times[:1] if in_order else times, seq):
            self._step(number, time)
            self.last = time
        self.last = times[-1]

    def join(self, other: Moments) -> None:
        """Go on with a later part."""
        if not other.first:
            return
        self._step(other.first_seq, other.first)
        self.jumps += other.jumps
        if self.place is None:
            self.place, self.told = other.place, other.told
        if not self.first:
            self.first_seq, self.first = other.first_seq, other.first
        self.last = other.last

    def _step(self, seq: int, time: str) -> None:
        if time >= self.last or not self.last:
            return
        before, after = moment(self.last), moment(time)
        if before is not None and after is not None and before - after > _TOLERANCE:
            self.jumps += 1
            if self.place is None:
                self.place, self.told = seq, f"{self.last} is followed by {time}"


def moment(text: str) -> datetime | None:
    """The time that a record gives, to the microsecond; None if it gives none."""
    if not _TIME.fullmatch(text):
        return None
    try:
        return datetime.fromisoformat(f"{text[:26]}+00:00")
    except ValueError:
        return None
