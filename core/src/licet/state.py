"""The state directory of a project, and the user's own state directory that vouches for it.

Rules this module keeps:

- a directory that holds something and that this user never registered is neither trusted nor written to;
- registering comes before the log id appears in the directory, so an id without a registration was made
  elsewhere, and a process killed halfway leaves nothing that the next one can't take over;
- what is made once (a key, an id, a registration) appears complete or not at all, and whoever loses a race
  uses the winner's;
- no link, pipe or device is followed where a plain file is expected;
- whatever the file system refuses is `AuditUnavailable`, with one sentence on how to recover.
"""

from __future__ import annotations

import contextlib
import errno
import hmac
import json
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from licet.errors import AuditUnavailable

_ID = re.compile(r"[0-9a-f]{32}")
_HALF_MADE = re.compile(r"\.id-[0-9a-f]{16}")
_KEY_BYTES = 32
_SMALL = 64 * 1024  # nothing that this module reads is larger
# Follow no link, hang on no pipe, hand on to no child; each where the system knows it.
_PLAIN = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))

_REFUSALS = {
    errno.ENOSPC: ("the disk that holds `{}` is full", "free some space on it, then run again"),
    errno.EDQUOT: (
        "the disk quota for `{}` is used up",
        "free some space or raise the quota, then run again",
    ),
    errno.EFBIG: ("`{}` met a file size limit", "raise the limit (`ulimit -f`), then run again"),
    errno.EROFS: (
        "`{}` is on a read-only file system",
        "make it writable, or point LICET_HOME at a directory that is",
    ),
    errno.EACCES: (
        "this user may not write to `{}`",
        "give this user that directory, or point LICET_HOME at another one",
    ),
    errno.EPERM: (
        "the file system does not permit writing to `{}`",
        "point LICET_HOME at a directory on a local disk",
    ),
    errno.ELOOP: ("`{}` is a symbolic link", "replace it by what it points at"),
    errno.ENOTDIR: ("a part of `{}` is not a directory", "move that file aside, then run again"),
    errno.EIO: ("the disk that holds `{}` reported an error", "check the disk before anything runs again"),
    errno.EMFILE: ("too many files are open to open `{}`", "raise the limit (`ulimit -n`), then run again"),
}


@dataclass(frozen=True, slots=True)
class StateDirectory:
    """A directory that holds a log; `log_id` is 32 hexadecimal digits, made with it."""

    path: Path
    log_id: str


def user_state() -> Path:
    """This user's own state directory, made with mode 0700 where it is missing.

    Raises:
        AuditUnavailable: it can't be made, is a link, or somebody else owns it or can write to it.
    """
    path = platformdirs.user_state_path("licet", appauthor=False)
    if not path.is_absolute():
        raise AuditUnavailable(
            f"the user's state directory is `{path}`, expected an absolute path",
            advice="set XDG_STATE_HOME to an absolute path or unset it",
        )
    with failures(path):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        _private_directory(path)
    return path


def open_state(path: Path) -> StateDirectory:
    """Open a state directory for writing; make and register it if it is missing or empty.

    Raises:
        AuditUnavailable: it came from somewhere else, others can write to it, or it can't be made.
    """
    with failures(path):
        path = _resolved(path)
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700, parents=True)
        found = _private_directory(path)
        # Names first: whoever made this directory wrote the id before anything else.
        names = [entry.name for entry in path.iterdir()]
        log_id = _read_id(path)
        if log_id is None and all(_HALF_MADE.fullmatch(name) for name in names):
            log_id = _make_id(path, found)
        if log_id is None or not _is_registered(path, found, log_id):
            raise AuditUnavailable(
                f"`{path}` was not made by licet for this user on this host",
                advice="move it aside and run again; `licet audit` still reads it",
            )
        return StateDirectory(path, log_id)


def read_state(path: Path) -> StateDirectory:
    """Open a state directory, whoever made it, for reading alone; nothing is written.

    Raises:
        AuditUnavailable: there is no directory, or it holds no log id.
    """
    with failures(path):
        path = _resolved(path)
        if not stat.S_ISDIR(path.lstat().st_mode):
            raise NotADirectoryError(errno.ENOTDIR, "not a directory", str(path))
        log_id = _read_id(path)
    if log_id is None:
        raise AuditUnavailable(f"`{path}` holds no log", advice="name the directory that holds the log")
    return StateDirectory(path, log_id)


def may_pin(state: StateDirectory) -> bool:
    """Whether what is seen in `state` may be remembered under its log id.

    False if the id is registered for another directory: a copy must not speak for the original.
    """
    with failures(state.path):
        if not _registration(state.log_id).exists():
            return True
        return _is_registered(state.path, state.path.lstat(), state.log_id)


