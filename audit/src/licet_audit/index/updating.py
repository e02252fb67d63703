"""Bringing an index up to date with the segments of its log.

Rules this module keeps:

- each step is one transaction: it looks at the log, checks that what is indexed is still there, reads on from
  where the index stopped; so processes may take turns, and one that dies leaves a whole index;
- what was replaced, shortened, pruned or edited is indexed anew from the first record: a segment must be the
  same file, unchanged but for growing, and the last indexed record must have the bytes that it had;
- a line that is no record stops the index with an error, as it stops every other reader.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from licet.errors import AuditUnavailable
from licet.record import VERSION
from licet.state import StateDirectory

from licet_audit import tree
from licet_audit.chain import MAX_LINE
from licet_audit.index import schema
from licet_audit.index.rows import FIELDS, LISTS, Gathered, RunRow
from licet_audit.segments import Line, Segment, lines, log_directory, record_of, snapshot

STEP = 32 * 2**20  # bytes of records in one transaction

Hear = Callable[[int, int], None]
"""Hears how many bytes of how many are indexed."""


@dataclass(frozen=True, slots=True)
class Indexed:
    """A segment as far as it is indexed: the place of its first record, and how many of its bytes were read.

    `size`, `inode` and `changed` are those of the file when it was looked at.
    """

    number: int
    name: str
    first: int
    indexed: int
    size: int
    inode: str
    changed: str

    def segment(self, state: StateDirectory) -> Segment:
        """The indexed part of the file."""
        return Segment(log_directory(state) / self.name, 0, self.indexed)


def update(db: sqlite3.Connection, state: StateDirectory, hear: Hear, *, anew: bool = False) -> None:
    """Read all that the index does not have yet; `anew` forgets first what it has.

    Raises:
        AuditUnavailable: a line of the log is no record; what is before it is indexed.
        OSError: the log can't be read.
        sqlite3.Error: the index can't be written.
    """
    done = False
    while not done:
        db.execute("BEGIN IMMEDIATE")
        try:
            step = _Step(db, state)
            if anew:
                schema.empty(db)
                anew = False
            done = step.take(hear)
        except BaseException:
            if db.in_transaction:  # a full disk ended it already
                db.execute("ROLLBACK")
            raise
        db.execute("COMMIT")
        if step.problem is not None:
            raise step.problem


def is_current(db: sqlite3.Connection, state: StateDirectory) -> bool:
    """Whether the index has all that the log has; inside a transaction, which then reads what was checked.

    Raises:
        OSError: the log can't be read.
        sqlite3.Error: the index can't be read.
    """
    [(version,)] = db.execute("PRAGMA user_version")
    if version != schema.VERSION:
        return False
    known, listed = indexed(db), _look(state)
    return (
        len(known) == len(listed)
        and all(old.indexed == segment.size for old, (segment, _) in zip(known, listed, strict=True))
        and _still_there(db, state, known, listed)
    )


def indexed(db: sqlite3.Connection) -> list[Indexed]:
    """The segments that are indexed, in order."""
    names = "number, name, first, indexed, size, inode, changed"
    return [Indexed(*row) for row in db.execute(f"SELECT {names} FROM segment ORDER BY number")]


class _Step:
    """One transaction's worth of records."""

    def __init__(self, db: sqlite3.Connection, state: StateDirectory) -> None:
        schema.prepare(db)
        self.problem: AuditUnavailable | None = None
        self._db = db
        self._state = state
        self._runs: dict[str, Gathered] = {}
        self._records: list[tuple[int, int, int | None, int, bytes]] = []
        self._place = 0
        self._left = STEP

    def take(self, hear: Hear) -> bool:
        """Index the next records; True if these were the last."""
        listed = _look(self._state)
        known = indexed(self._db)
        if not _still_there(self._db, self._state, known, listed):
            schema.empty(self._db)
            known = []
        [(self._place,)] = self._db.execute("SELECT coalesce(max(place) + 1, 0) FROM record")
        total = sum(segment.size for segment, _ in listed)
        done = sum(one.indexed for one in known[:-1])
        for number in range(max(len(known) - 1, 0), len(listed)):
            segment, look = listed[number]
            old = known[number] if number < len(known) else None
            first, start = (old.first, old.indexed) if old else (self._place, 0)
            end = self._read(segment, start)
            self._db.execute(
                "INSERT OR REPLACE INTO segment VALUES (?, ?, ?, ?, ?, ?, ?)",
                (number, segment.path.name, first, end, *look),
            )
            done += end
            if self._left <= 0 or self.problem is not None:
                break
        self._flush()
        hear(done, total)
        return self._left > 0

    def _read(self, segment: Segment, start: int) -> int:
        """Take in the lines from `start` on; return where the first one begins that was not taken."""
        end = start
        try:
            for line in lines(segment, start):
                if not line.complete or self._left <= 0:
                    break
                self._note(segment, line)
                size = len(line.data) + 1
                end = line.offset + size
                self._left -= size
        except AuditUnavailable as problem:
            self.problem = problem
        return end

    def _note(self, segment: Segment, line: Line) -> None:
        content = _parsed(line.data) or record_of(segment, line).as_json()
        run_id, seq = content["run_id"], content["seq"]
        run = self._gathered(run_id, seq, content["time"]) if run_id else None
        if run is not None:
            run.note(seq, content["kind"], content.get("phase"), content["body"])
        leaf = tree.leaf(line.data)
        self._records.append((self._place, seq, run.place if run else None, line.offset, leaf))
        self._place += 1

    def _gathered(self, run_id: str, seq: int, time: str) -> Gathered:
        run = self._runs.get(run_id)
        if run is None:
            select = f"SELECT {schema.COLUMNS} FROM run WHERE run_id = ?"
            row = self._db.execute(select, (run_id,)).fetchone()
            run = Gathered.of(row_of(row)) if row else Gathered(run_id, seq, seq, time, self._place)
            self._runs[run_id] = run
        return run

    def _flush(self) -> None:
        self._db.executemany("INSERT INTO record VALUES (?, ?, ?, ?, ?)", self._records)
        marks = ", ".join("?" * len(FIELDS))
        rows = [run.row() for run in self._runs.values()]
        self._db.executemany(f"INSERT OR REPLACE INTO run VALUES ({marks})", map(_values, rows))
        self._db.executemany("INSERT OR IGNORE INTO named VALUES (?, ?, ?)", _named(rows))
        self._db.executemany(
            "INSERT INTO hour VALUES (?, ?, ?) ON CONFLICT (hour) DO UPDATE "
            "SET first = min(first, excluded.first), last = max(last, excluded.last)",
            ((row.time[:13], row.place, row.place) for row in rows),
        )


