"""The log that a command line names, as this distribution reads it."""

from __future__ import annotations

from licet.cli.logs import reader_of as any_reader_of
from licet.errors import UsageError

from licet_audit.reader import LogReader


def reader_of(state: str | None, policy: str | None) -> LogReader:
    """Read the log in the state directory `state`, or of `policy`; without either, that of packs here.

    Raises:
        UsageError: both are given, or another plugin keeps that log.
        AuditUnavailable: there is no log, or it can't be read.
    """
    reader = any_reader_of(state, policy)
    if not isinstance(reader, LogReader):
        raise UsageError(
            f"that log is kept by another plugin (`{type(reader).__module__}`)",
            advice="use the commands of that plugin",
        )
    return reader
