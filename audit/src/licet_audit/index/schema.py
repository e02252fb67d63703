"""The tables of the index.

Rules this module keeps: a file is of exactly one version, which its name and its header say; text is compared
byte by byte, as Python compares it.
"""

from __future__ import annotations

import sqlite3

from licet_audit.index.rows import FIELDS

VERSION = 3  # of the tables and of what is gathered into them; another one means another file

COLUMNS = ", ".join(FIELDS)

_TABLES = (
    # `first` is the place of its first record, `indexed` the bytes that were read; the rest tells an edit
    """CREATE TABLE segment (
        number INTEGER PRIMARY KEY, name TEXT NOT NULL, first INTEGER NOT NULL, indexed INTEGER NOT NULL,
        size INTEGER NOT NULL, inode TEXT NOT NULL, changed TEXT NOT NULL)""",
    # `run` is null for what the log says of itself, `start` the byte in its segment
    """CREATE TABLE record (
        place INTEGER PRIMARY KEY, seq INTEGER NOT NULL, run INTEGER,
        start INTEGER NOT NULL, leaf BLOB NOT NULL)""",
    f"CREATE TABLE run ({COLUMNS.replace('place', 'place INTEGER PRIMARY KEY')})",
    # names in the lists of runs, and whom each run was for: its subject, and the one that it acted for
    """CREATE TABLE named (
        what TEXT NOT NULL, name TEXT NOT NULL, run INTEGER NOT NULL,
        PRIMARY KEY (what, name, run)) WITHOUT ROWID""",
    # which places an hour of time can be at: clocks are set back, so this bounds and decides nothing
    """CREATE TABLE hour (
        hour TEXT PRIMARY KEY, first INTEGER NOT NULL, last INTEGER NOT NULL) WITHOUT ROWID""",
)
_INDEXES = (
    "record_of_run ON record (run)",
    "run_by_id ON run (run_id)",
    "run_by_tenant ON run (tenant)",
    "run_by_effect ON run (effect)",
    "run_by_backend ON run (backend)",
    "run_by_termination ON run (termination)",
    "run_by_approval_state ON run (approval_state)",
    "run_by_effect_and_backend ON run (effect, backend)",
    "run_by_effect_and_termination ON run (effect, termination)",
    "run_by_backend_and_termination ON run (backend, termination)",
    "run_by_time ON run (time, effect)",
)
_NAMES = ("segment", "record", "run", "named", "hour")


def prepare(db: sqlite3.Connection) -> None:
    """Make the tables where there are none; inside a transaction.

    Raises:
        sqlite3.Error: they can't be made.
    """
    [(version,)] = db.execute("PRAGMA user_version")
    if version == VERSION:
        return
    for name in _NAMES:
        db.execute(f"DROP TABLE IF EXISTS {name}")
    for table in _TABLES:
        db.execute(table)
    for index in _INDEXES:
        db.execute(f"CREATE INDEX {index}")
    db.execute(f"PRAGMA user_version = {VERSION}")


def empty(db: sqlite3.Connection) -> None:
    """Forget everything; inside a transaction."""
    for name in _NAMES:
        db.execute(f"DELETE FROM {name}")
