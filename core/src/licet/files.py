"""Plain files: opened without a trap, and made complete or not at all.

Rules this module keeps:

- a pipe or a device is never waited on where a plain file is expected, and no link is followed unless the
  caller says so;
- what is written is durable when a function returns, and never seen half;
- nothing that is opened here is handed on to a child.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import sys
from collections.abc import Mapping
from pathlib import Path

# Hang on no pipe, hand on to no child; each where the system knows it.
_ALWAYS = sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))
_DRAFT = re.compile(r"\..+-[0-9a-f]{16}")
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


def open_plain(path: Path, flags: int, mode: int = 0o600, *, follow: bool = False) -> int:
    """Open a plain file and return its descriptor; `follow` lets the last name of the path be a link.

    Raises:
        OSError: it can't be opened, or is a link, pipe, device or directory.
    """
    descriptor = os.open(path, flags | _ALWAYS | (0 if follow else _NO_LINK), mode)
    found = os.fstat(descriptor).st_mode
    if stat.S_ISREG(found):
        return descriptor
    os.close(descriptor)
    if stat.S_ISDIR(found):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, "not a plain file", str(path))


def read_plain(path: Path, limit: int, *, follow: bool = False) -> bytes:
    """The first `limit` bytes of a plain file.

    Raises:
        OSError: as for `open_plain`, or it can't be read.
    """
    with os.fdopen(open_plain(path, os.O_RDONLY, follow=follow), "rb") as file:
        return file.read(limit)


def create_once(path: Path, content: bytes) -> bool:
    """Make a durable file of mode 0600 with all of `content`; False if there is one already."""
    return not create_each({path: content})


def create_each(files: Mapping[Path, bytes]) -> list[Path]:
    """Make durable files as `create_once` does, with one sync a directory; return those that were there."""
    present = []
    for path, content in files.items():
        draft = _draft(path, content)
        try:
            os.link(draft, path)
        except FileExistsError:
            present.append(path)
        finally:
            draft.unlink()
    for folder in {path.parent for path in files if path not in present}:
        sync_directory(folder)
    return present


def make_folder(path: Path) -> None:
    """Make a durable directory of mode 0700 and those above it, where they are missing."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)
        sync_directory(path.parent)


def replace(path: Path, content: bytes, *, settled: bool = True) -> None:
    """Put `content` in the place of a file in one step, durable when this returns.

    Without `settled` that is left to the system, which saves a sync: after a loss of power the file is whole,
    and may be the one from before.
    """
    _draft(path, content).replace(path)
    if settled:
        sync_directory(path.parent)


def drop_drafts(folder: Path, name: str = "") -> None:
    """Remove what killed processes left unfinished in a folder: of the file `name`, or of all if it is empty.

    The caller holds the lock under which these files are made.
    """
    with os.scandir(folder) as entries:
        left = [entry.path for entry in entries if _DRAFT.fullmatch(entry.name)]
    for path in map(Path, left):
        if not name or path.name[1:-17] == name:
            path.unlink(missing_ok=True)


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable; Windows does that by itself."""
    if sys.platform == "win32":
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _draft(path: Path, content: bytes) -> Path:
    draft = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    descriptor = open_plain(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        draft.unlink()
        raise
    return draft
