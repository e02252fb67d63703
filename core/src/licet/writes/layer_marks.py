"""What a name in the upper layer of an overlay stands for.

Rules this module keeps:

- a layer is read as the kernel reads it, but what makes a name stand for content elsewhere (`redirect`,
  `metacopy`) is never followed: it is refused, as is every mark that is not known here;
- a layer that began empty is no overlay: whatever marks the code put there mean nothing;
- links, pipes, sockets and devices are refused;
- nothing is opened before it is known to be a plain file or a directory, and no link is followed.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import Literal

from licet.output import escape
from licet.writes.staged import NotCommitted

Kind = Literal["file", "directory", "gone"]

_PREFIX = "user.overlay."
_ESCAPED = "user.overlay.overlay."  # the code's own, which the kernel keeps apart from its marks
_HARMLESS = frozenset({"origin", "impure", "nlink", "uuid"})
_FLAGS = (
    os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
)
_WHITEOUT = 0  # device number
_OWN = 0o700


@dataclass(frozen=True, slots=True)
class Mark:
    """A `file`, a `directory`, or that something is `gone`.

    `opaque` if a directory hides what the host has there; `copied` if it stood on the host and was taken up
    from there, a file perhaps under another name.
    """

    kind: Kind
    found: os.stat_result
    opaque: bool = False
    copied: bool = False


def mark_of(above: int, name: str, path: str, *, bare: bool) -> Mark:
    """What a name in an opened directory of a layer says; `bare` if the layer began empty.

    Raises:
        NotCommitted: it is nothing that can be brought to the host.
        OSError: it can't be read.
    """
    found = os.stat(name, dir_fd=above, follow_symlinks=False)
    kind = _kind(found, path, bare=bare)
    if kind == "gone":
        return Mark(kind, found)
    descriptor = open_in(above, name, directory=kind == "directory")
    try:
        if not os.path.samestat(os.fstat(descriptor), found):
            raise NotCommitted(f"`{path}` changed while it was collected, so nothing was written")
        return Mark(kind, found) if bare else _read(descriptor, kind, found, path)
    finally:
        os.close(descriptor)


def open_in(above: int, name: str, *, directory: bool) -> int:
    """A plain file or a directory of a layer, for reading; the caller closes the descriptor.

    Code may have taken away its own right to read what it wrote; as owner it is given back.

    Raises:
        OSError: it can't be opened.
    """
    flags = _FLAGS | (os.O_DIRECTORY if directory else 0)
    try:
        descriptor = os.open(name, flags, dir_fd=above)
    except PermissionError:
        os.chmod(name, _OWN, dir_fd=above, follow_symlinks=False)
        return os.open(name, flags, dir_fd=above)
    if directory and os.fstat(descriptor).st_mode & _OWN != _OWN:  # to be listed is not to be passed through
        os.fchmod(descriptor, _OWN)
    return descriptor


def _kind(found: os.stat_result, path: str, *, bare: bool) -> Kind:
    mode = found.st_mode
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    if stat.S_ISCHR(mode) and found.st_rdev == _WHITEOUT and not bare:
        return "gone"
    what = "a symbolic link" if stat.S_ISLNK(mode) else "a pipe, a socket or a device"
    raise NotCommitted(
        f"`{path}` is {what}, so nothing was written; only plain files and directories reach the host"
    )


def _read(descriptor: int, kind: Kind, found: os.stat_result, path: str) -> Mark:
    marks = {
        name.removeprefix(_PREFIX): os.getxattr(descriptor, name)
        for name in os.listxattr(descriptor)
        if name.startswith(_PREFIX) and not name.startswith(_ESCAPED)
    }
    copied = "origin" in marks
    opaque = marks.pop("opaque", b"x")
    white = marks.pop("whiteout", None) is not None
    unknown = sorted(marks.keys() - _HARMLESS)
    if opaque not in (b"x", b"y"):
        unknown.append("opaque")
    if unknown:
        raise NotCommitted(
            f"`{path}` is marked `{escape(unknown[0])}` in its layer, which is not followed, "
            "so nothing was written"
        )
    if white and kind == "file" and found.st_size == 0:
        return Mark("gone", found)
    return Mark(kind, found, kind == "directory" and opaque == b"y", copied)
