"""Which logs there should be on this host, for this user, and what is found of each.

Rules this module keeps:

- every log is listed that is registered in the user's own state directory, or of which something was seen;
- nothing is written, and a log that can't be read hides none of the others;
- a log is `here` only if it continues the newest checkpoint that was seen of it. Its tiles are believed here;
  that each record is as it was written is for `verify` to say.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from licet.errors import AuditUnavailable, reason_of
from licet.state import StateDirectory, may_pin, read_state, registered

from licet_audit import seen, segments
from licet_audit.leaves import Snapshot
from licet_audit.notes import spelled
from licet_audit.recovery import is_alive
from licet_audit.seen import Seen
from licet_audit.segments import Damaged
from licet_audit.tiles import has_root

Found = Literal["here", "unused", "wiped", "shorter", "rewritten", "replaced", "unreadable"]


@dataclass(frozen=True, slots=True)
class KnownLog:
    """One log: where it should be, what is `found` there and why, and what was seen of it before.

    `opened` and `closed` say when it was first opened and last closed well here. `signed` is how many records
    its newest checkpoint covers, and `signed_at` when that was made; None where none was seen. `records` is
    how many there are now, None if that can't be told. Times are RFC 3339 in UTC.
    """

    log_id: str
    path: str | None
    found: Found
    detail: str
    in_use: bool = False
    records: int | None = None
    signed: int | None = None
    signed_at: str | None = None
    opened: str | None = None
    closed: str | None = None


def inventory() -> Iterator[KnownLog]:
    """All logs that are known, by their ids.

    Raises:
        AuditUnavailable: the user's own state directory can't be read.
    """
    return _examined(besides="")


def missing(besides: str = "") -> tuple[KnownLog, ...]:
    """The logs that are not what was seen of them, or gone; `besides` is the id of one not to look at.

    Raises:
        AuditUnavailable: as for `inventory`.
    """
    return tuple(one for one in _examined(besides) if one.found not in ("here", "unused"))


def _examined(besides: str) -> Iterator[KnownLog]:
    places = dict(registered())
    for log_id in sorted({*places, *seen.log_ids()} - {besides}):
        yield _examine(log_id, places.get(log_id))


def _examine(log_id: str, place: Path | None) -> KnownLog:
    try:
        known = seen.of(log_id)
    except AuditUnavailable as problem:
        return KnownLog(log_id, str(place) if place else None, "unreadable", problem.message)
    path = place or Path(known.path if known else "")
    head, at = (known.head, known.signed_at) if known else (None, None)
    bare = KnownLog(
        log_id,
        str(path),
        "unused",
        "nothing is known to have been written to it",
        signed=head.size if head else None,
        signed_at=None if at is None else spelled(at),
        opened=known.opened if known else None,
        closed=known.closed if known else None,
    )
    try:
        return _looked_at(bare, path, known)
    except (AuditUnavailable, Damaged, LookupError) as problem:
        return replace(bare, found="unreadable", detail=str(problem))
    except OSError as problem:
        return replace(bare, found="unreadable", detail=reason_of(problem))


def _looked_at(log: KnownLog, path: Path, known: Seen | None) -> KnownLog:
    """The same log with what is found at `path`."""
    state = read_state(path) if _is_there(path / "id") else None
    if state is None:
        where = "the directory holds no log any more" if _is_there(path) else "the directory is gone"
        return replace(log, found="wiped", detail=where) if known else log
    if state.log_id != log.log_id:
        other = f"another log is there, {state.log_id}"
        return replace(log, found="replaced", detail=other) if known else log
    if not may_pin(state):
        return replace(log, found="replaced", detail="a copy is in its place")
    snapshot = Snapshot.of(segments.listing(state), state.log_id)
    log = replace(log, in_use=_in_use(state), records=snapshot.size)
    found = _compared(state, snapshot, known)
    return replace(log, found=found[0], detail=found[1]) if found else log


def _compared(state: StateDirectory, snapshot: Snapshot, known: Seen | None) -> tuple[Found, str] | None:
    """Whether a log continues what was seen of it; None if there is nothing to say of it."""
    head = known.head if known else None
    if not snapshot.size:
        return ("wiped", "its records are gone") if known else None
    if head is None:
        return "here", "no checkpoint of it was seen yet"
    if head.size > snapshot.size:
        return "shorter", f"{head.size} records were signed, {snapshot.size} are there"
    if not has_root(state, snapshot, head.size, head.root):
        return "rewritten", f"its first {head.size} records are not those that were signed"
    return "here", "it continues the last checkpoint that was seen"


def _is_there(path: Path) -> bool:
    """Whether there is anything of this name; what can't be looked at is an error, not an absence."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _in_use(state: StateDirectory) -> bool:
    """Whether a writer of this log is alive, as far as that can be told."""
    with contextlib.suppress(OSError):
        for path in (state.path / "writers").iterdir():
            with contextlib.suppress(OSError):
                if is_alive(path):
                    return True
    return False