def host_key() -> bytes:
    """The 32 secret bytes of this user on this host, made at first use.

    Raises:
        AuditUnavailable: the key can't be made or read, is damaged, or others can read it.
    """
    path = user_state() / "host.key"
    with failures(path):
        if not path.exists():
            create_once(path, secrets.token_bytes(_KEY_BYTES))
        key, found = _read(path)
    if sys.platform != "win32" and (found.st_uid != os.geteuid() or found.st_mode & 0o077):
        raise AuditUnavailable(
            f"other users may read or own `{path}`, expected mode 0600 and this user",
            advice="move it aside; a new one is made, and what the old one digested can no longer be checked",
        )
    if len(key) != _KEY_BYTES:
        raise AuditUnavailable(
            f"`{path}` holds {len(key)} bytes, expected {_KEY_BYTES}",
            advice="restore the key from a backup or move it aside",
        )
    return key


def digest(key: bytes, *parts: bytes) -> str:
    """A keyed digest of `parts`, `hmac-sha256:` and 64 digits; no two lists of parts share an input."""
    framed = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
    return f"hmac-sha256:{hmac.digest(key, framed, 'sha256').hex()}"


@contextlib.contextmanager
def failures(path: Path) -> Iterator[None]:
    """Turn what the file system refuses inside into `AuditUnavailable` about `path`."""
    try:
        yield
    except OSError as problem:
        raise unavailable(problem, path) from problem


def unavailable(problem: OSError, path: Path) -> AuditUnavailable:
    """Say what a failed call of the file system means, and what to do about it."""
    place = problem.filename if isinstance(problem.filename, str) else path
    message, advice = _REFUSALS.get(
        problem.errno or 0, (f"`{{}}` can't be used: {(problem.strerror or str(problem)).lower()}", "")
    )
    return AuditUnavailable(
        message.format(place), advice=advice or "repair that, or point LICET_HOME at another directory"
    )


def open_plain(path: Path, flags: int, mode: int = 0o600) -> int:
    """Open a plain file and return its descriptor.

    Raises:
        OSError: it can't be opened, or is a link, pipe, device or directory.
    """
    descriptor = os.open(path, flags | _PLAIN, mode)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "not a plain file", str(path))


def create_once(path: Path, content: bytes) -> bool:
    """Make a durable file of mode 0600 with all of `content`; False if there is one already."""
    draft = _draft(path, content)
    try:
        os.link(draft, path)
    except FileExistsError:
        return False
    finally:
        draft.unlink()
    sync_directory(path.parent)
    return True


def replace(path: Path, content: bytes) -> None:
    """Put `content` in the place of a file in one durable step."""
    _draft(path, content).replace(path)
    sync_directory(path.parent)


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


def _read(path: Path) -> tuple[bytes, os.stat_result]:
    with os.fdopen(open_plain(path, os.O_RDONLY), "rb") as file:
        return file.read(_SMALL), os.fstat(file.fileno())


def _resolved(path: Path) -> Path:
    """An absolute path whose folder is real; the last part stays, so that a link there is noticed."""
    if path.name in {"", ".."}:
        return Path(os.path.realpath(path))
    return Path(os.path.realpath(path.parent)) / path.name


def _private_directory(path: Path) -> os.stat_result:
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode):
        raise OSError(errno.ELOOP, "a symbolic link", str(path))
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, "not a directory", str(path))
    if sys.platform == "win32":
        return found
    if found.st_uid != os.geteuid():
        raise AuditUnavailable(
            f"`{path}` belongs to user {found.st_uid}, expected {os.geteuid()}",
            advice="run as its owner, or point LICET_HOME or XDG_STATE_HOME at a directory of this user",
        )
    if found.st_mode & 0o022:
        raise AuditUnavailable(
            f"other users may write to `{path}`", advice=f"check what is in it, then run `chmod 700 {path}`"
        )
    return found


def _read_id(path: Path) -> str | None:
    try:
        content, _ = _read(path / "id")
    except FileNotFoundError:
        return None
    text = content.decode("ascii", "replace").removesuffix("\n")
    if not _ID.fullmatch(text):
        raise AuditUnavailable(
            f"`{path / 'id'}` holds no log id", advice=f"move `{path}` aside and run again"
        )
    return text


def _make_id(path: Path, found: os.stat_result) -> str | None:
    """Give an empty directory an id, or return the id of whoever was faster."""
    log_id = secrets.token_hex(16)
    registration = _registration(log_id)
    content = {"log": log_id, "path": str(path), "inode": found.st_ino, "device": found.st_dev}
    create_once(registration, json.dumps(content).encode("ascii"))
    if create_once(path / "id", f"{log_id}\n".encode("ascii")):
        return log_id
    registration.unlink()
    return _read_id(path)


def _registration(log_id: str) -> Path:
    folder = user_state() / "logs"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder / f"{log_id}.json"


def _is_registered(path: Path, found: os.stat_result, log_id: str) -> bool:
    # The device is written down but not compared: its number may change when the host restarts.
    try:
        content = json.loads(_read(_registration(log_id))[0])
        return bool((content["path"], content["inode"]) == (str(path), found.st_ino))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return False
