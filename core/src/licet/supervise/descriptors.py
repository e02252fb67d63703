"""The descriptors of one run: opened here, none inheritable, each closed exactly once."""

from __future__ import annotations

import os
import selectors
import socket
from types import TracebackType


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
        """Open a directory, so that what is entered later is what was looked at now.

        Raises:
            OSError: it is none, or may not be opened.
            ValueError: the path contains a NUL.
        """
        return self.own(os.open(path, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)))

    def selector(self) -> selectors.BaseSelector:
        """Return a new selector."""
        selector = selectors.DefaultSelector()
        self._selectors.append(selector)
        return selector
