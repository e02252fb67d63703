"""Whom a verification trusts: keys and certificates that come from settings or from flags.

Rules this module keeps: nothing here comes from beside a log or out of a bundle, save what says so.
"""

from __future__ import annotations

from pathlib import Path

from licet.errors import UsageError, reason_of
from licet.files import read_plain
from licet.output import bounded

from licet_audit import notes, seen
from licet_audit.notes import InvalidNote, VerifierKey


def key_of(given: str) -> VerifierKey:
    """A public key as people give it: its text, or a file that holds it.

    Raises:
        UsageError: it is neither.
    """
    shown = bounded(given, 300)
    try:
        return VerifierKey.parse(given)
    except InvalidNote as problem:
        if given.count("+") > 1:
            raise UsageError(f"`{shown}` is no key: {problem}", advice="take it from its owner") from None
    try:
        text = read_plain(Path(given), notes.MOST_BYTES, follow=True).decode("utf-8", "replace")
        return VerifierKey.parse(text)
    except (OSError, ValueError) as problem:
        why = reason_of(problem) if isinstance(problem, OSError) else str(problem)
        raise UsageError(
            f"`{shown}` holds no key: {why}", advice="give a key as NAME+ID+BASE64, or a file that holds one"
        ) from None


def pinned(origin: str) -> VerifierKey | None:
    """The key that this user has seen the log called `origin` sign with; None if it was never seen.

    Raises:
        AuditUnavailable: what was seen can't be read.
    """
    log_id = origin.removeprefix(notes.origin_of(""))
    if origin != notes.origin_of(log_id) or not log_id.isalnum():
        return None
    known = seen.of(log_id)
    return known.key if known else None
