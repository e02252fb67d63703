"""`licet audit show`: the records of one run, or one record."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click
from licet.cli.logs import reader_of
from licet.errors import UsageError

from licet_audit.cli import options

if TYPE_CHECKING:
    from licet.record import AuditReader, Record


@click.command("show")
@click.argument("run")
@options.of_a_log
@options.as_json
def show_run(run: str, state: str | None, policy: str | None, as_json: bool) -> int:
    """Show the records of one run.

    RUN is a run's id, the beginning of one, or #SEQ for a single record.
    """
    from licet.cli.terminal import put_json, put_table

    records = _select(reader_of(state, policy), run)
    if as_json:
        put_json([record.as_json() | {"leaf": record.leaf} for record in records])
        return 0
    rows: list[tuple[str, str, str, str]] = []
    for record in records:
        entry = record.entry
        kind = f"{entry.kind} {entry.phase}" if entry.phase else entry.kind
        head = (f"#{record.seq}", entry.time[11:23], kind)
        for text in _lines(entry.body):
            rows.append((*head, text))
            head = ("", "", "")
    put_table(("audit", "time", "record", "content"), rows)
    return 0


def _select(reader: AuditReader, run: str) -> tuple[Record, ...]:
    if not run.startswith("#"):
        return reader.records_of(run.upper())
    found = tuple(record for record in reader.records() if str(record.seq) == run[1:])
    if not found:
        raise UsageError(
            f"there is no record `{run}` in this log", advice="`licet audit list` shows the last ones"
        )
    return found


def _lines(body: Any, prefix: str = "") -> Iterable[str]:
    for key, value in body.items():
        if isinstance(value, dict) and value:
            yield from _lines(value, f"{prefix}{key}.")
        elif isinstance(value, list) and value:
            yield from (f"{prefix}{key}: {_short(item)}" for item in value)
        else:
            yield f"{prefix}{key}: {_short(value)}"


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(
            f"{key} {_short(inner)}" for key, inner in value.items() if inner not in (None, [], "")
        )
    if isinstance(value, list):
        return "; ".join(map(_short, value))
    return "-" if value is None else str(value)
