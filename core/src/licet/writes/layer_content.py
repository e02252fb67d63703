"""The content of files that lie in a layer, read where it lies.

Rules this module keeps:

- nothing is held open: each reading walks from the layer's directory, name by name, and follows no link;
- what is read is what was collected, or the reading fails: the same file, the same size, unchanged since;
- holes are content: a file is as long as it says, whatever room it takes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from licet.errors import reason_of
from licet.writes.layer_marks import open_in
from licet.writes.staged import NotCommitted

PIECE = 1 << 18


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """The content of the file at `names` below the directory `layer`, as `found` there."""

    layer: int
    names: tuple[str, ...]
    found: os.stat_result

    @property
    def size(self) -> int:
        """In bytes."""
        return self.found.st_size

    def chunks(self) -> Iterator[bytes]:
        """The content, piece by piece.

        Raises:
            NotCommitted: it is not what was collected any more, or can't be read.
        """
        try:
            descriptor = self._open()
        except OSError as problem:
            raise NotCommitted(
                f"{self._named} can't be read, so nothing was written: {reason_of(problem)}"
            ) from None
        try:
            yield from self._read(descriptor)
        finally:
            os.close(descriptor)

    def _read(self, descriptor: int) -> Iterator[bytes]:
        left = self.size
        self._check(descriptor)
        while left:
            piece = os.read(descriptor, min(PIECE, left))
            if not piece:
                break
            left -= len(piece)
            yield piece
        self._check(descriptor)

    def _check(self, descriptor: int) -> None:
        now, then = os.fstat(descriptor), self.found
        same = (
            os.path.samestat(now, then)
            and now.st_size == then.st_size
            and now.st_mtime_ns == then.st_mtime_ns
        )
        if not same:
            raise NotCommitted(f"{self._named} changed while it was collected, so nothing was written")

    def _open(self) -> int:
        here = os.dup(self.layer)
        try:
            for name in self.names[:-1]:
                further = open_in(here, name, directory=True)
                os.close(here)
                here = further
            return open_in(here, self.names[-1], directory=False)
        finally:
            os.close(here)

    @property
    def _named(self) -> str:
        return f"`{'/'.join(self.names)}`, which the code wrote,"
