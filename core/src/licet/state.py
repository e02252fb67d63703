"""The state directory of a project, and the user's own state directory that vouches for it.

Rules this module keeps:

- a directory that holds something and that this user never registered is neither trusted nor written to;
- registering comes before the log id appears in the directory, so an id without a registration was made
  elsewhere, and a process killed halfway leaves nothing that the next one can't take over;
- a registered directory that was moved stays this user's; a copy of one never is;
- what only looks (`trusted`, `read_state`, `user_state_path`) makes nothing and changes nothing;
- what is made once (a key, an id, a registration) appears complete or not at all, and whoever loses a race
  uses the winner's;
- files are opened and made by the rules of `licet.files`;
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

from licet.errors import AuditUnavailable, reason_of
from licet.files import create_once, open_plain, replace
from licet.output import bounded

_ID = re.compile(r"[0-9a-f]{32}")
_HALF_MADE = re.compile(r"\.id-[0-9a-f]{16}")
_KEY_BYTES = 32
_SMALL = 64 * 1024  # nothing that this module reads is larger
_SHOWN = 300  # characters of a path in a message
_VARIABLE = "LOCALAPPDATA" if sys.platform == "win32" else "XDG_STATE_HOME"
"""The variable that says where a user's programs keep state."""

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


@dataclass(frozen=True, slots=True)
class _Registration:
    """Which directory this user's licet made for a log.

    `id_changed_ns` is when the inode of its `id` last changed; None if its maker was killed before it knew.
    """

    path: str
    inode: int
    id_changed_ns: int | None


def user_state() -> Path:
    """This user's own state directory, made with mode 0700 where it is missing.

    Raises:
        AuditUnavailable: it can't be made, is a link, or somebody else owns it or can write to it.
    """
    path = user_state_path()
    if path is None:
        raise AuditUnavailable(
            "the user's state directory is no absolute path",
            advice=f"set {_VARIABLE} to an absolute path or unset it",
        )
    with failures(path):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        _private_directory(path)
    return path


def user_state_path() -> Path | None:
    """Where this user's own state directory is or would be; None if this system knows no home for them."""
    import platformdirs

    path = platformdirs.user_state_path("licet", appauthor=False)
    return path if path.is_absolute() else None


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
        if log_id is None:
            raise _stranger(path, None)
        known = _registered(log_id)
        if known is None or not _is_same(known, path, found):
            raise _stranger(path, known)
        if known.path != str(path) and not _is_still_at(known):
            _register(log_id, path, found)
        return StateDirectory(path, log_id)


def trusted(path: Path) -> StateDirectory | None:
    """The state directory at `path` if this user's licet made it, None otherwise."""
    try:
        with failures(path):
            path = _resolved(path)
            found, log_id = _private_directory(path), _read_id(path)
            known = _registered(log_id) if log_id else None
            return StateDirectory(path, log_id) if log_id and known and _is_same(known, path, found) else None
    except AuditUnavailable:
        return None


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


def registered() -> tuple[tuple[str, Path], ...]:
    """The ids of the logs that this user's licet made on this host, and where their directories are.

    Raises:
        AuditUnavailable: the registrations can't be read.
    """
    home = user_state_path()
    if home is None:
        return ()
    with failures(home):
        try:
            names = sorted(path.stem for path in (home / "logs").iterdir() if path.suffix == ".json")
        except FileNotFoundError:
            return ()
        known = [(name, _registered(name)) for name in names if _ID.fullmatch(name)]
    return tuple((name, Path(one.path)) for name, one in known if one is not None)


def may_pin(state: StateDirectory) -> bool:
    """Whether what is seen in `state` may be remembered under its log id.

    False if the id is registered for another directory: a copy must not speak for the original.
    """
    with failures(state.path):
        known = _registered(state.log_id)
        return known is None or _is_same(known, state.path, state.path.lstat())


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
    return f"hmac-sha256:{derived(key, *parts).hex()}"


