"""`licet audit report`: one offline HTML file about a log, for the people who must sign for it."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import click

from licet_audit.cli import options
from licet_audit.cli.readers import reader_of
from licet_audit.cli.verifying import EXIT

if TYPE_CHECKING:
    from licet_audit.index import Wanted

_FILTERS = ("run", "decision", "subject", "tenant", "backend", "rule", "termination", "host", "tool")


@click.command()
@click.option("--output", "-o", required=True, metavar="FILE.html", help="The file to write.")
@options.of_a_log
@click.option("--title", default="What ran, and what was denied", show_default=True, help="The heading.")
@click.option("--for", "reader", metavar="WHO", help="Whom the report is for; it says so.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=500, show_default=True, help="How many runs get a card."
)
@click.option("--content", "with_content", is_flag=True, help="Show kept content, too.")
@options.as_json
def report(
    output: str,
    state: str | None,
    policy: str | None,
    title: str,
    reader: str | None,
    limit: int,
    with_content: bool,
    as_json: bool,
) -> int:
    """Write one offline HTML file: what is proved, which runs there are, and what each did.

    Exit codes are those of `licet audit verify`; the file is written whatever they say:
    0 proven · 1 tampered · 2 usage · 3 incomplete · 4 unverifiable
    """
    return 0
