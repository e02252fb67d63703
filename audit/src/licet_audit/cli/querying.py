"""`licet audit query`: the runs, or their records, that answer a question.

Rules this module keeps:

- a document for programs has all that was asked for; a table has the newest, and says how many there are;
- what is written is written as it is found, so that memory does not grow with the log.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click
from licet.errors import UsageError

from licet_audit.cli import filters, options
from licet_audit.cli.readers import reader_of

if TYPE_CHECKING:
    from licet.record import Record

    from licet_audit.index import Index, RunRow, Wanted

_MOST = 50  # lines of a table
_GROUPS = (
    *("day", "hour", "effect", "termination", "backend"),
    *("subject", "tenant", "rule", "host", "tool", "denied"),
    *("approver", "approval_state"),
)
_RECORD = ("seq", "time", "run_id", "kind", "phase", "leaf", "body")


@click.command()
@options.of_a_log
@filters.filters
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    help=f"How many runs, the newest ones; by default {_MOST} in a table, and all in a document.",
)
@click.option("--records", is_flag=True, help="Write the records of the runs.")
@click.option("--count", is_flag=True, help="Write only how many runs there are.")
@click.option("--by", type=click.Choice(_GROUPS), help="Count the runs by this and by what was decided.")
@click.option("--csv", "as_csv", is_flag=True, help="Write CSV to stdout, safe to open in a spreadsheet.")
@options.as_json
def query(
    state: str | None,
    policy: str | None,
    limit: int | None,
    records: bool,
    count: bool,
    by: str | None,
    as_csv: bool,
    as_json: bool,
    **given: str | None,
) -> int:
    """Find runs by what was decided, for whom, where, when, and how they ended.

    Filters add up. The order is that of the log, oldest first.
    """
    _one_of({"--records": records, "--count": count, "--by": by is not None})
    _one_of({"--json": as_json, "--csv": as_csv})
    asked = filters.wanted(given, datetime.now(UTC))
    from licet.cli.terminal import warn

    from licet_audit.cli.indexes import index_of

    with index_of(reader_of(state, policy)) as index:
        filters.check_words(asked, index)
        for sentence in filters.unknown_names(asked, index):
            warn(sentence)
        if by is not None:
            _put_groups(index.counts(asked, by), by, as_csv=as_csv, as_json=as_json)  # type: ignore[arg-type]
        elif count:
            _put_count(index.count(asked), as_csv=as_csv, as_json=as_json)
        else:
            most = limit or (None if as_json or as_csv else _MOST)
            _put_found(index, asked, most, records=records, as_csv=as_csv, as_json=as_json)
    return 0


def _one_of(options: dict[str, bool]) -> None:
    given = [name for name, value in options.items() if value]
    if len(given) > 1:
        raise UsageError(f"`{given[0]}` and `{given[1]}` ask for different things", advice="give one of them")


def _put_found(
    index: Index, asked: Wanted, most: int | None, *, records: bool, as_csv: bool, as_json: bool
) -> None:
    from licet.cli.terminal import say

    runs, total = _newest(index, asked, most), index.count(asked)
    if as_json or as_csv:
        names = _RECORD if records else _columns()
        found = _of_records(index, runs) if records else _of_runs(runs)
        (_put_csv if as_csv else _put_array)(names, found)
    elif total:
        _put_table(index, list(runs), records=records)
    else:
        say("no run answers that")
    if most is not None and total > most:
        say(f"the newest {most} of {total} runs: `--limit` takes more")


def _newest(index: Index, asked: Wanted, most: int | None) -> Iterable[RunRow]:
    """The newest `most` runs, oldest first."""
    if most is None:
        return index.runs(asked)
    return list(index.runs(replace(asked, newest_first=True, limit=most)))[::-1]


def _of_runs(runs: Iterable[RunRow]) -> Iterator[dict[str, Any]]:
    from licet_audit.cli.tables import as_json

    return map(as_json, runs)


def _of_records(index: Index, runs: Iterable[RunRow]) -> Iterator[dict[str, Any]]:
    return (record.as_json() | {"leaf": record.leaf} for run in runs for record in index.records(run.run_id))


def _columns() -> tuple[str, ...]:
    from licet_audit.index.rows import FIELDS

    return FIELDS[:-1]


def _put_csv(names: tuple[str, ...], found: Iterable[dict[str, Any]]) -> None:
    from licet_audit.cli import csvtext

    click.echo(csvtext.line(names), nl=False)
    for one in found:
        cells = (json.dumps(one[name]) if name == "body" else one.get(name) for name in names)
        click.echo(csvtext.line(cells), nl=False)


def _put_array(names: tuple[str, ...], found: Iterable[dict[str, Any]]) -> None:
    """One JSON document, an element a line."""
    lead = "[\n"
    for one in found:
        click.echo(f"{lead}{json.dumps(one)}", nl=False)
        lead = ",\n"
    click.echo("[]" if lead == "[\n" else "\n]")


def _put_table(index: Index, runs: list[RunRow], *, records: bool) -> None:
    from licet.cli.terminal import put_table

    from licet_audit.cli import tables

    if records:
        rows = (_line(record) for run in runs for record in index.records(run.run_id))
        put_table(("audit", "time (UTC)", "run", "record", "leaf"), rows)
        return
    columns = (*tables.COLUMNS, "denied")
    put_table(
        columns,
        [(*tables.cells(run), "; ".join(run.denied) or "-") for run in runs],
        prose=1,
        whole=tables.RUN,
    )


def _line(record: Record) -> tuple[str, ...]:
    entry = record.entry
    kind = f"{entry.kind} {entry.phase}" if entry.phase else entry.kind
    return f"#{record.seq}", entry.time[:23].replace("T", " "), entry.run_id, kind, record.leaf


def _put_count(number: int, *, as_csv: bool, as_json: bool) -> None:
    from licet.cli.terminal import put_json

    from licet_audit.cli import csvtext

    if as_json:
        put_json({"count": number})
    else:
        click.echo(csvtext.line(["count"]) + csvtext.line([number]) if as_csv else number, nl=not as_csv)


def _put_groups(found: list[tuple[str, dict[str, int]]], by: str, *, as_csv: bool, as_json: bool) -> None:
    from licet.cli.terminal import put_json, put_table, say

    from licet_audit.cli import csvtext

    if as_json:
        put_json([{by: group, "count": sum(counts.values()), "effects": counts} for group, counts in found])
        return
    effects = sorted({effect for _, counts in found for effect in counts})
    header = (by, "count", *effects)
    rows = [
        (group, sum(counts.values()), *(counts.get(one, 0) for one in effects)) for group, counts in found
    ]
    if as_csv:
        for row in (header, *rows):
            click.echo(csvtext.line(row), nl=False)
    elif not found:
        say(f"no run that answers has any {by}")
    else:
        put_table(header, [tuple(map(str, row)) for row in rows])
