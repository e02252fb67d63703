"""Content that is kept beside the log: `content/XX/COMMITMENT`, its salt and then its bytes.

Rules this module keeps:

- what is stored is durable before the record that names it is written, and nobody else may read it;
- a file is believed only if salt and bytes give its commitment;
- erasing a file erases content and salt together, and what the record says of it stays;
- only names that are commitments are touched, only in folders that are no links, so nothing outside is.
"""

from __future__ import annotations

import errno
import hmac
import os
import re
import stat
import time
from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Literal

from licet.files import open_plain, replace, sync_directory
from licet.record import Kept, commitment
from licet.state import StateDirectory, failures

from licet_audit.files import sync, write_all

State = Literal["intact", "missing", "altered"]

_COMMITMENT = re.compile(r"[0-9a-f]{64}", re.ASCII)
_FOLDER = re.compile(r"[0-9a-f]{2}", re.ASCII)
_SALT = 32  # bytes
_CHUNK = 1 << 20


def is_commitment(text: object) -> bool:
    """Whether this can name kept content."""
    return isinstance(text, str) and _COMMITMENT.fullmatch(text) is not None


def path_of(state: StateDirectory, committed: str) -> Path:
    """Where the content of a commitment is, or would be.

    Raises:
        ValueError: it is no commitment.
    """
    if not is_commitment(committed):
        raise ValueError(f"`{committed}` is no commitment")
    return state.path / "content" / committed[:2] / committed


def store(state: StateDirectory, kept: Sequence[Kept]) -> None:
    """Make content durable, before the records that name it.

    What could not be stored whole is removed again as far as that is possible.

    Raises:
        OSError: not all of it is known to be durable; no record may name it.
    """
    made: list[Path] = []
    try:
        for one in kept:
            path = path_of(state, one.commitment)
            _require_folder(path.parent, make=True)
            if _is_new(path, one):
                made.append(path)
        for folder in {path.parent for path in made}:
            sync_directory(folder)
    except BaseException:
        for path in made:
            path.unlink(missing_ok=True)
        raise


def read(state: StateDirectory, committed: str) -> bytes | None:
    """The content of a commitment; None if it is gone, or is not what was committed to.

    Raises:
        AuditUnavailable: it can't be read.
    """
    path = path_of(state, committed)
    with failures(path):
        try:
            _require_folder(path.parent)
            with os.fdopen(open_plain(path, os.O_RDONLY), "rb") as file:
                salt, data = file.read(_SALT), file.read()
        except FileNotFoundError:
            return None
    return data if hmac.compare_digest(commitment(salt, data), committed) else None


def state_of(state: StateDirectory, committed: str) -> State:
    """Whether the content of a commitment is there and is what was committed to; needs memory for one chunk.

    A link, a folder or a pipe in its place is altered content.

    Raises:
        AuditUnavailable: it can't be read.
    """
    path = path_of(state, committed)
    with failures(path):
        try:
            _require_folder(path.parent)
            if not stat.S_ISREG(path.lstat().st_mode):
                return "altered"
            with os.fdopen(open_plain(path, os.O_RDONLY), "rb") as file:
                return "intact" if hmac.compare_digest(_commitment_of(file), committed) else "altered"
        except FileNotFoundError:
            return "missing"


def size_of(state: StateDirectory, committed: str) -> int | None:
    """How many bytes the file of a commitment has, its salt included; None if there is none.

    Raises:
        AuditUnavailable: it can't be looked at.
    """
    path = path_of(state, committed)
    with failures(path):
        try:
            _require_folder(path.parent)
            return path.lstat().st_size
        except FileNotFoundError:
            return None


def stored(state: StateDirectory) -> Iterator[str]:
    """Every commitment that has a file, in order; other names in the folders are passed over.

    Raises:
        OSError: the folders can't be listed, or one is a link.
    """
    top = state.path / "content"
    if not _has_folder(top):
        return
    for folder in sorted(top.iterdir()):
        if _FOLDER.fullmatch(folder.name) and _has_folder(folder):
            names = sorted(path.name for path in folder.iterdir())
            yield from (name for name in names if is_commitment(name) and name.startswith(folder.name))


def orphans(state: StateDirectory, named: Container[str], *, older_than: float = 0.0) -> list[str]:
    """The commitments that have a file and are in no record; `named` are those that records hold.

    A file that is not older than some seconds may be one that its writer is about to name.

    Raises:
        OSError: the folders can't be listed.
    """
    latest = time.time() - older_than
    unnamed = (committed for committed in stored(state) if committed not in named)
    return [one for one in unnamed if path_of(state, one).lstat().st_mtime <= latest]


def delete(state: StateDirectory, committed: Iterable[str]) -> int:
    """Delete content and salts for good; return how many files there were.

    What can't be deleted keeps nothing else from it.

    Raises:
        OSError: not all of it is known to be gone.
    """
    folders: set[Path] = set()
    problem: OSError | None = None
    count = 0
    for path in (path_of(state, one) for one in committed):
        try:
            _require_folder(path.parent)
            folders.add(path.parent)
            path.unlink()
            count += 1
        except FileNotFoundError:
            pass
        except OSError as refused:
            problem = problem or refused
    for folder in folders:
        sync_directory(folder)
    if problem is not None:
        raise problem
    return count


def _is_new(path: Path, one: Kept) -> bool:
    """Store one file; False if an earlier attempt has done so."""
    try:
        descriptor = open_plain(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    except FileExistsError:
        replace(path, one.salt + one.data)  # that attempt may have been cut short, or never synced
        return False
    try:
        with os.fdopen(descriptor, "wb", buffering=0) as file:
            write_all(file.fileno(), one.salt)
            write_all(file.fileno(), one.data)
            sync(file.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return True


def _commitment_of(file: BinaryIO) -> str:
    salted = hmac.new(file.read(_SALT), digestmod="sha256")
    while chunk := file.read(_CHUNK):
        salted.update(chunk)
    return salted.hexdigest()


def _require_folder(folder: Path, *, make: bool = False) -> None:
    """Make sure that `content` and a folder in it are folders and no links.

    Raises:
        FileNotFoundError: there is none.
        OSError: one is something else, or can't be made.
    """
    for path in (folder.parent, folder):
        if _has_folder(path):
            continue
        if not make:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        path.mkdir(mode=0o700, exist_ok=True)
        sync_directory(path.parent)


def _has_folder(path: Path) -> bool:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISLNK(mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    if not stat.S_ISDIR(mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
    return True