def derived(key: bytes, *parts: bytes) -> bytes:
    """32 bytes that follow from `key` and `parts`; a secret, unless a digest of the same parts is told."""
    framed = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
    return hmac.digest(key, framed, "sha256")


@contextlib.contextmanager
def failures(path: Path) -> Iterator[None]:
    """Turn what the file system refuses inside into `AuditUnavailable` about `path`."""
    try:
        yield
    except OSError as problem:
        raise unavailable(problem, path) from problem


def unavailable(problem: OSError, path: Path) -> AuditUnavailable:
    """Say what a failed call of the file system means, and what to do about it."""
    place = problem.filename if isinstance(problem.filename, str) else str(path)
    message, advice = _REFUSALS.get(
        problem.errno or 0,
        (
            f"`{{}}` can't be used: {reason_of(problem)}",
            "repair that, or point LICET_HOME at another directory",
        ),
    )
    if _is_users(Path(place)):
        advice = advice.replace("LICET_HOME", _VARIABLE)
    return AuditUnavailable(message.format(bounded(place, _SHOWN)), advice=advice)


def _is_users(place: Path) -> bool:
    """Whether this is the user's own state directory, lies in it, or is what it lies in."""
    home = user_state_path()
    return home is not None and (home in (place, *place.parents) or place in home.parents)


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
    _register(log_id, path, found)
    if create_once(path / "id", f"{log_id}\n".encode("ascii")):
        _register(log_id, path, found)
        return log_id
    _registration_file(user_state(), log_id).unlink()
    return _read_id(path)


def _register(log_id: str, path: Path, found: os.stat_result) -> None:
    """Write down that the directory at `path` is this user's, in the place of what was known of it."""
    file = _registration_file(user_state(), log_id)
    file.parent.mkdir(mode=0o700, exist_ok=True)
    content = {"log": log_id, "path": str(path), "inode": found.st_ino, "device": found.st_dev}
    with contextlib.suppress(FileNotFoundError):
        content["id_changed_ns"] = (path / "id").lstat().st_ctime_ns
    replace(file, json.dumps(content).encode("ascii"))


def _registered(log_id: str) -> _Registration | None:
    """What this user's own state directory knows of a log; None if that is nothing."""
    home = user_state_path()
    if home is None:
        return None
    try:
        _private_directory(home)
        content = json.loads(_read(_registration_file(home, log_id))[0])
        known = _Registration(content["path"], content["inode"], content.get("id_changed_ns"))
        return known if isinstance(known.path, str) else None
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _registration_file(home: Path, log_id: str) -> Path:
    return home / "logs" / f"{log_id}.json"


def _is_same(known: _Registration, path: Path, found: os.stat_result) -> bool:
    """Whether the directory at `path` is the one that was registered, moved or not.

    The number of its inode alone would not tell: a file system gives the numbers of deleted files out
    again, and a checkout may bring a known id. When the inode of `id` last changed is what no checkout,
    archive or copy brings along, and what moving leaves as it is.
    """
    # The device is written down but not compared: its number may change when the host restarts.
    if known.inode != found.st_ino:
        return False
    return known.path == str(path) or known.id_changed_ns == (path / "id").lstat().st_ctime_ns


def _is_still_at(known: _Registration) -> bool:
    """Whether the registered path leads to the registered directory all the same (a bind mount does that)."""
    try:
        return Path(known.path).lstat().st_ino == known.inode
    except OSError:
        return False


def _stranger(path: Path, known: _Registration | None) -> AuditUnavailable:
    """Say why a directory that holds something is not used."""
    if known is None:
        message, advice = (
            f"`{path}` was not made by licet for this user on this host",
            "move it aside and run again",
        )
    elif known.path == str(path):
        message = f"`{path}` is a copy of the directory that is registered there, or replaces it"
        advice = "put the original back, or move this one aside to begin a new log"
    else:
        message = (
            f"`{path}` is not written to: its log is registered for `{known.path}`, and this may be a copy"
        )
        advice = "move it back there, or aside to begin a new log here"
    return AuditUnavailable(message, advice=f"{advice}; `licet audit` still reads it")
