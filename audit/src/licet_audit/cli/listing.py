"""`licet audit list`: the runs of a log.

Rules this module keeps:

- a record's body may hold anything: what is missing or of another type is shown as `?`, and None in JSON;
- the backend of a run is the one that ran it, not one that was chosen for a run that was then refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from licet.cli.logs import reader_of
from licet.errors import UsageError

from licet_audit.cli import options

if TYPE_CHECKING:
    from licet.record import AuditReader

    from licet_audit.index import RunRow


@click.command("list")
@options.of_a_log
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=50,
    show_default=True,
    help="How many runs, the newest ones.",
)
@click.option("--logs", is_flag=True, help="List the logs that this user has on this host instead.")
@options.as_json
def list_runs(state: str | None, policy: str | None, limit: int, logs: bool, as_json: bool) -> int:
    """List the runs of the log, newest last; with `--logs`, all logs and what is found of each."""
    from licet.cli.terminal import put_json, put_table, say

    from licet_audit.cli import inventory, tables

    if logs:
        if state is not None or policy is not None:
            raise UsageError("`--logs` is about all logs", advice="give it without `--state` and `--policy`")
        return inventory.list_logs(as_json=as_json)
    runs = _newest(reader_of(state, policy), limit)
    if as_json:
        put_json([tables.as_json(run) for run in runs])
    elif not runs:
        say("no run is in this log")
    else:
        put_table(tables.COLUMNS, map(tables.cells, runs), whole=tables.RUN)
    return 0


def _newest(reader: AuditReader, limit: int) -> list[RunRow]:
    from licet_audit.index import Wanted
    from licet_audit.index.rows import gathered
    from licet_audit.reader import LogReader

    if not isinstance(reader, LogReader):  # another plugin's log, which has no index
        return gathered(reader.records())[-limit:]
    from licet_audit.cli.indexes import index_of

    with index_of(reader) as index:
        return list(index.runs(Wanted(newest_first=True, limit=limit)))[::-1]
