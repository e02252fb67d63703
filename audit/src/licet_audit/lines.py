"""The records of a log as they stand in it: their lines, byte for byte."""

from __future__ import annotations

from collections.abc import Iterator

from licet.cli.progress import Steps
from licet.errors import AuditUnavailable
from licet.record import Record, from_json, leaf_hash
from licet.state import StateDirectory, failures

from licet_audit.chain import decode
from licet_audit.exports import Export, put_lines
from licet_audit.segments import lines_from, snapshot
from licet_audit.selection import Picker, Selection


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
    with failures(state.path), Steps("records read") as steps:
        for seq, line in lines_from(snapshot(state), 0):
            steps.step()
            record = read(seq, line)
            if picker.takes(record.entry.run_id, record.entry.time):
                yield seq, line, record


def write(export: Export) -> int:
    """Export lines to a file, or to stdout.

    Raises:
        UsageError: the lines can't go there.
        AuditUnavailable: the log can't be read.
    """
    from licet.cli.terminal import put_json

    count = put_lines(export, (line + b"\n" for _, line, _ in chosen(export.reader.state, export.selection)))
    if export.as_json:
        put_json({"path": export.options["output"], "records": count})
    return 0
