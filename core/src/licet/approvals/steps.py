"""What a transaction of the store reads and changes, step by step.

Rules this module keeps:

- each step works on the connection that it is given, within a transaction of its caller;
- an approval is changed only in the state that it was seen in, and a use is counted only where one is left;
- content stays while something can come of it: a grant, a use under way; the last document of its kind that
  was approved stays longer, since people compare with it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, replace
from typing import Any

from licet.approvals import rows
from licet.approvals.clocks import Moment, age
from licet.approvals.forms import OPEN, Ending, State, StoredApproval
from licet.errors import AnswerRefused, ApprovalClosed, NoApproval
from licet.output import bounded

COMPARABLE: tuple[State, ...] = ("granted", "consumed", "expired")
"""States of an approval that people gave and did not take back."""

_ASK_ANEW = "run the code again, which asks anew"
IS_USING = "SELECT 1 FROM use WHERE holder = ? AND ending IS NULL"
HAS_BEGUN = "SELECT 1 FROM use WHERE approval = (SELECT number FROM approval WHERE id = ?) AND run_id = ?"
_USE_IS_OPEN = "SELECT 1 FROM use WHERE approval = ? AND ending IS NULL"


def whole(db: sqlite3.Connection, where: str, values: Sequence[Any]) -> list[StoredApproval]:
    """The approvals that meet a condition (and stand in its order), with all of their content."""
    query = f"SELECT {rows.COLUMNS}, document, frozen, sealed FROM approval LEFT JOIN content"
    found = db.execute(f"{query} ON content.approval = approval.number WHERE {where}", values)
    return [
        replace(rows.stored(row, document), frozen=frozen, sealed=sealed)
        for *row, document, frozen, sealed in found
    ]


def found(db: sqlite3.Connection, approval: str) -> tuple[int, StoredApproval]:
    """The number of an approval, and what the store has of it but for its content.

    Raises:
        NoApproval: there is none.
    """
    row = db.execute(f"SELECT {rows.COLUMNS} FROM approval WHERE id = ?", (approval,)).fetchone()
    if row is None:
        raise NoApproval(
            f"there is no approval `{bounded(approval, 80)}`",
            advice="`licet approvals list --all` shows their ids",
        )
    return row[0], rows.stored(row)


def still_open(db: sqlite3.Connection, approval: str, at: Moment) -> tuple[int, StoredApproval]:
    """As `found`, of an approval that something can still become of.

    Raises:
        NoApproval: there is none.
        ApprovalClosed: it is over.
    """
    number, seen = found(db, approval)
    state = as_of(at, seen).state
    if state not in OPEN:
        why = f": {seen.reason}" if seen.reason and state == seen.state else ""
        words = {"expired": "has expired", "consumed": "is spent"}
        raise ApprovalClosed(
            f"the approval `{seen.request.id}` {words.get(state, f'was {state}')}{why}", advice=_ASK_ANEW
        )
    return number, seen


def all_open(db: sqlite3.Connection) -> Iterator[tuple[int, StoredApproval]]:
    """All that are marked as pending or granted, whether or not their time is over."""
    query = f"SELECT {rows.COLUMNS} FROM approval WHERE state IN ('pending', 'granted') ORDER BY +number"
    for row in db.execute(query).fetchall():
        yield row[0], rows.stored(row)


def as_of(at: Moment, one: StoredApproval) -> StoredApproval:
    """An approval as it is at an instant: expired if its time is over, and without content then."""
    if one.state not in OPEN:
        return one
    lasts = one.reach.expires if one.state == "granted" else one.request.expires
    if age(one.request.asked, one.changed or one.request.asked, at) < lasts:
        return one
    return replace(one, state="expired", frozen=None, sealed=None)


def now_is(db: sqlite3.Connection, number: int) -> StoredApproval:
    """The approval of a number, with its content."""
    return whole(db, "number = ?", (number,))[0]


def change(
    db: sqlite3.Connection, number: int, before: StoredApproval, at: Moment, columns: Mapping[str, Any]
) -> None:
    """Change columns of an approval that is as it was seen, and drop the content that is not needed after it.

    Raises:
        ApprovalClosed: it is in another state.
    """
    if not rows.update(db, number, before.state, {**columns, "changed": rows.text(astuple(at))}):
        raise ApprovalClosed(f"the approval `{before.request.id}` has changed meanwhile", advice=_ASK_ANEW)
    drop(db, number)


def spend_token(db: sqlite3.Connection, number: int, token: str) -> None:
    """Note that a signed token was used.

    Raises:
        AnswerRefused: it was used before, for whatever approval.
    """
    try:
        db.execute("INSERT INTO token VALUES (?, ?)", (rows.token_digest(token), number))
    except sqlite3.IntegrityError:
        raise AnswerRefused(
            "the token was used before, and is good for one answer", advice="have another one signed"
        ) from None


def grant_number(db: sqlite3.Connection) -> int:
    """The number of the next grant, counted from 1."""
    (last,) = db.execute("SELECT coalesce(max(approved), 0) FROM approval").fetchone()
    return int(last) + 1


def begin_use(
    db: sqlite3.Connection,
    number: int,
    before: StoredApproval,
    at: Moment,
    *,
    run_id: str,
    seq: int,
    holder: str,
) -> None:
    """Count a use, in the name of the process that `holder` stands for.

    Raises:
        ApprovalClosed: none is left, or the run has begun by this approval.
    """
    began = "SELECT 1 FROM use WHERE approval = ? AND run_id = ?"
    if before.request.kind == "run" and db.execute(began, (number, run_id)).fetchone():
        raise ApprovalClosed(
            f"the run `{bounded(run_id, 80)}` has begun by this approval, and does so once",
            advice=_ASK_ANEW,
        )
    counted = db.execute(
        "UPDATE approval SET used = used + 1, seq = ?, ending = NULL, changed = ?, "
        "state = CASE WHEN used + 1 = uses THEN 'consumed' ELSE state END "
        "WHERE number = ? AND state = 'granted' AND (uses IS NULL OR used < uses)",
        (seq, rows.text(astuple(at)), number),
    )
    if counted.rowcount != 1:
        raise ApprovalClosed(f"the approval `{before.request.id}` is spent", advice=_ASK_ANEW)
    db.execute(
        "INSERT INTO use (approval, number, run_id, seq, holder) "
        "SELECT number, used, ?, seq, ? FROM approval WHERE number = ?",
        (run_id, holder, number),
    )


def take_sealed(db: sqlite3.Connection, number: int, before: StoredApproval) -> bytes:
    """Hand out the suspended run, once.

    Raises:
        ApprovalClosed: it has gone on, or none was kept.
    """
    (sealed,) = db.execute("SELECT sealed FROM content WHERE approval = ?", (number,)).fetchone() or (None,)
    if sealed is None:
        raise ApprovalClosed(
            f"no suspended run waits for the approval `{before.request.id}`: it has gone on already",
            advice=_ASK_ANEW,
        )
    db.execute("UPDATE content SET sealed = NULL WHERE approval = ?", (number,))
    return bytes(sealed)


def end_use(db: sqlite3.Connection, number: int, use: int, ending: Ending, at: Moment) -> None:
    """Note what came of a use; the ending of the last one is that of the approval."""
    db.execute("UPDATE use SET ending = ? WHERE approval = ? AND number = ?", (ending, number, use))
    db.execute(
        "UPDATE approval SET ending = ?, changed = ? WHERE number = ? AND used = ?",
        (ending, rows.text(astuple(at)), number, use),
    )
    drop(db, number)


def drop(db: sqlite3.Connection, number: int) -> None:
    """Drop the content that nothing can come of any more: of this approval, and of the one granted before."""
    state, approved, alike = db.execute(
        "SELECT state, approved, alike FROM approval WHERE number = ?", (number,)
    ).fetchone()
    if state in OPEN:
        if approved is not None:
            earlier = "SELECT number FROM approval WHERE alike = ? AND approved < ? ORDER BY approved DESC"
            for (before,) in db.execute(f"{earlier} LIMIT 1", (alike, approved)).fetchall():
                _drop_over(db, before)
        return
    _drop_over(db, number)


def _drop_over(db: sqlite3.Connection, number: int) -> None:
    """Drop what is not needed of an approval, if that is over and no use of it is under way."""
    state, approved, alike = db.execute(
        "SELECT state, approved, alike FROM approval WHERE number = ?", (number,)
    ).fetchone()
    if state in OPEN or db.execute(_USE_IS_OPEN, (number,)).fetchone():
        return
    later = "SELECT 1 FROM approval WHERE alike = ? AND approved > ?"
    if approved is None or state not in COMPARABLE or db.execute(later, (alike, approved)).fetchone():
        db.execute("DELETE FROM content WHERE approval = ?", (number,))
    else:
        db.execute("UPDATE content SET frozen = NULL, sealed = NULL WHERE approval = ?", (number,))
