"""`licet policy suggest`: lines that would have let recorded runs through."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from licet.errors import UsageError

if TYPE_CHECKING:
    from licet.policy import PolicyStack
    from licet.record import AuditReader
    from licet.workbench.history.recorded import RecordedRun
    from licet.workbench.history.suggest import Line, Suggestion

_SHOWN = 10


@click.command()
@click.argument("run", required=False)
@click.option("--policy", default="licet.yaml", show_default=True, help="The policy file to add to.")
@click.option(
    "--log",
    "logs",
    multiple=True,
    metavar="DIR",
    help="A state directory whose runs are looked at; may be given many times. Default: that of the policy.",
)
@click.option(
    "--directory-after",
    type=click.IntRange(min=2),
    default=5,
    show_default=True,
    help="From how many files of one directory on to suggest the directory.",
)
@click.option("--json", "as_json", is_flag=True, help="Write one JSON document to stdout.")
def suggest(run: str | None, policy: str, logs: tuple[str, ...], directory_after: int, as_json: bool) -> int:
    """Suggest the narrowest lines that would have let recorded runs through.

    Writes a unified diff of the policy file to stdout, for a person to review and apply; nothing is changed.
    RUN is a run's id, or the beginning of one; without it, all runs of the logs count. What a bound, a deny,
    a rule or the screen forbids is told with whoever forbids it, and never suggested.

    \b
    Exit codes: 0 nothing stands against it · 1 something no line can allow · 2 usage or invalid policy ·
    7 a log can't be read
    """
    from licet.cli.logs import each_run, readers
    from licet.cli.terminal import put_json
    from licet.runtime import Runtime
    from licet.workbench.history.suggest import Suggester

    with Runtime.from_policy(policy) as runtime:
        found = Suggester(
            runtime.stack, runtime.offers(), text_of(runtime.stack), directory_after=directory_after
        )
    named = readers(logs, policy)
    if run is None:
        each_run(named, found.add)
    else:
        found.add(_one(named, run))
    suggestion = found.finish()
    if as_json:
        put_json(as_document(suggestion, policy))
    else:
        show(suggestion, policy)
    return 1 if suggestion.forbidden.total or suggestion.hidden.total or suggestion.problem else 0


def text_of(stack: PolicyStack) -> str | None:
    """The text of the root's file; None for a pack, which is nobody's to change."""
    from pathlib import Path

    from licet.policy.references import PACK_PREFIX

    if stack.root.file.startswith(PACK_PREFIX):
        return None
    return Path(stack.root.file).read_bytes().decode("utf-8")


def show(found: Suggestion, name: str, *, err: bool = False) -> None:
    """Write the diff to stdout, or with `err` to stderr, and below it to stderr what is to say about it."""
    from licet.cli.terminal import Card, put, show_card

    for line in found.diff(name).splitlines(keepends=True):
        text = line.rstrip("\r\n")
        put(text, err=err)
        click.echo(line[len(text) :], nl=False, err=err)
    count = len(found.lines)
    if count:
        lines, runs = f"{count} line{'s' if count > 1 else ''}", f"{found.passing:,} more runs"
        permits = found.unrunnable.total  # permission is not enough for these: no sandbox here could run them
        heading = f"{lines} would permit {runs}" if permits else f"{lines} would let {runs} through"
    else:
        heading = "no line to suggest"
    trouble = found.problem or found.forbidden.total or found.hidden.total or found.unrunnable.total
    show_card(Card("warn" if trouble else "good", heading, "", tuple(_rows(found))))


def as_document(found: Suggestion, name: str) -> dict[str, Any]:
    """The form of `licet policy suggest --json`."""
    return {
        "policy": found.file,
        "lines": [
            {
                "entry": line.entry,
                "action": line.intent.action,
                "target": line.intent.target,
                "opens": line.opens,
                "files": line.files,
                "count": line.count,
                "reasons": [asdict(one) for one in line.reasons],
            }
            for line in found.lines
        ],
        "diff": found.diff(name),
        "problem": found.problem,
        "passing": found.passing,
        "unrunnable": found.unrunnable.as_json(),
        "forbidden": found.forbidden.as_json(),
        "hidden": found.hidden.as_json(),
        "left_out": found.left_out.as_json(),
    }


def _one(named: Sequence[tuple[str, AuditReader]], run: str) -> RecordedRun:
    """The one run that `run` names, in whichever log it is."""
    from licet.workbench.history import recorded

    found = []
    problem: UsageError | None = None
    for name, reader in named:
        try:
            found += list(recorded.runs(name, reader.records_of(run.upper())))
        except UsageError as refused:
            problem = refused
    if not found and problem is not None:
        raise problem
    if len(found) != 1:
        raise UsageError(f"`{run}` may mean several runs", advice="`licet audit list` shows them")
    return found[0]


def _rows(found: Suggestion) -> Iterable[tuple[str, str]]:
    for line in found.lines[:_SHOWN]:
        yield "allow", f"{line.entry}   {_wanted(line)}"
        yield "", f"opens {line.opens}"
    if len(found.lines) > _SHOWN:
        yield "", f"and {len(found.lines) - _SHOWN} more, see --json"
    if found.problem:
        yield "by hand", found.problem
    for what, count in found.forbidden.top(_SHOWN):
        yield "forbidden", f"{what}, {count} ×" if count > 1 else what
    for what, count in found.hidden.top(_SHOWN):
        yield "unknown", f"the target of {what}, {count} ×: `licet run --learn` finds out"
    for what, count in found.unrunnable.top(_SHOWN):
        yield "no sandbox", f"{what}, for {count} of these runs"
    for what, count in found.left_out.top(_SHOWN):
        yield "left out", f"{count:,}: {what}"


def _wanted(line: Line) -> str:
    first = line.reasons[0]
    place = f", line {first.line}" if first.line else ""
    more = f" and {line.count - 1:,} more" if line.count > 1 else ""
    return f"{first.how}{place}, run {first.run_id}{more}"
