"""The handles of one run: opened here, each closed exactly once."""

from __future__ import annotations

from types import TracebackType

from licet.supervise.windows import winapi


class Handles:
    """Owns what it is given; leaving the context closes whatever is still open, the last one first."""

    def __init__(self) -> None:
        self._open: list[int] = []

    def __enter__(self) -> Handles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        for handle in reversed(tuple(self._open)):
            self.close(handle)

    def own(self, handle: int) -> int:
        """Take over an open handle."""
        self._open.append(handle)
        return handle

    def close(self, handle: int) -> None:
        """Close one handle now; nothing happens if it is not open any more."""
        if handle in self._open:
            self._open.remove(handle)
            winapi.close(handle)

    def event(self) -> int:
        """Return a new event."""
        return self.own(winapi.create_event())
