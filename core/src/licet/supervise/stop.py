"""A switch that any thread may throw, and that a selector can wait for."""

from __future__ import annotations

import os
from types import TracebackType


class Stop:
    """Off at first; `set` throws it for good."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()

    def __enter__(self) -> Stop:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def set(self) -> None:
        """Throw the switch; again does nothing more."""
        if self._writer >= 0:
            writer, self._writer = self._writer, -1
            os.close(writer)

    def fileno(self) -> int:
        """The descriptor that is readable once the switch is thrown."""
        return self._reader

    def close(self) -> None:
        """Release both ends."""
        self.set()
        if self._reader >= 0:
            reader, self._reader = self._reader, -1
            os.close(reader)
