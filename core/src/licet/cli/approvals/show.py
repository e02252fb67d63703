"""`licet approvals show`: everything that somebody has to know who answers."""

from __future__ import annotations

import os
import sys

import click

from licet.cli.approvals.office import with_place


@click.command()
@click.argument("approval")
@with_place
@click.option("--full", is_flag=True, help="Also limits, environment and how each control is held.")
def show(approval: str, policy: str | None, state: str | None, as_json: bool, full: bool) -> int:
    """Show what APPROVAL, an id or its beginning, asks for, and the digest that an answer has to name.

    All of the code and its values is shown, in a pager where it is longer than the terminal.

    \b
    Exit codes: 0 shown · 2 usage, or no such approval · 8 the approvals can't be read
    """
    from licet.cli import approving
    from licet.cli.approvals.listing import as_document
    from licet.cli.approvals.office import opened
    from licet.cli.terminal import put_json

    with opened(policy, state) as office:
        stored = office.store.get(approval)
    if as_json:
        put_json(as_document(stored) | {"document": stored.request.document})
        return 0
    paper = approving.paper(stored.request, stored, whole=True, details=full, stream=sys.stdout)
    _put(paper.sheet.text(), len(paper.sheet.lines))
    return 0


def _put(text: str, lines: int) -> None:
    from licet.cli.terminal import colour

    on_terminal = sys.stdout.isatty() and sys.stdin.isatty()
    if on_terminal and lines >= os.get_terminal_size(sys.stdout.fileno()).lines:
        click.echo_via_pager(text, color=colour())
    else:
        click.echo(text, nl=False, color=colour())
