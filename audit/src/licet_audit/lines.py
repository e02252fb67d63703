"""The records of a log as they stand in it: their lines, byte for byte."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from licet.cli.progress import Steps
from licet.errors import AuditUnavailable
from licet.record import Record, from_json, leaf_hash
from licet.state import StateDirectory, failures

from licet_audit.chain import decode
from licet_audit.exports import Export
from licet_audit.outputs import new_file
from licet_audit.segments import lines, listing
from licet_audit.selection import Picker, Selection


def numbered(state: StateDirectory) -> Iterator[tuple[int, bytes]]:
    """The whole lines of a log without their newlines, each with the number of its record.

    Raises:
        AuditUnavailable: the log can't be read.
    """
    with failures(state.path):
        for segment in listing(state):
            for seq, line in enumerate(lines(segment), segment.first):
                if line.complete:
                    yield seq, line.data


def read(seq: int, line: bytes) -> Record:
    """The record of a line.

    Raises:
        AuditUnavailable: it is none, or has another number.
    """
    try:
        record = from_json(decode(line), leaf_hash(line))
        if record.seq != seq:
            raise ValueError(f"it says it is #{record.seq}")
    except ValueError as problem:
        raise AuditUnavailable(
            f"record #{seq} can't be read: {problem}", advice="`licet audit verify` says what else is wrong"
        ) from None
    return record


def chosen(state: StateDirectory, selection: Selection) -> Iterator[tuple[int, bytes, Record]]:
    """The lines that a selection means, and their records.

    Raises:
        AuditUnavailable: the log can't be read.
    """
    picker = Picker(selection)
    with Steps("records read") as steps:
        for seq, line in numbered(state):
            steps.step()
            record = read(seq, line)
            if picker.takes(record.entry.run_id, record.entry.time):
                yield seq, line, record


def write(export: Export) -> int:
    """Export lines to a file, or to stdout.

    Raises:
        UsageError: the file exists.
        AuditUnavailable: the log can't be read.
    """
    from licet.cli.terminal import put_json
    from licet.errors import UsageError

    output: str | None = export.options["output"]
    found = (line + b"\n" for _, line, _ in chosen(export.reader.state, export.selection))
    if output is None:
        if export.as_json:
            raise UsageError(
                "`--json` and the records both go to stdout", advice="give one of them, or `-o FILE`"
            )
        sys.stdout.buffer.writelines(found)
        return 0
    count = 0
    with new_file(Path(output)) as file:
        for count, line in enumerate(found, 1):  # noqa: B007
            file.write(line)
    if export.as_json:
        put_json({"path": output, "records": count})
    return 0
