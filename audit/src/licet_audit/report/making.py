"""From a log to a file: select, and write the page while the records of each run are read.

Rules this module keeps:

- runs that began after what was verified are no part of the report;
- a report is written whatever was found, unless it can't be written: a bad log is what it has to tell;
- a file appears complete or not at all, readable by its owner alone, and never inside the log's directory.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from licet.errors import AuditUnavailable, UsageError, reason_of
from licet.files import open_plain, sync_directory

from licet_audit.index import Index, RunRow, Wanted
from licet_audit.report import document, population, run, waiting
from licet_audit.report.run import ReadContent
from licet_audit.report.standing import Standing

Hear = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Order:
    """What somebody wants to have: `wanted` runs, at most `limit` cards, kept content if `read` is given."""

    made: document.Made
    standing: Standing
    wanted: Wanted
    limit: int
    read: ReadContent | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """What a report came to; `unread` says why it shows no run, where the log could not be read."""

    runs: int
    selected: int
    shown: int
    unread: str | None


def make(order: Order, index: AbstractContextManager[Index], path: Path, heard: Hear) -> Written:
    """Write the report into the file `path`; `heard` is told of each step.

    Raises:
        UsageError: the file can't be there.
        AuditUnavailable: the log changed while it was read.
    """
    with contextlib.ExitStack() as stack:
        try:
            page = _page(order, stack.enter_context(index), heard)
        except AuditUnavailable as problem:
            page = _unread(order, problem)
        write(path, document.render(page))
    counted = page.population
    return Written(counted.total, counted.selected, counted.shown, page.unread)


def _page(order: Order, index: Index, heard: Hear) -> document.Page:
    counted = population.gather(
        index.runs(replace(order.wanted, limit=None, newest_first=True)),
        total=index.count(),
        limit=order.limit,
        end=order.standing.end,
        heard=lambda: heard("runs counted"),
    )

    def cards(rows: Iterable[RunRow]) -> Iterator[run.RunCard]:
        for row in rows:
            heard("runs written")
            yield run.card(index.records(row.run_id), order.read)

    return document.Page(
        made=order.made,
        standing=order.standing,
        population=counted,
        attention=cards(counted.attention),
        others=cards(counted.others),
        waits=waiting.waits((index.records(run_id) for run_id in counted.asking), counted.effects["e-ask"]),
        own=index.records(""),
    )


def _unread(order: Order, problem: AuditUnavailable) -> document.Page:
    return document.Page(
        made=order.made,
        standing=order.standing,
        population=population.Population(0),
        attention=(),
        others=(),
        waits=waiting.waits((), 0),
        own=(),
        unread=problem.message,
    )


def refuse_inside(directory: Path, path: Path) -> None:
    """Refuse a place for the report that is the log's.

    Raises:
        UsageError: it is.
    """
    if path.resolve().is_relative_to(directory.resolve()):
        raise UsageError(
            f"`{path}` lies in the log's own directory", advice="write the report to another directory"
        )


def write(path: Path, pieces: Iterable[str]) -> None:
    """Write a text piece by piece into a new file in the place of `path`.

    Raises:
        UsageError: it can't be written there.
    """
    draft = path.with_name(f".{secrets.token_hex(8)}.html")
    try:
        if path.is_dir():
            raise UsageError(f"`{path}` is a directory", advice="name a file, such as `report.html`")
        descriptor = open_plain(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
                file.writelines(pieces)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        sync_directory(path.parent)
    except OSError as problem:
        raise UsageError(
            f"`{path}` can't be written: {reason_of(problem)}", advice="write the report somewhere else"
        ) from None
