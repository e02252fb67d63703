"""All that lies in a built environment, written down, so that a change of it is seen.

Rules this module keeps:

- every file is listed with size and SHA-256, and none is anything else than a plain file or a directory;
- the quick look compares names, kinds, sizes and times: each file bears one and the same time, so whoever
  writes one is seen. It reads none: who sets the time back on purpose is seen by the whole look alone.
  Neither holds against somebody who rewrites the manifest too: the owner of the store is trusted;
- what is listed can be read by everybody and written by nobody.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from licet.environments.python import Identity
from licet.errors import reason_of
from licet.files import read_plain

NAME = "manifest.json"
PACKAGES = "packages"
FORMAT = 1
STAMP = 315_532_800
"""The time that every file bears, in seconds: the first of January 1980, as in reproducible archives."""

_MAX_BYTES = 256 << 20

_Walked = Iterator[tuple[str, os.stat_result]]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an environment was made from, with which tool, and its files: path to size and SHA-256."""

    requirements: tuple[str, ...]
    identity: Identity
    tool: str
    files: Mapping[str, tuple[int, str]]

    @property
    def size(self) -> int:
        """Of all files, in bytes."""
        return sum(size for size, _ in self.files.values())

    def spelled(self) -> bytes:
        """The form in which it is kept; its SHA-256 stands for the environment."""
        content = {"format": FORMAT, **asdict(self)}
        return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


def digest_of_bytes(spelled: bytes) -> str:
    """What stands for an environment: the digest of its manifest."""
    return f"sha256:{hashlib.sha256(spelled).hexdigest()}"


def seal_tree(root: Path) -> dict[str, tuple[int, str]]:
    """Give every file under `root` the one time, take the right to write it away, and list it.

    Raises:
        OSError: it can't be read or changed, or holds something that is no file and no directory.
    """
    files = {}
    for path, found in _walk(root):
        whole = root / path
        if stat.S_ISDIR(found.st_mode):
            whole.chmod(0o555)
            continue
        os.utime(whole, (STAMP, STAMP))
        whole.chmod(0o555 if found.st_mode & 0o111 else 0o444)
        files[path] = (found.st_size, _sha256(whole))
    root.chmod(0o555)
    return files


def read_manifest(folder: Path) -> tuple[Manifest, str] | None:
    """The manifest in `folder` and its digest; None if there is none that can be understood."""
    try:
        spelled = read_plain(folder / NAME, _MAX_BYTES)
        content = json.loads(spelled)
        if content["format"] != FORMAT:
            return None
        files = {str(path): (int(size), str(digest)) for path, (size, digest) in content["files"].items()}
        made = Manifest(
            tuple(map(str, content["requirements"])),
            Identity(**_texts(content["identity"])),
            str(content["tool"]),
            files,
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return made, digest_of_bytes(spelled)


def difference(root: Path, files: Mapping[str, tuple[int, str]], *, whole: bool) -> str | None:
    """The first thing under `root` that is not as listed, in words; None if there is none.

    `whole` also reads every file.
    """
    seen = 0
    try:
        for path, found in _walk(root):
            if stat.S_ISDIR(found.st_mode):
                continue
            listed = files.get(path)
            if listed is None:
                return f"`{path}` is not of it"
            if found.st_size != listed[0] or found.st_mtime_ns != STAMP * 10**9:
                return f"`{path}` was changed"
            if whole and _sha256(root / path) != listed[1]:
                return f"the content of `{path}` was changed"
            seen += 1
    except OSError as problem:
        return f"`{problem.filename}` can't be looked at: {reason_of(problem)}"
    if seen != len(files):
        missing = next((path for path in files if not os.path.lexists(root / path)), "a file")
        return f"`{missing}` is missing"
    return None


def _walk(root: Path) -> _Walked:
    """All under `root`, by path with `/`, directories after what is in them."""
    pending = [(str(root), "")]
    folders: list[tuple[str, os.stat_result]] = []
    while pending:
        folder, prefix = pending.pop()
        with os.scandir(folder) as entries:
            for entry in entries:
                found, path = entry.stat(follow_symlinks=False), prefix + entry.name
                if stat.S_ISDIR(found.st_mode):
                    pending.append((entry.path, f"{path}/"))
                    folders.append((path, found))
                elif stat.S_ISREG(found.st_mode):
                    yield path, found
                else:
                    raise OSError(0, "neither a file nor a directory", entry.path)
    yield from reversed(folders)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _texts(content: Any) -> dict[str, str]:
    return {str(key): str(value) for key, value in content.items()}
