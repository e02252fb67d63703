"""Content that is kept beside the log: `content/XX/COMMITMENT`, its salt and then its bytes.

Rules this module keeps:

- a file is believed only if salt and bytes give its commitment;
- erasing a file erases content and salt together, and what the record says of it stays.
"""

from __future__ import annotations

import hmac
import os
import re
from pathlib import Path

from licet.files import open_plain
from licet.record import commitment
from licet.state import StateDirectory, failures

_COMMITMENT = re.compile(r"[0-9a-f]{64}", re.ASCII)
_SALT = 32  # bytes


def path_of(state: StateDirectory, committed: str) -> Path:
    """Where the content of a commitment is, or would be.

    Raises:
        ValueError: it is no commitment.
    """
    if not _COMMITMENT.fullmatch(committed):
        raise ValueError(f"`{committed}` is no commitment")
    return state.path / "content" / committed[:2] / committed


def read(state: StateDirectory, committed: str) -> bytes | None:
    """The content of a commitment; None if it is gone, or is not what was committed to.

    Raises:
        AuditUnavailable: it can't be read.
    """
    path = path_of(state, committed)
    with failures(path):
        try:
            with os.fdopen(open_plain(path, os.O_RDONLY), "rb") as file:
                salt, data = file.read(_SALT), file.read()
        except FileNotFoundError:
            return None
    return data if hmac.compare_digest(commitment(salt, data), committed) else None
