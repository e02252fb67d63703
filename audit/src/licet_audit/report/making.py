"""From a log to a file: select, and write the page while the records of each run are read.

Rules this module keeps:

- runs that began after what was verified are no part of the report;
- a report is written whatever was found, unless it can't be written: a bad log is what it has to tell;
- a file appears complete or not at all, readable by its owner alone, and never inside the log's directory.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from licet.errors import AuditUnavailable

from licet_audit.index import Index, RunRow, Wanted
from licet_audit.outputs import new_file, refuse_inside, refuse_taken
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
        UsageError: something is there already.
        LicetError: it can't be written.
        AuditUnavailable: the log changed while it was read.
    """
    with contextlib.ExitStack() as stack:
        try:
            page = _page(order, stack.enter_context(index), heard)
        except AuditUnavailable as problem:
            page = _unread(order, problem)
        with new_file(path) as file:
            file.writelines(piece.encode() for piece in document.render(page))
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


def require_place(directory: Path, path: Path) -> None:
    """Refuse a place for the report that is taken, or is the log's.

    Raises:
        UsageError: it is.
    """
    refuse_inside(directory, path)
    refuse_taken(path)
