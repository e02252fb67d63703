"""`licet policy diff`: what changes from one policy to another, in words."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from licet.cli.nearby import near
from licet.cli.policy.stacks import stack_of

if TYPE_CHECKING:
    from licet.workbench.comparison.changes import Change, Direction

_ORDER: tuple[Direction, ...] = ("looser", "other", "tighter")


@click.command()
@click.argument("old")
@click.argument("new")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON document to stdout.")
def diff(old: str, new: str, as_json: bool) -> int:
    """Say what changes from OLD to NEW: files, or packs as licet:NAME, each with the bounds in force.

    Compared is what both come to, not their text: what may be read, written, reached, started and called,
    limits, controls, rules and approvals. Each change is looser, tighter or other. Relative paths of a policy
    start at its own directory, so compare two versions beside each other.
    Exit codes: 0 the same · 1 different · 2 invalid.
    """
    from licet.cli.terminal import Card, put_json, put_table, show_card
    from licet.workbench.comparison.differences import differences

    before, after = stack_of(old), stack_of(new)
    found = sorted(
        differences(before, after, str(Path.cwd())), key=lambda change: _ORDER.index(change.direction)
    )
    if as_json:
        put_json(
            {
                "old": {"policy": old, "digest": before.digest},
                "new": {"policy": new, "digest": after.digest},
                "changes": [change.as_json() for change in found],
            }
        )
    elif found:
        put_table(("", "change", "where"), map(_row, found))
        counts = Counter(change.direction for change in found)
        told = ", ".join(f"{counts[which]} {which}" for which in _ORDER if counts[which])
        show_card(Card("warn" if counts["looser"] else "good", f"{old} → {new}", told))
    else:
        show_card(Card("good", f"{old} → {new}", "nothing changes"))
    return 1 if found else 0


def _row(change: Change) -> tuple[str, str, str]:
    return change.direction, change.text, near(change.where or "")
