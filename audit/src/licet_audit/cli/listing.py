"""`licet audit list`: the runs of a log.

Rules this module keeps:

- a record's body may hold anything: what is missing or of another type is shown as `?`, and None in JSON;
- the backend of a run is the one that ran it, not one that was chosen for a run that was then refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import click
from licet.cli.logs import reader_of
from licet.errors import UsageError
from licet.workbench.history import bodies

from licet_audit.cli import options
from licet_audit.cli.inventory import list_logs

if TYPE_CHECKING:
    from licet.record import AuditReader


@dataclass
class _Run:
    """One run, gathered from its records."""

    run_id: str
    seq: int
    time: str
    subject: str | None = None
    effect: str | None = None
    backend: str | None = None
    termination: str | None = "unfinished"
    executed: bool = False


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
    from licet.cli.terminal import put_json, put_table

    if logs:
        if state is not None or policy is not None:
            raise UsageError("`--logs` is about all logs", advice="give it without `--state` and `--policy`")
        return list_logs(as_json=as_json)
    runs = list(_runs(reader_of(state, policy)))[-limit:]
    if as_json:
        put_json([asdict(run) for run in runs])
        return 0
    rows = [
        (
            f"#{run.seq}",
            run.time[:19].replace("T", " "),
            run.run_id,
            run.subject or "?",
            run.effect or "?",
            run.backend or ("?" if run.executed else "-"),
            run.termination or "?",
        )
        for run in runs
    ]
    put_table(("audit", "time (UTC)", "run", "for", "decision", "backend", "ended"), rows)
    return 0


def _runs(reader: AuditReader) -> Iterable[_Run]:
    runs: dict[str, _Run] = {}
    for record in reader.records():
        entry = record.entry
        if not entry.run_id:
            continue
        run = runs.setdefault(entry.run_id, _Run(entry.run_id, record.seq, entry.time))
        run.seq = record.seq
        _note(run, entry.kind, entry.body)
    return runs.values()


def _note(run: _Run, kind: str, body: Mapping[str, Any]) -> None:
    if kind == "request":
        subject = body.get("subject")
        run.subject = bodies.text(subject, "id") if isinstance(subject, dict) else None
    elif kind == "decision":
        run.effect = bodies.text(body, "effect")
    elif kind == "probe" and run.subject is None:  # attacks by themselves, for no run
        run.effect, run.backend = "probe", bodies.text(body, "backend")
        run.termination = "unfinished" if "results" not in body else f"{body.get('leaked')} refuted"
    elif kind == "execution":
        run.backend, run.executed = bodies.text(body, "backend"), True
    elif kind == "result":
        run.termination = bodies.text(body, "termination")
