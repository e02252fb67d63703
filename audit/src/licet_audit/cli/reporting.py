"""`licet audit report`: one offline HTML file about a log, for the people who must sign for it.

Rules this module keeps: what can be wrong with the command is said before anything is verified or written.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import click
from licet.errors import AuditUnavailable

from licet_audit.cli import filters, options, verifying
from licet_audit.cli.readers import reader_of

if TYPE_CHECKING:
    from licet_audit.claims import Verification
    from licet_audit.index import Index, Wanted
    from licet_audit.reader import LogReader
    from licet_audit.report.document import Made
    from licet_audit.report.making import Written


@click.command()
@click.option("-o", "--output", required=True, metavar="FILE", help="The HTML file to write; a new one.")
@options.of_a_log
@filters.filters
@verifying.believing
@click.option("--limit", type=click.IntRange(min=1), default=500, show_default=True, help="How many cards.")
@click.option("--content", "with_content", is_flag=True, help="Show content that is kept beside the log.")
@click.option("--title", default="What ran, and what was denied", show_default=True, help="The heading.")
@click.option("--for", "reader_name", metavar="WHO", help="Whom the report is made for.")
@options.as_json
def report(
    output: str,
    state: str | None,
    policy: str | None,
    key: str | None,
    require_anchor: bool,
    witnesses: tuple[str, ...],
    tsa_roots: tuple[str, ...],
    files: tuple[str, ...],
    limit: int,
    with_content: bool,
    title: str,
    reader_name: str | None,
    as_json: bool,
    **given: str | None,
) -> int:
    """Write one offline HTML file: what is proved, which runs there are, what each did.

    The file is written whatever the verification finds, and says so first. Exit codes are those of
    `licet audit verify`: 0 proven · 1 tampered · 2 usage · 3 incomplete · 4 unverifiable
    """
    from licet.cli.progress import Steps
    from licet.cli.terminal import fail

    from licet_audit.report import making, standing

    asked = filters.wanted(given, datetime.now(UTC))
    believed = verifying.beliefs(key, require_anchor, witnesses, tsa_roots, files)
    path = Path(output)
    try:
        reader = reader_of(state, policy)
        making.require_place(reader.state.path, path)
        found = verifying.checked(reader.state, believed)
        order = making.Order(
            made=_made(reader, asked, title, reader_name),
            standing=standing.standing(reader.state, found, believed.key),
            wanted=asked,
            limit=limit,
            read=reader.content if with_content else None,
        )
        with Steps() as steps:
            written = making.make(order, _index_of(reader, asked), path, steps.step)
    except AuditUnavailable as problem:
        fail(problem, as_json=as_json)
        return verifying.EXIT["unverifiable"]
    _tell(output, found, written, as_json=as_json)
    return verifying.EXIT[found.status]


@contextmanager
def _index_of(reader: LogReader, asked: Wanted) -> Iterator[Index]:
    from licet.cli.terminal import warn

    from licet_audit.cli.indexes import index_of

    with index_of(reader) as index:
        filters.check_words(asked, index)
        for sentence in filters.unknown_names(asked, index):
            warn(sentence)
        yield index


def _made(reader: LogReader, asked: Wanted, title: str, reader_name: str | None) -> Made:
    from licet_audit.identity import account
    from licet_audit.report.document import Made

    return Made(
        title=title,
        at=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S}Z",
        version=version("licet-audit"),
        by=f"{account()} on {socket.gethostname()}",
        reader=reader_name,
        log_id=reader.state.log_id,
        path=str(reader.state.path),
        selection=tuple(
            (one.name, value)
            for one in fields(asked)
            if one.name in filters.NAMES and (value := getattr(asked, one.name)) is not None
        ),
    )


def _tell(output: str, found: Verification, written: Written, *, as_json: bool) -> None:
    from licet.cli.terminal import Card, Tone, put_json, show_card

    if as_json:
        told = {"path": output, "status": found.status, "records": found.records, **asdict(written)}
        put_json(told)
        return
    tone: Tone = "good" if found.status == "proven" and written.unread is None else "bad"
    rows = [
        ("written", output),
        ("shows", f"{written.shown} of {written.selected} selected runs, {written.runs} in all"),
    ]
    if written.unread is not None:
        rows.append(("no runs", written.unread))
    show_card(Card(tone, found.status, f"{found.records} records", rows))