def _still_there(
    db: sqlite3.Connection,
    state: StateDirectory,
    known: Sequence[Indexed],
    listed: Sequence[tuple[Segment, _Look]],
) -> bool:
    """Whether what is indexed is what the log begins with."""
    if len(known) > len(listed):
        return False
    for old, (segment, look) in zip(known, listed, strict=False):
        grows = old is known[-1] and look[0] != old.size and segment.size >= old.indexed
        same = (old.size, old.inode, old.changed) == look or (grows and old.inode == look[1])
        if segment.path.name != old.name or not same:
            return False
    last = db.execute("SELECT place, start, leaf FROM record ORDER BY place DESC LIMIT 1").fetchone()
    if last is None:
        return True
    owner = next((one for one in reversed(known) if one.first <= last[0]), None)
    if owner is None:
        return False
    line = next(lines(owner.segment(state), last[1]), None)
    return line is not None and line.complete and tree.leaf(line.data) == last[2]


_Look = tuple[int, str, str]


def _look(state: StateDirectory) -> list[tuple[Segment, _Look]]:
    return [(segment, _looks(segment)) for segment in snapshot(state)]


def _looks(segment: Segment) -> _Look:
    """What tells whether a file is still the same: size, inode, and the times of its last change.

    As texts, since SQLite holds no larger integers than 63 bits.
    """
    found = segment.path.lstat()
    return found.st_size, f"{found.st_dev}:{found.st_ino}", f"{found.st_ctime_ns}:{found.st_mtime_ns}"


def _parsed(line: bytes) -> dict[str, Any] | None:
    """A record in its canonical spelling, fast; None where that takes a closer look."""
    if len(line) >= MAX_LINE:
        return None
    try:
        content: dict[str, Any] = orjson.loads(line)
        if orjson.dumps(content, option=orjson.OPT_SORT_KEYS) != line or content["v"] != VERSION:
            return None
        kinds = tuple([type(content[name]) for name in _USED])
        phase = content.get("phase")
    except (ValueError, TypeError, KeyError):
        return None
    sound = kinds == _KINDS and -(2**53) < content["seq"] < 2**53 and (phase is None or type(phase) is str)
    return content if sound else None


_USED = ("run_id", "kind", "time", "seq", "body")
_KINDS = (str, str, str, int, dict)


def _values(row: RunRow) -> tuple[Any, ...]:
    """A row as SQLite holds it: lists as JSON."""
    return tuple(
        orjson.dumps(getattr(row, name)).decode() if name in LISTS else getattr(row, name) for name in FIELDS
    )


def row_of(values: Sequence[Any]) -> RunRow:
    """A row as `RunRow`, from what SQLite holds."""
    named = dict(zip(FIELDS, values, strict=True))
    return RunRow(
        **named
        | {name: tuple(orjson.loads(named[name])) for name in LISTS}
        | {"executed": bool(named["executed"])}
    )


def _named(rows: Sequence[RunRow]) -> Iterator[tuple[str, str, int]]:
    for row in rows:
        for what in LISTS:
            for name in getattr(row, what):
                yield what, name, row.place
        for name in {row.subject, row.on_behalf_of} - {None}:
            yield "subjects", str(name), row.place
