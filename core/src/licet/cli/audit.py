"""`licet audit`: read the trail, run by run or record by record, and verify it.

Rules this module keeps:

- nothing is written to the log, and no state directory is made;
- a record's body may hold anything: what is missing or of another type is shown as `?`, and None in JSON;
- the backend of a run is the one that ran it, not one that was chosen for a run that was then refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from licet.cli.logs import reader_of
from licet.errors import AuditUnavailable, UsageError
from licet.workbench.history import bodies

if TYPE_CHECKING:
    from licet.record import AuditReader, Record, Verification

_EXIT = {"proven": 0, "tampered": 1, "incomplete": 3, "unverifiable": 4}
_MARKS = {True: "ok", False: "FAILED", None: "unknown"}

_json = click.option("--json", "as_json", is_flag=True, help="Write one JSON document to stdout.")

_PLACE = (
    click.option("--state", metavar="DIR", help="The state directory that holds the log."),
    click.option(
        "--policy", metavar="FILE", help="Take the log of this policy; default: of the current directory."
    ),
)

F = TypeVar("F", bound=Callable[..., Any])


def _with_place(command: F) -> F:
    for option in reversed(_PLACE):
        command = option(command)
    return command


@click.group()
def audit() -> None:
    """Read and verify the trail. Nothing here writes to it."""


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


@audit.command("list")
@_with_place
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=50,
    show_default=True,
    help="How many runs, the newest ones.",
)
@_json
def list_runs(state: str | None, policy: str | None, limit: int, as_json: bool) -> int:
    """List the runs of the log, newest last."""
    from licet.cli.terminal import put_json, put_table

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


@audit.command("show")
@click.argument("run")
@_with_place
@_json
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


@audit.command()
@_with_place
@_json
def verify(state: str | None, policy: str | None, as_json: bool) -> int:
    """Check the log, one claim at a time.

    Exit codes: 0 proven · 1 tampered · 2 usage · 3 incomplete · 4 unverifiable
    """
    from licet.cli.terminal import Card, Tone, fail, put_json, show_card

    try:
        found: Verification = reader_of(state, policy).verify()
    except AuditUnavailable as problem:
        fail(problem, as_json=as_json)
        return _EXIT["unverifiable"]
    if as_json:
        put_json(asdict(found))
        return _EXIT[found.status]
    rows = [(claim.name, f"{_MARKS[claim.ok]}: {claim.detail}") for claim in found.claims]
    if found.first_bad_seq is not None:
        rows.append(("first bad", f"record #{found.first_bad_seq}, byte {found.first_bad_byte}"))
    rows += [("not proven", text) for text in found.not_proven]
    tone: Tone = "good" if found.status == "proven" else "bad"
    show_card(Card(tone, found.status, f"{found.records} records", rows))
    return _EXIT[found.status]


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
