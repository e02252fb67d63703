"""Logs that a command line names, and how far reading them is.

Rules this module keeps: nothing is written; a directory without a log is an error, not an empty log.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from licet.errors import AuditUnavailable
from licet.output import bounded

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from licet.record import AuditReader
    from licet.workbench.history.recorded import RecordedRun


def readers(directories: Sequence[str], policy: str) -> list[tuple[str, AuditReader]]:
    """A reader of each of the state `directories`, by their names; with none, of that of `policy`.

    Raises:
        AuditUnavailable: one of them holds no log.
    """
    from licet import state as states
    from licet.cli import places
    from licet.plugins import Plugins

    usual, settings = places.found(policy)
    named = tuple(dict.fromkeys(directories)) or (str(usual),)
    plugins = Plugins(settings)
    found = []
    for name in named:
        if not os.path.lexists(name):
            raise AuditUnavailable(
                f"there is no log at `{bounded(name, 300)}`",
                advice="name the state directory that holds it with `--log`",
            )
        found.append((name, plugins.audit_reader(states.read_state(Path(name)))))
    return found


class Reading:
    """Shows how many runs of how many logs are read, in one line on a terminal; a pipe sees nothing of it."""

    def __init__(self, logs: Sequence[tuple[str, AuditReader]]) -> None:
        self._logs = logs
        self._shown: Progress | None = None
        self._task: TaskID | None = None

    def runs(self) -> Iterator[RecordedRun]:
        """All runs of all logs, log by log."""
        from licet.workbench.history import recorded

        count = 0
        for number, (name, reader) in enumerate(self._logs, 1):
            for run in recorded.runs(name, reader.records()):
                count += 1
                if count % 100 == 0:
                    self._show(count, number)
                yield run

    def _show(self, count: int, number: int) -> None:
        if self._shown is not None and self._task is not None:
            text = f"{count:,} runs decided again, log {number} of {len(self._logs)}"
            self._shown.update(self._task, description=text)

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (BarColumn(20), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
            self._shown = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._shown.add_task("reading", total=None)
            self._shown.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown is not None:
            self._shown.stop()
