"""A switch that any thread may throw, and that the wait of this system can wait for."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Protocol


class Stop:
    """Off at first; `set` throws it for good."""

    def __init__(self) -> None:
        self._switch: _Switch
        if os.name == "nt":
            from licet.supervise.windows.event import Event

            self._switch = Event()
        else:
            self._switch = _Pipe()

    def __enter__(self) -> Stop:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def set(self) -> None:
        """Throw the switch; again does nothing more."""
        self._switch.set()

    def fileno(self) -> int:
        """The descriptor that is readable, or on Windows the event that is set, once the switch is thrown."""
        return self._switch.fileno()

    def close(self) -> None:
        """Release it; whoever waits for it is not woken any more."""
        self._switch.close()


class _Switch(Protocol):
    def set(self) -> None: ...

    def fileno(self) -> int: ...

    def close(self) -> None: ...


class _Pipe:
    """Becomes readable when its writing end is closed."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()

    def set(self) -> None:
        if self._writer >= 0:
            writer, self._writer = self._writer, -1
            os.close(writer)

    def fileno(self) -> int:
        return self._reader

    def close(self) -> None:
        self.set()
        if self._reader >= 0:
            reader, self._reader = self._reader, -1
            os.close(reader)
