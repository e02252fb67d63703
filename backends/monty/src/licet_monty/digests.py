"""What is in a large file, by its SHA-256, which is computed once for as long as the file stays as it is.

Rules this module keeps:

- a digest is remembered for the file's place, size and times, the time of change among them, which nobody
  sets at will; whatever of it differs has the file read again;
- what is remembered beyond this process lies in the user's own state directory, where one exists already;
  what others may write there, or what is damaged, counts for nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path

from licet import files, state
from licet.errors import AuditUnavailable

_MOST_BYTES = 4096
_known: dict[str, str] = {}


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits.

    Raises:
        OSError: it can't be read.
    """
    before = as_it_is(path)
    found = _known.get(before) or _remembered(path, before)
    if found is None:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if as_it_is(path) == before:
            _remember(path, before, found)
    _known[before] = found
    return found


def as_it_is(path: Path) -> str:
    """What tells a file from every other, and from itself after a change.

    Raises:
        OSError: it is not there.
    """
    at = path.stat()
    return f"{path} {at.st_dev} {at.st_ino} {at.st_size} {at.st_mtime_ns} {at.st_ctime_ns}"


def _place(path: Path) -> Path | None:
    home = state.user_state_path()
    if home is None or not home.is_dir():
        return None
    return home / "binaries" / f"{hashlib.sha256(os.fsencode(path)).hexdigest()[:32]}.digest"


def _remembered(path: Path, now: str) -> str | None:
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        if (place := _place(path)) is None:
            return None
        with os.fdopen(files.open_plain(place, os.O_RDONLY), "rb") as file:
            at = os.fstat(file.fileno())
            if os.name == "posix" and (at.st_uid != os.geteuid() or at.st_mode & 0o022):
                return None
            content = json.loads(file.read(_MOST_BYTES))
        found = content["sha256"]
        if content["file"] == now and isinstance(found, str) and len(found) == 64:
            return found
    return None


def _remember(path: Path, now: str, found: str) -> None:
    with contextlib.suppress(OSError, AuditUnavailable):
        if (place := _place(path)) is None:
            return
        state.user_state()  # is this user's alone, or an error
        place.parent.mkdir(mode=0o700, exist_ok=True)
        files.replace(place, json.dumps({"file": now, "sha256": found}).encode(), settled=False)
