"""Which records of a log are meant: those of some runs, of a period, or all.

Rules this module keeps:

- a run is taken whole: it belongs to the period that it began in, with all of its records;
- a record of the log itself (without a run) belongs to the period that it was written in;
- records come in the order of the log, whatever was asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from licet.record import AuditReader, Record


@dataclass(frozen=True, slots=True)
class Selection:
    """Ids of runs, and a period from `since` on and before `until` (RFC 3339 in UTC); empty means all."""

    runs: tuple[str, ...] = ()
    since: str = ""
    until: str = ""

    @property
    def is_all(self) -> bool:
        """Whether nothing is left out."""
        return self == Selection()

    def as_json(self) -> dict[str, Any]:
        """What was asked for, as manifests say it."""
        return {"runs": list(self.runs), "since": self.since or None, "until": self.until or None}

    def records(self, records: Iterable[Record]) -> Iterator[Record]:
        """Those of `records` that are meant."""
        picker = Picker(self)
        return (record for record in records if picker.takes(record.entry.run_id, record.entry.time))


class Picker:
    """Goes through a log once, from its beginning, and says of each record whether it is meant."""

    def __init__(self, selection: Selection) -> None:
        self._wanted = selection
        self._runs = frozenset(selection.runs)
        self._began: dict[str, bool] = {}

    def takes(self, run_id: str, time: str) -> bool:
        """Whether the next record, of this run and time, is meant."""
        if self._runs and run_id not in self._runs:
            return False
        if not self._wanted.since and not self._wanted.until:
            return True
        if not run_id:
            return self._within(time)
        if run_id not in self._began:
            self._began[run_id] = self._within(time)
        return self._began[run_id]

    def _within(self, time: str) -> bool:
        since, until = self._wanted.since, self._wanted.until
        return time >= since and (not until or time < until)


def select(reader: AuditReader, runs: Iterable[str], since: str = "", until: str = "") -> Selection:
    """A selection by the beginnings of runs' ids and a period.

    Raises:
        UsageError: a beginning means no run, or several.
        AuditUnavailable: the log can't be read.
    """
    whole = (reader.records_of(run.upper())[0].entry.run_id for run in runs)
    return Selection(tuple(sorted(set(whole))), since, until)
