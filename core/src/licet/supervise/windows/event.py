"""A switch that any thread may throw, as an event of Windows."""

from __future__ import annotations

import threading

from licet.supervise.windows import winapi


class Event:
    """Off at first; `set` throws it for good."""

    def __init__(self) -> None:
        self._handle = winapi.create_event()
        self._guard = threading.Lock()

    def set(self) -> None:
        """Throw the switch; a handle that was closed may be somebody else's by now, and is left alone."""
        with self._guard:
            if self._handle:
                winapi.set_event(self._handle)

    def fileno(self) -> int:
        """The handle to wait for."""
        return self._handle

    def close(self) -> None:
        """Give the handle back."""
        with self._guard:
            handle, self._handle = self._handle, 0
            if handle:
                winapi.close(handle)
