"""The last record that this user saw of each log, kept outside the log.

Rules this module keeps:

- a pinned head only ever moves forward, so that a log which was cut can't hide it;
- a head is pinned by whoever wrote it or checked everything up to it, and by nobody else.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from licet.errors import AuditUnavailable
from licet.files import open_plain, replace
from licet.locks import wait_lock
from licet.state import failures, user_state

from licet_audit.chain import Head

_PATIENCE = 5.0  # seconds


def pinned(log_id: str) -> Head | None:
    """The head that was last seen of a log, None if none was.

    Raises:
        AuditUnavailable: the pin can't be read, or says nothing.
    """
    path = _folder() / log_id
    with failures(path):
        try:
            with os.fdopen(open_plain(path, os.O_RDONLY), "rb") as file:
                content = json.loads(file.read(4096))
            head = Head(content["seq"], content["leaf"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError):
            head = None
    if head is None or type(head.seq) is not int or not isinstance(head.leaf, str):
        raise AuditUnavailable(
            f"`{path}` holds no pinned head", advice="run `licet audit verify`, then move that file aside"
        )
    return head


def pin(log_id: str, head: Head) -> None:
    """Remember `head` unless a later one is pinned.

    Raises:
        AuditUnavailable: it can't be written.
    """
    folder = _folder()
    with failures(folder):
        lock = open_plain(folder / ".lock", os.O_RDWR | os.O_CREAT)
        try:
            if not wait_lock(lock, _PATIENCE):
                raise AuditUnavailable(f"`{folder}` stayed locked for {_PATIENCE:.0f} s")
            known = pinned(log_id)
            if known is None or known.seq < head.seq:
                content = json.dumps({"leaf": head.leaf, "seq": head.seq})
                replace(folder / log_id, content.encode("ascii"))
        finally:
            os.close(lock)


def _folder() -> Path:
    folder = user_state() / "heads"
    with failures(folder):
        folder.mkdir(mode=0o700, exist_ok=True)
    return folder
