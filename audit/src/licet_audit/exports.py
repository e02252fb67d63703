"""The formats that a trail can be exported in, and what an export is given.

A format is one line in `FORMATS`: where its function is (imported when it is asked for), and which options
of `licet audit export` it takes. The function gets an `Export` and returns the exit code of the command.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from licet.errors import UsageError

if TYPE_CHECKING:
    from licet_audit.reader import LogReader
    from licet_audit.selection import Selection


@dataclass(frozen=True, slots=True)
class Export:
    """One export: what is exported, and the options that the format takes, by name.

    An option that was not given is there with its default. `as_json` asks for one JSON document on stdout
    that says what was done; where the export itself goes to stdout, a format refuses it.
    """

    reader: LogReader
    selection: Selection
    options: Mapping[str, Any] = field(default_factory=dict)
    as_json: bool = False


def put_lines(export: Export, lines: Iterable[bytes]) -> int | None:
    """Write lines to the new file that the option `output` names, or to stdout.

    Returns how many there were; None if they went to stdout.

    Raises:
        UsageError: the file exists or would lie in the log's own directory, or stdout is for JSON.
    """
    from licet_audit.outputs import new_file, refuse_inside

    output: str | None = export.options["output"]
    if output is None:
        if export.as_json:
            raise UsageError(
                "`--json` and the export both go to stdout", advice="give one of them, or `-o FILE`"
            )
        sys.stdout.buffer.writelines(lines)
        return None
    refuse_inside(export.reader.state.path, Path(output))
    count = 0
    with new_file(Path(output)) as file:
        for count, line in enumerate(lines, 1):  # noqa: B007
            file.write(line)
    return count


@dataclass(frozen=True, slots=True)
class Format:
    """What a format is for, its function as `module:name`, and the options it takes."""

    summary: str
    function: str
    takes: frozenset[str]

    def write(self, export: Export) -> int:
        """Export, and return the exit code.

        Raises:
            LicetError: it can't be done.
        """
        module, _, name = self.function.partition(":")
        code: int = getattr(import_module(module), name)(export)
        return code


FORMATS: Mapping[str, Format] = {
    "bundle": Format(
        "records with what proves them, which anybody can check without licet",
        "licet_audit.bundle.writing:write",
        frozenset({"output", "content"}),
    ),
    "jsonl": Format(
        "the records as they stand in the log, one a line",
        "licet_audit.lines:write",
        frozenset({"output"}),
    ),
    "otlp": Format(
        "all records to an OpenTelemetry collector (--to), from where the last export to it ended",
        "licet_audit.otlp.command:write",
        frozenset({"to", "header", "signal", "follow", "patience", "again"}),
    ),
    "ocsf": Format(
        "events of the Open Cybersecurity Schema Framework, one a line",
        "licet_audit.ocsf.writing:write",
        frozenset({"output"}),
    ),
}
