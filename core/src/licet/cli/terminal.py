"""Writing for people: cards, tables, errors, and JSON for programs.

Rules this module keeps:

- everything that did not come from licet's own source text is escaped before it is shown;
- cards and errors go to stderr, what was asked for goes to stdout, also where it is a card;
- an error is bounded, whatever of the input it repeats;
- places in files below the current directory are named from there;
- colours appear on a terminal only, and not under `NO_COLOR`.
"""

from __future__ import annotations

import json
import os
import sys
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Literal, TextIO

import click

from licet.cli.nearby import near, nearby
from licet.errors import LicetError
from licet.output import bounded, escape

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

Tone = Literal["good", "bad", "warn"]
_SIGNS: dict[Tone, tuple[str, str]] = {"good": ("✓", "green"), "bad": ("✗", "red"), "warn": ("!", "yellow")}
_LABEL_WIDTH = 12
_LEAST_COLUMNS, _USUAL_COLUMNS = 40, 80
_LEAST_PROSE = 16  # characters of a sentence that still say something
_MOST = 1000  # characters of an error, and of its advice


@dataclass(frozen=True)
class Card:
    """A heading, a note at its right, and labelled lines; an empty label continues the one above."""

    tone: Tone
    heading: str
    note: str = ""
    rows: Sequence[tuple[str, str]] = field(default_factory=tuple)


def show_card(card: Card, *, err: bool = True) -> None:
    """Write a card to stderr, or to stdout where it is the answer that was asked for."""
    say(signed(card.tone, _clean(nearby(card.heading)), _clean(card.note)), err=err)
    width = max(_LABEL_WIDTH, *(len(label) + 2 for label, _ in card.rows), 0)
    left = columns(sys.stderr if err else sys.stdout) - width - 2
    for label, text in card.rows:
        name = click.style(f"{_clean(label):<{width}}", dim=True)
        first, *others = _folded(_clean(nearby(text)), left)
        say(f"  {name}{first}".rstrip(), err=err)
        for line in others:
            say(f"  {' ' * width}{line}", err=err)


def signed(tone: Tone, heading: str, note: str = "") -> str:
    """The first line of a card, in colour; neither part is escaped here."""
    sign, tint = _SIGNS[tone]
    head = click.style(f"{sign} {heading}", fg=tint, bold=True)
    return f"{head}{' ' * max(2, 33 - len(heading) - 2)}{click.style(note, dim=True)}" if note else head


def say(text: str, *, err: bool = True) -> None:
    """Write one line, to stderr unless it is the answer, with colours only where they are welcome."""
    click.echo(text, err=err, color=colour())


def warn(text: str) -> None:
    """Write a warning to stderr."""
    say(f"! {_clean(bounded(text, _MOST))}")


def put(text: str, *, err: bool = False) -> None:
    """Write text of the guest, escaped; nothing is added to it."""
    click.echo(escape(text), nl=False, err=err, color=True)


def put_json(content: Any) -> None:
    """Write one JSON document, ASCII only, to stdout."""
    click.echo(json.dumps(content, indent=2, ensure_ascii=True, default=str))


def put_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    prose: int = 0,
    whole: int | None = None,
    styles: Sequence[str] = (),
) -> None:
    """Write a table to stdout: drawn on a terminal, aligned plain text in a pipe.

    The last `prose` columns are sentences: a terminal shows as much of each as fits beside the others, and
    leaves them out where that would say nothing. The column `whole`, by its number, is never broken into
    lines, so that an id can be copied. `styles` are those of the rows on a terminal, in order.
    """
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else 500, highlight=False, markup=False, emoji=False)
    table = drawn_table(console, columns, rows, prose=prose, whole=whole, styles=styles)
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        click.echo(line.rstrip())


def drawn_table(
    console: Console,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    prose: int = 0,
    whole: int | None = None,
    styles: Sequence[str] = (),
) -> Table:
    """A table as `put_table` writes it, for `console`, which is stdout."""
    from rich.table import Table
    from rich.text import Text

    on_terminal = sys.stdout.isatty()
    table = Table(box=None, pad_edge=False, header_style="bold" if on_terminal else "")
    columns = [_clean(column) for column in columns]
    cells = [[_clean(cell) for cell in row] for row in rows]
    widest = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    left = console.width - sum(widest[: len(columns) - prose]) - 2 * len(columns)
    if on_terminal and prose and left // prose < _LEAST_PROSE:
        columns, cells, prose = columns[:-prose], [row[:-prose] for row in cells], 0
    for number, column in enumerate(columns):
        if number >= len(columns) - prose and on_terminal:
            table.add_column(Text(column), no_wrap=True, overflow="ellipsis", width=left // prose)
        else:
            table.add_column(Text(column), overflow="fold", no_wrap=number == whole)
    for row, style in zip_longest(cells, styles[: len(cells)]):
        table.add_row(*map(Text, row), style=style if on_terminal else None)
    return table


def put_heading(text: str) -> None:
    """Write one line to stdout above what it is about."""
    click.secho(_clean(text), bold=True, color=colour())


def put_blocks(blocks: Iterable[tuple[str, Iterable[str]]]) -> None:
    """Write headings to stdout, each with its lines indented below; folded to the width of a terminal."""
    width = columns(sys.stdout)
    for heading, lines in blocks:
        put_heading(heading)
        for line in lines:
            click.echo(textwrap.fill(_clean(line), width, initial_indent="    ", subsequent_indent="    "))


def fail(problem: LicetError, *, as_json: bool) -> int:
    """Show an error and return its exit code."""
    message = bounded(problem.message, _MOST)
    where = problem.where
    advice = bounded(problem.advice, _MOST) if problem.advice else None
    if as_json:
        whole = bounded(str(where), _MOST) if where else None
        put_json({"error": {"slug": problem.slug, "message": message, "where": whole, "advice": advice}})
    shown = bounded(near(where), _MOST) if where else None
    rows = [(label, text) for label, text in (("where", shown), ("you can", advice)) if text]
    show_card(Card("bad", message, problem.slug, rows))
    return problem.exit_code


def columns(stream: TextIO) -> int:
    """How wide a terminal is; whatever is no terminal takes any line."""
    if not stream.isatty():
        return sys.maxsize
    try:
        return max(os.get_terminal_size(stream.fileno()).columns or _USUAL_COLUMNS, _LEAST_COLUMNS)
    except OSError:
        return _USUAL_COLUMNS


def _folded(text: str, width: int) -> list[str]:
    """Text in lines of a width; words, such as commands' options and ids, stay whole."""
    width = max(width, _LEAST_PROSE)
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) or [""]


def _clean(text: str) -> str:
    return escape(text, newlines=False)


def colour() -> bool | None:
    """What click is to do about colours: None lets click look at the stream."""
    return False if "NO_COLOR" in os.environ else None
