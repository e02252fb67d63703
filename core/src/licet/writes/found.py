"""What stands at a path, in the words of a view, and how a view refuses.

Rules this module keeps: a refusal is an `OSError` with the number that a program expects, and says why.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from licet.writes.overlay import Node

Kind = Literal["file", "directory", "link", "other"]

SPECIAL_BITS = stat.S_ISUID | stat.S_ISGID


@dataclass(frozen=True, slots=True)
class Found:
    """What stands at a path: size in bytes, `mode` with its permission bits, `mtime` in seconds."""

    kind: Kind
    size: int = 0
    mode: int = 0
    mtime: float = 0.0
    names: int = 1


def of_node(node: Node) -> Found | None:
    """What a run made of a path."""
    if node.kind == "gone":
        return None
    if node.content is None:
        return Found("directory", mode=0o755, mtime=node.mtime)
    return Found("file", node.content.size, 0o644, node.mtime)


def of_host(found: os.stat_result | None) -> Found | None:
    """What the host has at a path."""
    if found is None:
        return None
    kinds: tuple[tuple[Callable[[int], bool], Kind], ...] = (
        (stat.S_ISREG, "file"),
        (stat.S_ISDIR, "directory"),
        (stat.S_ISLNK, "link"),
    )
    kind: Kind = next((kind for test, kind in kinds if test(found.st_mode)), "other")
    mode = stat.S_IMODE(found.st_mode)
    return Found(kind, found.st_size, mode, found.st_mtime, found.st_nlink if kind == "file" else 1)


def kind_of(entry: os.DirEntry[str]) -> Kind:
    """What a name in a directory of the host stands for, no link followed."""
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "directory"
    return "file" if entry.is_file(follow_symlinks=False) else "other"


def check_plain(found: Found, path: str) -> None:
    """Refuse what is no plain file.

    Raises:
        OSError: it is a directory, or neither.
    """
    if found.kind == "directory":
        raise refusal(errno.EISDIR, path)
    if found.kind != "file":
        raise refusal(errno.EACCES, path, "it is no plain file")


def refusal(number: int, path: str, why: str | None = None) -> OSError:
    """The error of the system that tells a program why."""
    text = os.strerror(number)
    return OSError(number, f"{text} ({why})" if why else text, path)
