"""The logs that a command line names.

Rules this module keeps: nothing is written; a directory without a log is an error, not an empty log.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from licet.cli import places
from licet.cli.progress import Steps
from licet.errors import AuditUnavailable, UsageError
from licet.output import bounded

if TYPE_CHECKING:
    from licet.record import AuditReader
    from licet.settings import Settings
    from licet.workbench.history.recorded import RecordedRun


def reader_of(state: str | None, policy: str | None) -> AuditReader:
    """Read the log in the state directory `state`, or of `policy`; without either, that of packs here.

    Raises:
        UsageError: both are given.
        AuditUnavailable: there is no log, or it can't be read.
    """
    if state is not None and policy is not None:
        raise UsageError("`--state` and `--policy` both name a log", advice="give one of them")
    usual, settings = places.found(policy)
    advice = "name its directory with `--state`, or the policy that it belongs to with `--policy`"
    return _reader(state if state is not None else str(usual), settings, advice)


def readers(directories: Sequence[str], policy: str) -> list[tuple[str, AuditReader]]:
    """A reader of each of the state `directories`, by their names; with none, of that of `policy`.

    Raises:
        AuditUnavailable: one of them holds no log.
    """
    usual, settings = places.found(policy)
    named = tuple(dict.fromkeys(directories)) or (str(usual),)
    advice = "name the state directory that holds it with `--log`"
    return [(name, _reader(name, settings, advice)) for name in named]


def _reader(directory: str, settings: Settings, advice: str) -> AuditReader:
    from licet.plugins import Plugins
    from licet.state import read_state

    if not os.path.lexists(directory):
        raise AuditUnavailable(f"there is no log at `{bounded(directory, 300)}`", advice=advice)
    return Plugins(settings).audit_reader(read_state(Path(directory)))


def each_run(logs: Sequence[tuple[str, AuditReader]], hear: Callable[[RecordedRun], None]) -> None:
    """Let `hear` have all runs of all logs, log by log, and show how many it has had."""
    from licet.workbench.history.recorded import runs

    with Steps() as steps:
        for number, (name, reader) in enumerate(logs, 1):
            for run in runs(name, reader.records()):
                hear(run)
                steps.step(f"runs decided again, log {number} of {len(logs)}")
