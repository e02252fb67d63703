"""The format `ocsf` of `licet audit export`: one event a line, to a file or to stdout."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from licet.cli.progress import Steps
from licet.errors import AuditUnavailable, UsageError
from licet.output import bounded

from licet_audit.exports import Export
from licet_audit.ocsf.events import Event
from licet_audit.ocsf.mapping import Mapper, tampered
from licet_audit.outputs import new_file

_TAMPERED = 1


def write(export: Export) -> int:
    """Verify the log, then write its events; a log that is not what was written is the first of them.

    Raises:
        UsageError: the file exists, or would pass for a segment of the log.
        AuditUnavailable: the log can't be read.
    """
    from licet.cli.terminal import put_json

    output: str | None = export.options["output"]
    if output is None:
        if export.as_json:
            raise UsageError(
                "`--json` and the events both go to stdout", advice="give one of them, or `-o FILE`"
            )
        events = _Events(export)
        sys.stdout.writelines(map(_line, events))
        return events.exit_code
    path = Path(output)
    if path.suffix == ".jsonl" and export.reader.state.path in (*path.absolute().parents,):
        raise UsageError(
            f"`{bounded(output, 300)}` would pass for a part of the log", advice="name it `.ndjson`"
        )
    events = _Events(export)
    with new_file(path) as file:
        for event in events:
            file.write(_line(event).encode("ascii"))
    if export.as_json:
        put_json({"path": output, "events": events.count, "tampered": events.exit_code == _TAMPERED})
    return events.exit_code


class _Events:
    """The events of an export; `exit_code` once they have been gone through."""

    def __init__(self, export: Export) -> None:
        self._export = export
        self.count = 0
        self.exit_code = 0

    def __iter__(self) -> Iterator[Event]:
        for event in self._all():
            self.count += 1
            yield event

    def _all(self) -> Iterator[Event]:
        from licet.cli.terminal import warn

        reader = self._export.reader
        verification = reader.verify()
        found = tampered(verification, reader.state.log_id)
        if found is not None:
            self.exit_code = _TAMPERED if verification.status == "tampered" else 0
            yield found | {"time": time.time_ns() // 1_000_000}
        mapper = Mapper()
        try:
            with Steps("records read") as steps:
                for record in self._export.selection.records(reader.records()):
                    steps.step()
                    yield from mapper.feed(record)
        except AuditUnavailable as problem:
            if found is None:
                raise
            warn(f"events end where the log can't be read: {problem.message}")


def _line(event: Event) -> str:
    return json.dumps(event, ensure_ascii=True, separators=(",", ":")) + "\n"
