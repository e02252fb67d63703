"""`licet policy impact`: what a policy would have done to runs that are recorded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from licet.cli.nearby import nearby

if TYPE_CHECKING:
    from licet.workbench.history.impact import Impact, Kinds
    from licet.workbench.history.tally import Tally

_SHOWN = 5


@click.command()
@click.argument("new")
@click.option(
    "--log",
    "logs",
    multiple=True,
    metavar="DIR",
    help="A state directory whose runs are decided again; may be given many times. Default: that of NEW.",
)
@click.option("--json", "as_json", is_flag=True, help="Write one JSON document to stdout.")
def impact(new: str, logs: tuple[str, ...], as_json: bool) -> int:
    """Decide recorded runs again under the policy NEW, and say what changes.

    Shows runs whose answer flips, how many approvals a day that means for whom, and runs that no backend of
    this host could run any more. Nothing is executed; code and arguments are in no log, so calls whose answer
    depends on arguments are counted apart.

    \b
    Exit codes: 0 nothing changes · 1 something changes · 2 usage or invalid policy · 7 a log can't be read
    """
    from licet.cli.logs import each_run, readers
    from licet.cli.terminal import put_json
    from licet.runtime import Runtime
    from licet.screen import VERSION
    from licet.workbench.history.impact import Impact

    with Runtime.from_policy(new) as runtime:
        found = Impact(runtime.stack, runtime.offers(), VERSION)
    each_run(readers(logs, new), found.add)
    if as_json:
        put_json(found.as_json())
    else:
        _show(found)
    return 1 if found.changed else 0


def _show(found: Impact) -> None:
    from licet.cli.terminal import Card, put_table, show_card

    rows = [row for title, kinds in _groups(found) for row in _rows(title, kinds)]
    rows += [
        ("calls", "depend on arguments", str(count), f"the rule `{rule}` looks at them", "")
        for rule, count in found.on_arguments.top(_SHOWN)
    ]
    if rows:
        put_table(("what", "change", "runs", "why", "for example"), rows)
    heading = "some answers change" if found.changed else "no answer changes"
    note = f"{found.replayed:,} of {found.runs:,} runs, {found.days:.1f} days"
    show_card(Card("warn" if found.changed else "good", heading, note, tuple(_notes(found))))


def _groups(found: Impact) -> Iterable[tuple[str, Kinds]]:
    return (
        ("runs", found.changes),
        ("calls", found.calls),
        ("accesses", found.accesses),
        ("same policy", found.differences),
    )


def _rows(title: str, kinds: Kinds) -> Iterable[tuple[str, str, str, str, str]]:
    for name, kind in sorted(kinds.items(), key=lambda item: -item[1].count):
        reasons = list(kind.reasons.top(_SHOWN)) or [("", kind.count)]
        examples = [one.run_id for one in kind.examples]
        head = (title, name.removeprefix("call ").removeprefix("access "), str(kind.count))
        for reason, count in reasons:
            yield (*head, f"{count} × {nearby(reason)}", examples.pop(0) if examples else "")
            head = ("", "", "")
        whom = _few(kind.subjects)
        if kind.tenants.total:
            whom += f"; tenants {_few(kind.tenants)}"
        yield ("", "", "", f"for {whom}", "")


def _few(tally: Tally) -> str:
    shown = [f"{name} {count}" for name, count in tally.top(_SHOWN)]
    if (more := len(tally) - len(shown)) > 0:
        shown.append(f"{more} more")
    return ", ".join(shown)


def _notes(found: Impact) -> Iterable[tuple[str, str]]:
    newly = found.load.newly
    if newly.total:
        yield (
            "approvals",
            f"{newly.total / found.days:.1f} a day more, for {found.newly_asking:,} runs that did not ask",
        )
        for group, count in newly.top(_SHOWN):
            whole = found.load.in_all[group] / found.days
            yield "", f"{group}: {count / found.days:.1f} a day more, {whole:.1f} in all"
    if found.differences:
        yield "beware", "this very policy answers otherwise than it did: another host, version or files"
    for reason, count in found.not_replayed.top(_SHOWN):
        yield "left out", f"{count:,}: {reason}"
    if found.screens.total:
        yield "screen", f"{found.screens.total:,} runs were screened by another version, whose word is taken"
