"""The files of a group, read and written beside an open folder.

Rules this module keeps:

- no descriptor of it reaches a program that a child becomes;
- a value is taken from the kernel's text or it is unknown: nothing is made up.
"""

from __future__ import annotations

import os

FOLDER = sum(getattr(os, name, 0) for name in ("O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW"))
_CLOSED = getattr(os, "O_CLOEXEC", 0)
_MOST = 65536


def open_folder(path: str, at: int | None = None) -> int:
    """Open a group's folder to work below it.

    Raises:
        OSError: it is none, or may not be read.
    """
    return os.open(path, os.O_RDONLY | FOLDER, dir_fd=at)


def open_file(name: str, at: int, flags: int = os.O_RDONLY) -> int:
    """Open a file of a group.

    Raises:
        OSError: there is no such file, or it may not be opened so.
    """
    return os.open(name, flags | _CLOSED, dir_fd=at)


def read(name: str, at: int) -> str | None:
    """The whole of a file, None if there is none or it tells nothing."""
    try:
        descriptor = open_file(name, at)
    except OSError:
        return None
    try:
        pieces = []
        while piece := os.read(descriptor, _MOST):
            pieces.append(piece)
        return b"".join(pieces).decode("ascii", "replace")
    except OSError:
        return None
    finally:
        os.close(descriptor)


def write(name: str, value: str, at: int) -> None:
    """Write a value at once, as the kernel wants it.

    Raises:
        OSError: there is no such file, or the kernel does not take the value.
    """
    descriptor = open_file(name, at, os.O_WRONLY)
    try:
        os.write(descriptor, value.encode("ascii"))
    finally:
        os.close(descriptor)


def set_and_see(name: str, value: str, at: int) -> str:
    """Write a value, and return what the file says then.

    Raises:
        OSError: as with `write`.
    """
    descriptor = open_file(name, at, os.O_RDWR)
    try:
        os.write(descriptor, value.encode("ascii"))
        return os.pread(descriptor, _MOST, 0).decode("ascii", "replace").strip()
    finally:
        os.close(descriptor)


def number(text: str | None) -> int | None:
    """The number that a file consists of."""
    stripped = (text or "").strip()
    return int(stripped) if stripped.isdecimal() else None


def entry(text: str | None, key: str) -> int | None:
    """The number in the line of `key`, in a file of lines that each have a key and a number."""
    for line in (text or "").splitlines():
        name, _, value = line.partition(" ")
        if name == key:
            return number(value)
    return None


def exists(name: str, at: int) -> bool:
    """Whether a group has this file."""
    return os.access(name, os.F_OK, dir_fd=at)


def reason_of(problem: OSError) -> str:
    """What the system says is wrong, as messages spell it."""
    return (problem.strerror or str(problem)).lower()
