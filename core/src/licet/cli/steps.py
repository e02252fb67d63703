"""How far a command is that takes longer than a second: one line on a terminal that vanishes at its end."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_PATIENCE_S = 1.0


class Steps:
    """Counts steps of `total`, in words `text`; a pipe sees nothing of it."""

    def __init__(self, text: str, total: int) -> None:
        self._text = text
        self._total = total
        self._done = 0
        self._began = time.monotonic()
        self._shown: Progress | None = None
        self._task: TaskID | None = None

    def step(self) -> None:
        """One more is done."""
        self._done += 1
        if self._shown is None and sys.stderr.isatty() and time.monotonic() - self._began > _PATIENCE_S:
            self._start()
        if self._shown is not None and self._task is not None:
            self._shown.update(self._task, completed=self._done)

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        columns = (BarColumn(20), MofNCompleteColumn(), TextColumn("{task.description}", markup=False))
        self._shown = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._shown.add_task(self._text, total=self._total)
        self._shown.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown is not None:
            self._shown.stop()
