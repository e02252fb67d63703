"""How far a command is: one line on a terminal that vanishes at its end; a pipe sees nothing of it."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from licet.probe.results import ProbeResult


_PATIENCE_S = 1.0


class Steps:
    """Counts steps, of `total` if that is known, and shows them where they take longer than a second."""

    def __init__(self, text: str = "", total: int | None = None) -> None:
        self._text = text
        self._total = total
        self._due = time.monotonic() + _PATIENCE_S
        self._done = 0
        self._shown: tuple[Progress, TaskID] | None = None

    def expect(self, total: int) -> None:
        """Say how many there will be."""
        self._total = total
        if self._shown is not None:
            progress, task = self._shown
            progress.update(task, total=total)

    def step(self, text: str | None = None) -> None:
        """One more is done; `text` is what to say from now on."""
        self._done += 1
        self._text = self._text if text is None else text
        if self._shown is None and sys.stderr.isatty() and time.monotonic() >= self._due:
            self._shown = self._start()
        if self._shown is not None:
            progress, task = self._shown
            progress.update(task, completed=self._done, description=self._text)

    def pause(self) -> None:
        """Let the line vanish, for whoever has something to say; the next step may show it again."""
        if self._shown is not None:
            self._shown[0].stop()
            self._shown = None

    def _start(self) -> tuple[Progress, TaskID]:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        columns = (BarColumn(20), MofNCompleteColumn(), TextColumn("{task.description}", markup=False))
        progress = Progress(*columns, console=Console(stderr=True), transient=True)
        progress.start()
        return progress, progress.add_task(self._text, total=self._total)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.pause()


class AttackProgress(Steps):
    """Hears of attacks."""

    def __call__(self, result: ProbeResult) -> None:
        """One attack is over."""
        self.step(f"attacking {result.backend} on this host: {result.control}/{result.variant}")
