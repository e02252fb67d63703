"""The descriptors of one run: opened here, none inheritable, each closed exactly once."""

from __future__ import annotations

import errno
import os
import selectors
import socket
import stat
from types import TracebackType

_FOLDER = sum(getattr(os, name, 0) for name in ("O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_PATH"))
_EFFECTIVE = os.access in os.supports_effective_ids


class Descriptors:
    """Owns what it opens; leaving the context closes whatever is still open."""

    def __init__(self) -> None:
        self._open: set[int] = set()
        self._selectors: list[selectors.BaseSelector] = []

    def __enter__(self) -> Descriptors:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        for selector in self._selectors:
            selector.close()
        for fd in tuple(self._open):
            self.close(fd)

    def own(self, fd: int) -> int:
        """Take over an open descriptor."""
        self._open.add(fd)
        return fd

    def close(self, fd: int) -> None:
        """Close one descriptor now; nothing happens if it is not open any more."""
        if fd in self._open:
            self._open.discard(fd)
            os.close(fd)

    def pipe(self) -> tuple[int, int]:
        """Return a new pipe: reading end, writing end."""
        reader, writer = os.pipe()
        return self.own(reader), self.own(writer)

    def socketpair(self) -> tuple[int, int]:
        """Return two connected stream sockets."""
        ours, theirs = socket.socketpair()
        return self.own(ours.detach()), self.own(theirs.detach())

    def null(self) -> int:
        """Return an empty input."""
        return self.own(os.open(os.devnull, os.O_RDONLY))

    def folder(self, path: str) -> int:
        """Open the directory at an absolute path, so that what is entered later is what was looked at now.

        No symbolic link is followed on the way: whoever exchanges a name for one gets nothing opened.

        Raises:
            OSError: it is none, may not be entered, or a symbolic link leads there.
            ValueError: the path is not absolute, or contains a NUL.
        """
        if not path.startswith("/"):
            raise ValueError("it is not absolute")
        here = os.open("/", _FOLDER)
        try:
            for name in path.split("/"):
                if name:
                    above, here = here, _step(here, name)
                    os.close(above)
            if not os.access(".", os.X_OK, dir_fd=here, effective_ids=_EFFECTIVE):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        except BaseException:
            os.close(here)
            raise
        return self.own(here)

    def selector(self) -> selectors.BaseSelector:
        """Return a new selector."""
        selector = selectors.DefaultSelector()
        self._selectors.append(selector)
        return selector


def _step(above: int, name: str) -> int:
    """Open the directory `name` inside `above`."""
    try:
        return os.open(name, _FOLDER, dir_fd=above)
    except NotADirectoryError:
        if stat.S_ISLNK(os.lstat(name, dir_fd=above).st_mode):
            raise OSError(errno.ELOOP, "a symbolic link is on the way") from None
        raise
