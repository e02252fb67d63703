"""From an absolute path to what stands there, name by name, by descriptors.

Rules this module keeps:

- no link is followed, at no place of a path: whoever exchanges a directory for a link is met with an error;
- a pipe, a device or a socket is never opened;
- where a system can't walk by descriptors, or can't exchange two names in one step, nothing is opened to be
  read or written there (`CAN_READ`, `CAN_WRITE`).
"""

from __future__ import annotations

import errno
import functools
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

CAN_READ = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW") and hasattr(os, "O_DIRECTORY")
"""Whether this system can walk by descriptors."""

CAN_WRITE = CAN_READ and sys.platform == "linux"
"""Whether it can also exchange two names in one step (Linux, since 3.15)."""

_NO_REPLACE, _EXCHANGE = 1, 2
_CLOSED = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
_DIRECTORY = _CLOSED | getattr(os, "O_DIRECTORY", 0)
_PASS = _DIRECTORY | getattr(os, "O_PATH", 0)  # to pass through, a directory need not be readable
_READ = os.O_RDONLY | _CLOSED | getattr(os, "O_NONBLOCK", 0)


@contextmanager
def directory(path: str) -> Iterator[int]:
    """The directory at an absolute path, for operations relative to it.

    Raises:
        OSError: it is not there, is no directory, or a link is on the way.
    """
    descriptor = open_directory(path)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_directory(path: str) -> int:
    """As `directory`; the caller closes the descriptor."""
    here = os.open("/", _PASS)
    try:
        for name in path.split("/"):
            if name:
                further = os.open(name, _PASS, dir_fd=here)
                os.close(here)
                here = further
    except OSError as problem:
        os.close(here)
        raise _named(problem, path) from None
    return here


@contextmanager
def inner(above: int, name: str) -> Iterator[int]:
    """The directory at a name in another one.

    Raises:
        OSError: it is not there, is no directory, or a link.
    """
    descriptor = os.open(name, _PASS, dir_fd=above)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def look(path: str) -> os.stat_result | None:
    """What stands at an absolute path itself; None if nothing does.

    Raises:
        OSError: it can't be seen, or a link is on the way.
    """
    if path == "/":
        return os.stat("/")  # noqa: PTH116
    parent, _, name = path.rpartition("/")
    try:
        with directory(parent) as above:
            return look_in(above, name)
    except FileNotFoundError:
        return None


def look_in(above: int, name: str) -> os.stat_result | None:
    """What stands at a name in a directory; None if nothing does."""
    try:
        return os.stat(name, dir_fd=above, follow_symlinks=False)
    except FileNotFoundError:
        return None


@contextmanager
def plain_file(path: str) -> Iterator[int]:
    """A plain file, for reading.

    Raises:
        OSError: it is not there, is anything else, or a link is on the way.
    """
    parent, _, name = path.rpartition("/")
    with directory(parent) as above:
        descriptor = open_plain_in(above, name, path)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_plain_in(above: int, name: str, path: str) -> int:
    """As `plain_file`, by its name in a directory; the caller closes the descriptor."""
    _check_plain(os.stat(name, dir_fd=above, follow_symlinks=False), path)  # before a device is opened
    descriptor = os.open(name, _READ, dir_fd=above)
    try:
        _check_plain(os.fstat(descriptor), path)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


@contextmanager
def listing(path: str) -> Iterator[Iterator[os.DirEntry[str]]]:
    """The names in a directory, as they come.

    Raises:
        OSError: it is not there, is no directory, or a link is on the way.
    """
    with directory(path) as found, entries_of(found) as entries:
        yield entries


@contextmanager
def entries_of(found: int) -> Iterator[Iterator[os.DirEntry[str]]]:
    """The names in an opened directory."""
    descriptor = os.open(".", os.O_RDONLY | _DIRECTORY, dir_fd=found)
    try:
        with os.scandir(descriptor) as entries:
            yield entries
    finally:
        os.close(descriptor)


def sync(found: int) -> None:
    """Make the names in an opened directory durable."""
    descriptor = os.open(".", os.O_RDONLY | _DIRECTORY, dir_fd=found)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def exchange(above: int, name: str, other: str) -> None:
    """Let two names of a directory change places, in one step.

    Raises:
        OSError: one of them is not there, or the file system can't do that.
    """
    _rename(above, name, other, _EXCHANGE)


def move(above: int, name: str, free: str) -> None:
    """Give what stands at `name` the name `free` in the same directory, in one step.

    Raises:
        OSError: it is not there, the new name is taken, or the file system can't do that.
    """
    _rename(above, name, free, _NO_REPLACE)


def _rename(above: int, name: str, other: str, flags: int) -> None:
    number = _renameat2(above, os.fsencode(name), os.fsencode(other), flags)
    if number == 0:
        return
    if number in (errno.EINVAL, errno.ENOSYS):
        raise OSError(number, "this file system can't exchange two names in one step", name)
    raise OSError(number, os.strerror(number), name)


def _renameat2(above: int, name: bytes, other: bytes, flags: int) -> int:
    """Call the kernel; the error number, or 0."""
    import ctypes  # only who writes pays for it

    library = _library()
    failed = library.renameat2(above, name, above, other, flags)
    return ctypes.get_errno() if failed else 0


@functools.cache
def _library() -> Any:
    import ctypes

    return ctypes.CDLL(None, use_errno=True)


def _check_plain(found: os.stat_result, path: str) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if stat.S_ISLNK(found.st_mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
    if not stat.S_ISREG(found.st_mode):
        raise PermissionError(errno.EACCES, "not a plain file", path)


def _named(problem: OSError, path: str) -> OSError:
    return OSError(problem.errno, problem.strerror, path)
