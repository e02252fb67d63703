"""From a log to a file: verify, select, and write the page while the records of each run are read.

Rules this module keeps:

- the verification comes first, and runs that began after it are no part of the report;
- a report is written whatever was found, unless it can't be written: a bad log is what it has to tell;
- a file appears complete or not at all, readable by its owner alone, and never inside the log's directory.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from licet.errors import AuditUnavailable, UsageError, reason_of
from licet.files import open_plain, sync_directory
from licet.state import StateDirectory

from licet_audit import contents
from licet_audit.claims import Verification
from licet_audit.index import Index, RunRow, Wanted
from licet_audit.report import document, population, run, standing, waiting


@dataclass(frozen=True, slots=True)
class Written:
    """What a report came to."""

    runs: int
    selected: int
    shown: int
    unread: str | None


@dataclass(frozen=True, slots=True)
class Order:
    """What somebody wants to have: the runs, at most `limit` cards, with or without kept content."""

    made: document.Made
    wanted: Wanted
    limit: int
    with_content: bool = False


def make(
    state: StateDirectory, found: Verification, order: Order, path: Path, heard: Callable[[str], None]
) -> Written:
    """Write the report of a log that was verified as `found`; `heard` is told of each step.

    Raises:
        UsageError: the file can't be there.
    """
    refuse_inside(state, path)
    with contextlib.ExitStack() as stack:
        try:
            index = stack.enter_context(Index.open(state, lambda done, total: heard("indexing the log")))
            page = _page(state, found, order, index, heard)
        except AuditUnavailable as problem:
            page = _unread(state, found, order, problem)
        write(path, document.render(page))
    counted = page.population
    return Written(counted.total, counted.selected, counted.shown, page.unread)


def _page(
    state: StateDirectory, found: Verification, order: Order, index: Index, heard: Callable[[str], None]
) -> document.Page:
    rows = index.runs(replace(order.wanted, limit=None, newest_first=True))
    counted = population.gather(
        rows,
        total=index.count(),
        limit=order.limit,
        size=found.records if found.status == "proven" else None,
        heard=lambda: heard("counting runs"),
    )
    read = (lambda commitment: contents.read(state, commitment)) if order.with_content else None

    def cards(rows: Iterable[RunRow]) -> Iterator[run.RunCard]:
        for row in rows:
            heard("writing runs")
            yield run.card(index.records(row.run_id), read)

    return document.Page(
        made=order.made,
        standing=standing.standing(state, found),
        population=counted,
        attention=cards(counted.attention),
        others=cards(counted.others),
        waits=waiting.waits((index.records(run_id) for run_id in counted.asking), counted.effects["e-ask"]),
        own=index.records(""),
    )


def _unread(
    state: StateDirectory, found: Verification, order: Order, problem: AuditUnavailable
) -> document.Page:
    return document.Page(
        made=order.made,
        standing=standing.standing(state, found),
        population=population.Population(0),
        attention=(),
        others=(),
        waits=waiting.waits((), 0),
        own=(),
        unread=problem.message,
    )


def refuse_inside(state: StateDirectory, path: Path) -> None:
    """Refuse a place for the report that is the log's.

    Raises:
        UsageError: it is.
    """
    if path.resolve().is_relative_to(state.path.resolve()):
        raise UsageError(
            f"`{path}` lies in the log's own directory", advice="write the report to another directory"
        )


def write(path: Path, pieces: Iterable[str]) -> None:
    """Write a text piece by piece into a new file in the place of `path`.

    Raises:
        UsageError: it can't be written there.
    """
    draft = path.with_name(f".{path.name[:100]}-{secrets.token_hex(8)}")
    try:
        if path.is_dir():
            raise UsageError(f"`{path}` is a directory", advice="name a file, such as `report.html`")
        descriptor = open_plain(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            with os.fdopen(
                descriptor, "w", encoding="utf-8", errors="backslashreplace", newline="\n"
            ) as file:
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
