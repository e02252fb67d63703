"""The key of a log: an Ed25519 seed in the user's own state directory, and its public half beside the log.

Rules this module keeps:

- the seed never lies beside the log, so whoever can only write the log can sign nothing;
- it is made once. A key that is lost is not replaced: a second one would look like a forger's;
- a seed that others own or can read signs nothing;
- the public key beside the log is for handing on; nobody trusts it because it lies there.
"""

from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from licet.errors import AuditUnavailable
from licet.files import create_once, make_folder, open_plain, read_plain, replace
from licet.state import StateDirectory, failures, user_state

from licet_audit import notes, seen

if TYPE_CHECKING:
    from licet_audit.notes import Signer, VerifierKey

_SEED = 32  # bytes
_PUBLIC = "log.vkey"
_ADVICE = "bring it back from a backup, or move the state directory aside to begin a new log"


def signer(state: StateDirectory) -> Signer:
    """What signs the checkpoints of this log; its key is made if it never had one.

    Raises:
        AuditUnavailable: the key is lost, damaged, open to others, or not the one that this user has pinned.
    """
    path = user_state() / "keys" / state.log_id
    known = seen.of(state.log_id)
    pinned = known.key if known else None
    with failures(path):
        if pinned is None and not path.exists():
            make_folder(path.parent)
            create_once(path, secrets.token_bytes(_SEED))
        found = notes.Signer(notes.origin_of(state.log_id), _seed(path))
    if pinned is not None and pinned != found.key:
        raise AuditUnavailable(
            f"`{path}` is another key than the one that signed this log (SHA-256 {pinned.fingerprint})",
            advice=_ADVICE,
        )
    with failures(state.path):
        _publish(state, found.key)
    return found


def published(state: StateDirectory) -> VerifierKey | None:
    """The public key that lies beside the log, put there by whoever wrote it; None if none does.

    Raises:
        InvalidNote: the file holds no key.
        AuditUnavailable: it can't be read.
    """
    path = state.path / _PUBLIC
    with failures(path):
        try:
            text = read_plain(path, notes.MOST_BYTES).decode("utf-8", "replace")
        except FileNotFoundError:
            return None
    return notes.VerifierKey.parse(text)


def _seed(path: Path) -> bytes:
    try:
        descriptor = open_plain(path, os.O_RDONLY)
    except FileNotFoundError:
        raise AuditUnavailable(f"the key of this log is gone from `{path}`", advice=_ADVICE) from None
    with os.fdopen(descriptor, "rb") as file:
        found, seed = os.fstat(file.fileno()), file.read(_SEED + 1)
    if sys.platform != "win32" and (found.st_uid != os.geteuid() or found.st_mode & 0o077):
        raise AuditUnavailable(
            f"other users may read or own `{path}`, expected mode 0600 and this user",
            advice="if nobody else can have read it, give it back that owner and mode; else move the state "
            "directory aside to begin a new log",
        )
    if len(seed) != _SEED:
        raise AuditUnavailable(
            f"`{path}` is not a key of {_SEED} bytes",
            advice=_ADVICE,
        )
    return seed


def _publish(state: StateDirectory, key: VerifierKey) -> None:
    path, text = state.path / _PUBLIC, f"{key}\n".encode()
    try:
        if read_plain(path, len(text) + 1) == text:
            return
    except FileNotFoundError:
        pass
    replace(path, text)
