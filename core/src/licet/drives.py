"""Paths of Windows in one canonical spelling, and containment there.

Rules this module keeps:

- a canonical path reads `C:/work/data`: a drive and its names with forward slashes, so that Windows opens it
  and every other module takes it apart as it does elsewhere; `/` alone stands above all drives;
- names have no case: `C:/Work` contains `c:/work/data`;
- what Windows would read as something else than a file of that name is refused: devices, streams, names that
  end in a dot or a space, the prefixes that switch such reading off, and what no name can hold;
- a path that begins at whatever drive is the current one is refused too.
"""

from __future__ import annotations

import contextlib
import ntpath
import os
import re

_DEVICE = re.compile(r"(?:CON|PRN|AUX|NUL|CONIN\$|CONOUT\$|(?:COM|LPT)[0-9¹²³])(?:\s*[.:].*)?", re.IGNORECASE)
_UNUSABLE = re.compile(r'[<>"|?*\x00-\x1f]')
_DRIVE = re.compile(r"[A-Za-z]:")


def is_absolute(path: str) -> bool:
    """Whether a path begins at a drive, a share, or above them all."""
    drive, rest = ntpath.splitdrive(path)
    return path == "/" or (bool(drive) and rest[:1] in ("/", "\\"))


def check(path: str) -> None:
    r"""Look at a path as it was written.

    Raises:
        ValueError: Windows would not read it as the plain path that it looks like; the text says why.
    """
    slashed = path.replace("\\", "/")
    if slashed.startswith(("//?/", "//./", "/??/")):
        raise ValueError("it has a prefix that changes how Windows reads it")
    drive, rest = ntpath.splitdrive(slashed)
    if _DRIVE.fullmatch(drive) and rest[:1] != "/":
        raise ValueError("it is relative to a drive, whose current directory nobody knows")
    if not drive and rest[:1] == "/" and path != "/":
        raise ValueError("it begins at the current drive, which may be any")
    for name in rest.split("/"):
        if _DEVICE.fullmatch(name):
            raise ValueError(f"`{name}` is a device, whatever directory it seems to be in")
        if _UNUSABLE.search(name):
            raise ValueError("it holds a character that no file name can hold")
        if ":" in name:
            raise ValueError("it names a stream of a file")
        if name not in ("", ".", "..") and name[-1] in ". ":
            raise ValueError("one of its names ends in a dot or a space, which Windows drops")


def spell(path: str) -> str:
    """The canonical spelling of an absolute path whose links are resolved already."""
    path = path.removeprefix("\\\\?\\").replace("\\", "/")
    drive, rest = ntpath.splitdrive(path)
    return drive.upper() + ("/" + rest.strip("/") if _DRIVE.fullmatch(drive) else rest.rstrip("/"))


def contains(root: str, path: str) -> bool:
    """Whether canonical `path` is canonical `root` or lies inside it."""
    folded = root.lower().rstrip("/")
    return (path.lower().rstrip("/") + "/").startswith(folded + "/") or root == "/"


def links(path: str) -> tuple[str, ...]:
    """Every link on the way of an absolute path, outermost first."""
    found: list[str] = []
    while (parent := ntpath.dirname(path)) != path:
        with contextlib.suppress(OSError):  # no link, or nothing there
            os.readlink(path)  # noqa: PTH115 (sees junctions too)
            found.insert(0, spell(path))
        path = parent
    return tuple(found)
