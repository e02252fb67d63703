"""`licet audit show`: one run as a timeline, or its records, or one record.

Rules this module keeps: `--json` and `--all` leave nothing out; the timeline says how much it leaves out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click
from licet.cli.logs import reader_of
from licet.errors import UsageError

from licet_audit.cli import options

if TYPE_CHECKING:
    from licet.record import AuditReader, Record

    from licet_audit.timeline import Row

_STYLES = {"good": "green", "bad": "red", "warn": "yellow", "plain": "", "faint": "dim"}


@click.command("show")
@click.argument("run")
@options.of_a_log
@click.option("--all", "everything", is_flag=True, help="Show every field of every record as it is.")
@options.as_json
def show_run(run: str, state: str | None, policy: str | None, everything: bool, as_json: bool) -> int:
    """Show one run as a timeline: who asked for what, what was decided, what happened.

    RUN is a run's id, the beginning of one, or #SEQ for a single record.
    """
    from licet.cli.terminal import put_json

    records = _select(reader_of(state, policy), run)
    if as_json:
        put_json([record.as_json() | {"leaf": record.leaf} for record in records])
    elif everything or run.startswith("#"):
        _put_fields(records)
    else:
        _put_timeline(records)
    return 0


def _select(reader: AuditReader, run: str) -> tuple[Record, ...]:
    if not run.startswith("#"):
        return reader.records_of(run.upper())
    number = run[1:]
    found = (
        _record(reader, int(number)) if number.isascii() and number.isdigit() and len(number) < 20 else None
    )
    if found is None:
        raise UsageError(
            f"there is no record `{run}` in this log", advice="`licet audit list` shows the last ones"
        )
    return (found,)


def _record(reader: AuditReader, seq: int) -> Record | None:
    from licet_audit.reader import LogReader

    if not isinstance(reader, LogReader):  # another plugin's log, which has no index
        return next((record for record in reader.records() if record.seq == seq), None)
    from licet_audit.cli.indexes import index_of

    with index_of(reader) as index:
        return index.record(seq)


def _put_timeline(records: Sequence[Record]) -> None:
    from licet.cli.terminal import put_heading, put_table

    from licet_audit.timeline import rows

    first = records[0]
    when = first.entry.time[:19].replace("T", " ")
    put_heading(f"run {first.entry.run_id} · {when} UTC · log {first.log}")
    told = list(_without_details(rows(records)))
    styles = [_STYLES[row.tone] for _, row in told]
    put_table(("audit", "time", "what", ""), [_cells(*one) for one in told], styles=styles)
    left_out = sum(1 for _ in rows(records)) - len(told)
    if left_out:
        click.echo(f"{left_out} lines of digests and the like are left out: `--all` shows every field")


def _without_details(rows: Iterable[Row]) -> Iterator[tuple[bool, Row]]:
    """The rows that say more than digests, each with whether it is the first one of its record."""
    seq = None
    for row in rows:
        if row.tone != "faint":
            yield row.seq != seq, row
            seq = row.seq


def _cells(first: bool, row: Row) -> tuple[str, str, str, str]:
    from licet_audit.timeline import show_time

    if not first:
        return "", "", row.what, row.text
    after = "?" if row.after is None else f"{'' if row.after < 0 else '+'}{show_time(row.after)}"
    return f"#{row.seq}", after, row.what, row.text


def _put_fields(records: Iterable[Record]) -> None:
    from licet.cli.terminal import put_table

    rows: list[tuple[str, str, str, str]] = []
    for record in records:
        entry = record.entry
        kind = f"{entry.kind} {entry.phase}" if entry.phase else entry.kind
        head = (f"#{record.seq}", entry.time[11:23], kind)
        around = {"leaf": record.leaf, "prev": record.prev, "writer": dict(record.writer)}
        for text in _lines({**entry.body, **({"kept": dict(record.kept)} if record.kept else {}), **around}):
            rows.append((*head, text))
            head = ("", "", "")
    put_table(("audit", "time", "record", "content"), rows)


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
