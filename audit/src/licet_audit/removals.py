"""Removals whose process died: what is recorded and not yet gone.

Rules this module keeps:

- a mark, `removal.begun`, is there from before the record until all that the record names is gone: whoever
  removes next, or joins the log as a writer, finishes it; a mark without a record means nothing;
- what goes is read from the record alone; what is stored of approvals goes by the store's own hand;
- segments are removed oldest first, so that what is left has no hole.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from licet.errors import ApprovalsUnavailable, reason_of
from licet.files import read_plain, sync_directory
from licet.locks import lock_file
from licet.state import StateDirectory

from licet_audit import contents, segments
from licet_audit.chain import log_record

LOCK = "removal.lock"  # held by who removes

_DIGITS = 20
_log = logging.getLogger("licet")


def finish_if_left(state: StateDirectory) -> None:
    """Finish what a removal that died left undone; the caller holds the lock of the log.

    What can't be finished keeps nobody from running code: it is told, and tried again the next time.
    """
    if not mark(state).exists():
        return
    try:
        with lock_file(state.path / LOCK, 0.0) as held:
            if held:  # else who removes is alive
                finish(state)
    except (OSError, ApprovalsUnavailable) as problem:
        why = reason_of(problem) if isinstance(problem, OSError) else problem.message
        _log.warning("an erasure that is recorded could not be finished: %s", why)


def remove(state: StateDirectory, body: Mapping[str, Any]) -> None:
    """Remove what the body of an `erased` or `pruned` record names; what is gone already is no error.

    Raises:
        OSError, ApprovalsUnavailable: not all of it is known to be gone.
    """
    if body.get("event") == "erased":
        contents.delete(state, commitments_of(body))
        _forget(state, [one for one in body.get("approvals") or () if isinstance(one, str)])
    elif body.get("event") == "pruned":
        for first in sorted(int(segment["first"]) for segment in body["segments"]):
            if first < body["begins"]:
                segments.segment_path(state, first).unlink(missing_ok=True)
        sync_directory(segments.log_directory(state))


def _forget(state: StateDirectory, runs: Sequence[str]) -> None:
    """Erase what is stored of the approvals of these runs."""
    if not runs:
        return
    from licet.approvals.store import NAME, ApprovalStore  # writers have no use for it

    if not (state.path / NAME).exists():
        return
    with ApprovalStore(state) as store:
        for run_id in runs:
            store.forget(run_id)


def commitments_of(body: Mapping[str, Any]) -> list[str]:
    """All commitments that an `erased` record is about; what is none is left out."""
    found: list[object] = list(body.get("orphans") or ())
    for one in body.get("commitments") or ():
        found += one["kept"].values()
    return [one for one in found if isinstance(one, str) and contents.is_commitment(one)]


def finish(state: StateDirectory) -> None:
    """Remove what records since the mark was made name; who calls it holds both locks.

    Raises:
        OSError: not all of it is known to be gone.
    """
    text = read_plain(mark(state), _DIGITS + 1).strip()
    since = int(text) if text.isdigit() else 0
    for _, line in segments.lines_from(segments.listing(state), since):
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):  # for `verify` to tell
            if (content := log_record(line)) is not None:
                remove(state, content["body"])
    unmark(state)


def mark(state: StateDirectory) -> Path:
    """The file that is there while a removal is under way; it holds the size of the log before it."""
    return state.path / "removal.begun"


def unmark(state: StateDirectory) -> None:
    """Say that nothing is left to be removed."""
    mark(state).unlink(missing_ok=True)
    sync_directory(state.path)
