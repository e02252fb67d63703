"""How attacks go, in one line on a terminal that vanishes when they are over; a pipe sees nothing of it."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from licet.probe.results import ProbeResult


class AttackProgress:
    """Hears of attacks and shows how many are over, and of how many if that is known."""

    def __init__(self) -> None:
        self._total: int | None = None
        self._shown: Progress | None = None
        self._task: TaskID | None = None

    def expect(self, total: int) -> None:
        """Say how many there will be."""
        self._total = total

    def __call__(self, result: ProbeResult) -> None:
        """One attack is over."""
        if self._shown is None and sys.stderr.isatty():
            self._start()
        if self._shown is not None and self._task is not None:
            text = f"attacking {result.backend} on this host: {result.control}/{result.variant}"
            self._shown.update(self._task, advance=1, description=text)

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        columns = (BarColumn(20), MofNCompleteColumn(), TextColumn("{task.description}", markup=False))
        self._shown = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._shown.add_task("", total=self._total)
        self._shown.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown is not None:
            self._shown.stop()
