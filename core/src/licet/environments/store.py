"""The store of built environments in the user's cache directory, found by what they were made from.

Rules this module keeps:

- the name of an environment follows from the list of its packages and the interpreter it is for; nothing else
  chooses what is in it;
- what stands under such a name is whole: it is made beside it and renamed there in one step, and taken away
  in one step;
- looking makes nothing; what others could write to, or is not as it was built, is refused, never used.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from licet.environments.lockfile import LockFile
from licet.environments.manifest import PACKAGES, Manifest, difference, read_manifest
from licet.environments.python import Identity, digest_of, store_path, this_identity
from licet.errors import EnvironmentUnavailable, reason_of

_KEY = re.compile(r"[0-9a-f]{32}")
_DRAFT = re.compile(r"\.([0-9a-f]{32})-[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class Stored:
    """One environment in the store; `problem` says why it can't be used."""

    key: str
    path: Path
    digest: str = ""
    manifest: Manifest | None = None
    problem: str | None = None

    @property
    def packages(self) -> str:
        """The directory for `sys.path`."""
        return str(self.path / PACKAGES)


def key_of(lock: LockFile, identity: Identity | None = None) -> str:
    """The name of the environment that `lock` makes for an interpreter: 32 hexadecimal digits."""
    identity = identity or this_identity()
    made_from = {
        "requirements": lock.lines,
        "for": [identity.implementation, identity.version, identity.abi, identity.platform],
    }
    return digest_of(made_from).removeprefix("sha256:")[:32]


def find(lock: LockFile, *, whole: bool = False) -> Stored | None:
    """The environment of `lock` for this interpreter, looked at quickly or, with `whole`, read; None if none.

    Raises:
        EnvironmentUnavailable: this system knows no home for caches.
    """
    key = key_of(lock)
    path = _home() / key
    if not os.path.lexists(path):
        return None
    found = _looked_at(path, whole=whole)
    if found.manifest is not None and found.manifest.requirements != lock.lines:
        return Stored(key, path, problem="it was made from another list")
    return found


def stored(*, whole: bool = False) -> tuple[Stored, ...]:
    """Every environment in the store, for whatever interpreter, by name.

    Raises:
        EnvironmentUnavailable: this system knows no home for caches, or it can't be listed.
    """
    home = _home()
    try:
        names = sorted(name for name in os.listdir(home) if _KEY.fullmatch(name))  # noqa: PTH208
    except FileNotFoundError:
        return ()
    except OSError as problem:
        raise EnvironmentUnavailable(f"`{home}` can't be listed: {reason_of(problem)}") from None
    return tuple(_looked_at(home / name, whole=whole) for name in names)


def remove(path: Path) -> None:
    """Take an environment, or what is left of one, out of the store: its name goes first, in one step.

    Raises:
        OSError: it can't be removed.
    """
    aside = path if _DRAFT.fullmatch(path.name) else path.rename(draft_of(path))
    for folder, _, _ in os.walk(aside):
        Path(folder).chmod(0o700)
    shutil.rmtree(aside)


def draft_of(path: Path) -> Path:
    """A new name beside an environment for what is not one yet, or no more."""
    return path.with_name(f".{path.name}-{secrets.token_hex(8)}")


def drop_drafts(path: Path) -> None:
    """Remove what killed processes left of the environment at `path`; the caller holds its lock."""
    for name in os.listdir(path.parent):  # noqa: PTH208
        found = _DRAFT.fullmatch(name)
        if found is not None and found[1] == path.name:
            with contextlib.suppress(FileNotFoundError):
                remove(path.with_name(name))


def made_home() -> Path:
    """The store, made with mode 0700 where it is missing.

    Raises:
        EnvironmentUnavailable: it can't be made, or others can write to it.
    """
    home = _home()
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        why = _others_may_write(home)
    except OSError as problem:
        raise EnvironmentUnavailable(
            f"`{home}` can't be made: {reason_of(problem)}", advice="give this user that directory"
        ) from None
    if why is not None:
        raise EnvironmentUnavailable(why, advice=f"move `{home}` aside; a new one is made")
    return home


def _home() -> Path:
    home = store_path()
    if home is None:
        variable = "LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME"
        raise EnvironmentUnavailable(
            "the user's cache directory is no absolute path",
            advice=f"set {variable} to an absolute path or unset it",
        )
    return home


def _looked_at(path: Path, *, whole: bool) -> Stored:
    try:
        why = next(filter(None, map(_others_may_write, _way_to(path))), None)
    except OSError as problem:
        why = f"`{problem.filename}` can't be looked at: {reason_of(problem)}"
    if why is not None:
        return Stored(path.name, path, problem=why)
    read = read_manifest(path)
    if read is None:
        return Stored(path.name, path, problem="its manifest is missing or damaged")
    manifest, digest = read
    changed = difference(path / PACKAGES, manifest.files, whole=whole)
    return Stored(path.name, path, digest, manifest, changed)


def _way_to(path: Path) -> Iterator[Path]:
    yield path.parent
    yield path
    yield path / PACKAGES


def _others_may_write(path: Path) -> str | None:
    """Why a directory of the store is not to be trusted; None if it is."""
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode):
        return f"`{path}` is no directory"
    if sys.platform == "win32":
        return None
    if found.st_uid not in (os.geteuid(), 0):
        return f"`{path}` belongs to user {found.st_uid}"
    return f"other users may write to `{path}`" if found.st_mode & 0o022 else None
