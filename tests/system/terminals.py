"""A person at a terminal: `licet` on a pseudoterminal of its own, which reads and types."""

from __future__ import annotations

import fcntl
import os
import re
import select
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from cli import heed_signals

_PATIENCE_S = 60.0
_COLOURS = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]|\x1b[78]")


class Terminal:
    """`licet` with these arguments (or `program`), whose three streams are a terminal that controls it."""

    def __init__(
        self, *arguments: str, rows: int = 50, columns: int = 100, program: Sequence[str] = ()
    ) -> None:
        self._ours, theirs = os.openpty()
        termios.tcsetwinsize(theirs, (rows, columns))
        self._process = subprocess.Popen(
            program or [sys.executable, "-m", "licet", *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=_control,
        )
        os.close(theirs)
        self._raw = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        os.close(self._ours)

    @property
    def said(self) -> str:
        """All that appeared so far, without colours."""
        return _COLOURS.sub(b"", self._raw).decode("utf-8", "replace").replace("\r\n", "\n")

    def see(self, text: str, times: int = 1) -> str:
        """Read on until `text` has appeared so often, and say all that has."""
        deadline = time.monotonic() + _PATIENCE_S
        while self.said.count(text) < times:
            assert self._read(deadline), f"{text!r} never appeared in:\n{self.said}"
        return self.said

    def type(self, text: str) -> None:
        """Type on the keyboard; `\\x03` is Ctrl-C."""
        os.write(self._ours, text.encode())

    def end(self) -> int:
        """Read to the end; the exit code."""
        deadline = time.monotonic() + _PATIENCE_S
        while self._read(deadline):
            pass
        return self._process.wait(_PATIENCE_S)

    def _read(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._ours], [], [], max(deadline - time.monotonic(), 0))
        try:
            data = os.read(self._ours, 65536) if ready else b""
        except OSError:  # what Linux says when nobody holds the other end
            data = b""
        self._raw += data
        return bool(data)


def _control() -> None:
    """Make the terminal the one that controls the process, so that Ctrl-C reaches it."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    heed_signals()
