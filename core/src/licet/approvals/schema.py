"""The tables of the store, and what kind of file it is.

Rules this module keeps:

- the file says that it is a store of approvals, of which version, and of which state directory;
- what no code of ours may write, the tables refuse too: an unknown state, more uses than were granted, an
  ending of something that never began;
- what people wrote and were shown lies apart, so that a list never reads it.
"""

from __future__ import annotations

import sqlite3

APPLICATION = 0x6C696365  # "lice"
VERSION = 1

_TABLES = """
CREATE TABLE home (log_id TEXT NOT NULL) STRICT;

CREATE TABLE approval (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    run_id TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('run', 'call')),
    state TEXT NOT NULL DEFAULT 'pending' CHECK (
        state IN ('pending', 'granted', 'denied', 'expired', 'withdrawn', 'revoked', 'consumed')),
    digest TEXT NOT NULL,
    shown TEXT NOT NULL,
    policy_digest TEXT NOT NULL,
    requester TEXT NOT NULL,
    requirements TEXT NOT NULL,
    fields TEXT NOT NULL,
    outline TEXT NOT NULL,
    asked TEXT NOT NULL,
    expires REAL NOT NULL,
    given TEXT NOT NULL DEFAULT '[]',
    scope TEXT NOT NULL DEFAULT 'once' CHECK (scope IN ('once', 'session', 'shape')),
    vary TEXT NOT NULL DEFAULT '[]',
    uses INTEGER DEFAULT 1 CHECK (uses > 0),
    reaches REAL NOT NULL DEFAULT 0,
    used INTEGER NOT NULL DEFAULT 0 CHECK (used >= 0 AND (uses IS NULL OR used <= uses)),
    ending TEXT CHECK (ending IN ('executed', 'failed_to_start', 'unknown')),
    reason TEXT NOT NULL DEFAULT '""',
    ended_by TEXT,
    seq INTEGER,
    changed TEXT NOT NULL,
    approved INTEGER UNIQUE,
    requested TEXT NOT NULL,
    alike TEXT NOT NULL,
    CHECK (state <> 'consumed' OR used IS uses),
    CHECK (used = 0 OR (seq IS NOT NULL AND approved IS NOT NULL)),
    CHECK (ending IS NULL OR used > 0)
) STRICT;
CREATE INDEX approval_by_run ON approval (run_id);
CREATE INDEX approval_by_state ON approval (state, number);
CREATE INDEX approval_reaching ON approval (requested) WHERE state = 'granted' AND scope <> 'once';
CREATE INDEX approval_alike ON approval (alike, approved) WHERE approved IS NOT NULL;

CREATE TABLE content (
    approval INTEGER PRIMARY KEY REFERENCES approval,
    document TEXT,
    frozen BLOB,
    sealed BLOB
) STRICT;

CREATE TABLE token (
    digest BLOB PRIMARY KEY,
    approval INTEGER NOT NULL REFERENCES approval
) STRICT, WITHOUT ROWID;

CREATE TABLE use (
    approval INTEGER NOT NULL REFERENCES approval,
    number INTEGER NOT NULL CHECK (number > 0),
    run_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    holder TEXT NOT NULL,
    ending TEXT CHECK (ending IN ('executed', 'failed_to_start', 'unknown')),
    PRIMARY KEY (approval, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX use_open ON use (holder) WHERE ending IS NULL;
"""


class Foreign(Exception):
    """Why a file is not the store that it should be, and what to do."""

    def __init__(self, why: str, advice: str) -> None:
        super().__init__(why)
        self.why, self.advice = why, advice


class Damaged(Exception):
    """What is wrong with a row."""


def prepare(db: sqlite3.Connection, log_id: str) -> None:
    """Make the tables in an empty file, or accept the file of the same state directory; nobody else writes.

    Raises:
        Foreign: it is something else, of a later version, or of another state directory.
    """
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if (application, version) == (0, 0) and not db.execute("SELECT 1 FROM sqlite_schema").fetchone():
        _make(db, log_id)
        return
    if application != APPLICATION:
        raise Foreign("is no store of approvals", "move it aside, then run again")
    if version != VERSION:
        raise Foreign(
            f"is of version {version}, and this reads version {VERSION}",
            "use the licet that wrote it, or move it aside: what is pending in it has to be asked again",
        )
    if db.execute("SELECT log_id FROM home").fetchall() != [(log_id,)]:
        raise Foreign(
            "belongs to another state directory", "move it back there: what was granted there holds there"
        )


def _make(db: sqlite3.Connection, log_id: str) -> None:
    db.execute("BEGIN IMMEDIATE")
    for statement in _TABLES.split(";\n"):
        if statement.strip():
            db.execute(statement)
    db.execute("INSERT INTO home VALUES (?)", (log_id,))
    db.execute(f"PRAGMA application_id = {APPLICATION}")
    db.execute(f"PRAGMA user_version = {VERSION}")
    db.execute("COMMIT")
