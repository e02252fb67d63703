"""The format `ocsf` of `licet audit export`: one event a line, to a file or to stdout."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

from licet.cli.progress import Steps
from licet.errors import AuditUnavailable

from licet_audit.exports import Export, put_lines
from licet_audit.ocsf.events import Event
from licet_audit.ocsf.mapping import Mapper, tampered

_TAMPERED = 1


def write(export: Export) -> int:
    """Verify the log, then write its events; a log that is not what was written is the first of them.

    Raises:
        UsageError: the events can't go there.
        AuditUnavailable: the log can't be read.
    """
    from licet.cli.terminal import put_json

    events = _Events(export)
    count = put_lines(export, map(_line, events))
    if export.as_json:
        bad = events.exit_code == _TAMPERED
        put_json({"path": export.options["output"], "events": count, "tampered": bad})
    return events.exit_code


class _Events:
    """The events of an export; `exit_code` once they have been gone through."""

    def __init__(self, export: Export) -> None:
        self._export = export
        self.exit_code = 0

    def __iter__(self) -> Iterator[Event]:
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


def _line(event: Event) -> bytes:
    return json.dumps(event, ensure_ascii=True, separators=(",", ":")).encode("ascii") + b"\n"
