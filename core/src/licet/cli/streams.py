"""Standard streams that nothing outside can break.

Rules this module keeps:

- a pipe or a terminal that nobody reads any more takes whatever is written to it: the command goes on, and
  its exit code stays its own;
- any text can be written, whatever encoding the terminal has;
- a standard descriptor that was closed is taken by nothing else, least of all by the log.
"""

from __future__ import annotations

import errno
import io
import os
import stat
import sys
from typing import Any

_NOBODY = (errno.EPIPE, errno.EIO)
_NAMES = {1: "standard output", 2: "standard error"}


class _Listener(io.FileIO):
    """A standard descriptor; what is written after its reader has gone is dropped."""

    _lost = False

    def write(self, data: Any) -> int:
        """Write, or pretend to where nobody listens.

        Raises:
            OSError: a file can't be written; once, so that flushing the rest at the exit can't fail too.
        """
        if self._lost:
            return len(data)
        try:
            return super().write(data)
        except BlockingIOError:
            raise
        except OSError as problem:
            self._lost = True
            if problem.errno in _NOBODY and not stat.S_ISREG(os.fstat(self.fileno()).st_mode):
                return len(data)
            raise OSError(problem.errno, problem.strerror, _NAMES[self.fileno()]) from None


def prepare() -> None:
    """Make stdout and stderr of this process unbreakable."""
    _hold_descriptors()
    sys.stdout = _unbreakable(sys.stdout, 1)
    sys.stderr = _unbreakable(sys.stderr, 2)


def finish() -> None:
    """Write what is still in a buffer.

    Raises:
        OSError: a file can't be written.
    """
    sys.stdout.flush()
    sys.stderr.flush()


def _hold_descriptors() -> None:
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:  # closed: this takes the lowest number that is free, which is this one
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


def _unbreakable(stream: Any, descriptor: int) -> io.TextIOWrapper:
    if sys.platform == "win32" and isinstance(stream, io.TextIOWrapper):  # a console there is no descriptor
        stream.reconfigure(errors="backslashreplace")
        return stream
    raw = _Listener(descriptor, "wb", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=getattr(stream, "encoding", "utf-8"),
        errors="backslashreplace",
        line_buffering=raw.isatty() or descriptor == 2,
    )
