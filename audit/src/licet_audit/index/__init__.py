"""An index over the runs of a log: derived from its segments, rebuildable, and proof of nothing.

Rules this package keeps:

- it answers as reading the whole log would; where its file can't be used it is made anew, or in memory;
- reading a log through it writes nothing into the directory of the log;
- records come from the segments, and only with the bytes that were indexed; verification never asks it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from licet.errors import AuditUnavailable
from licet.record import Record
from licet.state import StateDirectory, failures

from licet_audit.index import queries, store
from licet_audit.index.queries import ALL, By, Field, Statement, Wanted
from licet_audit.index.rows import RunRow
from licet_audit.index.store import Store
from licet_audit.index.updating import Hear, indexed, is_current, row_of, update
from licet_audit.segments import lines, record_of

__all__ = ["By", "Field", "Index", "RunRow", "Wanted"]

_PAGE = 1000  # rows that are in memory at once


class Index:
    """The runs of one log as they were when it was opened; use `Index.open`.

    Every method raises `AuditUnavailable` if the log can't be read.
    """

    def __init__(self, state: StateDirectory, hear: Hear) -> None:
        self._state = state
        self._hear = hear
        self._store = Store(store.path_of(state))

    @classmethod
    @contextmanager
    def open(cls, state: StateDirectory, hear: Hear = lambda done, total: None) -> Iterator[Index]:
        """Bring the index of a log up to date and answer from it; `hear` hears how far that is, in bytes.

        Raises:
            AuditUnavailable: the log can't be read, or a line of it is no record.
        """
        index = cls(state, hear)
        try:
            index._refresh()
            yield index
        finally:
            index._store.close()

    @property
    def note(self) -> str | None:
        """Why the index is in memory and will have to be made again; None if it is kept."""
        return self._store.note

    def runs(self, wanted: Wanted = ALL) -> Iterator[RunRow]:
        """The runs that are wanted, in the order of their first records."""
        left = wanted.limit
        while left is None or left > 0:
            size = _PAGE if left is None else min(_PAGE, left)
            rows = [row_of(values) for values in self._rows(queries.page(wanted, size))]
            yield from rows
            if len(rows) < size:
                return
            left = None if left is None else left - size
            wanted = replace(wanted, after=rows[-1].place)

    def count(self, wanted: Wanted = ALL) -> int:
        """How many runs are wanted; `limit` does not count."""
        [(number,)] = self._rows(queries.count(wanted))
        return int(number)

    def counts(self, wanted: Wanted, by: By) -> list[tuple[str, dict[str, int]]]:
        """How many of the runs that are wanted, by `by` and what was decided; `?` is what is unknown.

        A run counts under each of its rules and denied intents. Times come in order, all else with the most
        frequent first.
        """
        return queries.grouped(iter(self._rows(queries.counts(wanted, by))), by)

    def names(self, field: Field) -> list[str]:
        """All that runs of this log have in a field, in order."""
        return sorted(str(name) for (name,) in self._rows(queries.names(field)))

    def records(self, run_id: str) -> tuple[Record, ...]:
        """The records of the run `run_id`, in order; those of the log itself for `""`."""
        where = "run = (SELECT place FROM run WHERE run_id = ?)" if run_id else "run IS NULL"
        select = f"SELECT place, start, leaf FROM record WHERE {where} ORDER BY place"
        return self._records(Statement(select, (run_id,) if run_id else ()))

    def record(self, seq: int) -> Record | None:
        """Record `seq`, None if the log has none."""
        if not -(2**53) < seq < 2**53:
            return None
        select = "SELECT place, start, leaf FROM record WHERE seq = ?"
        intact = f"{select} AND place = ? - (SELECT seq FROM record WHERE place = 0)"
        found = self._records(Statement(intact, (seq, seq))) or self._records(
            Statement(f"{select} ORDER BY place LIMIT 1", (seq,))
        )
        return found[0] if found else None

    def _records(self, statement: Statement) -> tuple[Record, ...]:
        for anew in (False, True):
            if anew:
                self._refresh(anew=True)
            found = self._read(self._rows(statement))
            if found is not None:
                return found
        raise AuditUnavailable(
            f"the log in `{self._state.path}` changes while it is read", advice="run `licet audit verify`"
        )

    def _read(self, rows: Sequence[tuple[int, int, bytes]]) -> tuple[Record, ...] | None:
        """The records at these places; None if their bytes are not those that were indexed."""
        segments = indexed(self._store.db)
        found = []
        with failures(self._state.path):
            for place, start, leaf in rows:
                owner = next((one for one in reversed(segments) if one.first <= place), None)
                try:
                    segment = owner.segment(self._state) if owner else None
                    line = next(lines(segment, start), None) if segment else None
                except FileNotFoundError:
                    return None
                if segment is None or line is None or not line.complete:
                    return None
                try:
                    record = record_of(segment, line)
                except AuditUnavailable:
                    return None
                if record.leaf != leaf.hex():
                    return None
                found.append(record)
        return tuple(found)

    def _rows(self, statement: Statement) -> list[Any]:
        try:
            return self._store.db.execute(statement.sql, statement.parameters).fetchall()
        except sqlite3.Error as problem:
            if not self._store.in_file:
                raise
            self._store.move_to_memory(store.refusal(problem) or "it is damaged", copy=False)
            self._refresh()
            return self._store.db.execute(statement.sql, statement.parameters).fetchall()

    def _refresh(self, *, anew: bool = False) -> None:
        """Bring it up to date, wherever it can be kept, and hold on to what it says then."""
        while True:
            kept = self._store.in_file
            try:
                self._update(anew=anew)
                return
            except sqlite3.Error as problem:
                if not kept:
                    raise
                why = store.refusal(problem)
                if why is not None:
                    self._store.move_to_memory(why, copy=True)
                elif not self._store.begin_anew():
                    self._store.move_to_memory("it is damaged, and another process uses it", copy=False)

    def _update(self, *, anew: bool) -> None:
        db = self._store.db
        if db.in_transaction:
            db.execute("ROLLBACK")
        with failures(self._state.path):
            db.execute("BEGIN")  # from its first answer on nobody changes what is read
            if not anew and is_current(db, self._state):
                return
            db.execute("ROLLBACK")
            update(db, self._state, self._hear, anew=anew)
            db.execute("BEGIN")
            db.execute("SELECT count(*) FROM segment").fetchall()
