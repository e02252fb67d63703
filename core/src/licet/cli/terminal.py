"""Writing for people: cards, tables, errors, and JSON for programs.

Rules this module keeps:

- everything that did not come from licet's own source text is escaped before it is shown;
- cards and errors go to stderr, what was asked for goes to stdout;
- colours appear on a terminal only, and not under `NO_COLOR`.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import click

from licet.errors import LicetError
from licet.output import escape

Tone = Literal["good", "bad", "warn"]
_SIGNS: dict[Tone, tuple[str, str]] = {"good": ("✓", "green"), "bad": ("✗", "red"), "warn": ("!", "yellow")}
_LABEL_WIDTH = 12


@dataclass(frozen=True)
class Card:
    """A heading, a note at its right, and labelled lines; an empty label continues the one above."""

    tone: Tone
    heading: str
    note: str = ""
    rows: Sequence[tuple[str, str]] = field(default_factory=tuple)


def show_card(card: Card) -> None:
    """Write a card to stderr."""
    sign, colour = _SIGNS[card.tone]
    head = click.style(f"{sign} {_clean(card.heading)}", fg=colour, bold=True)
    note = click.style(_clean(card.note), dim=True) if card.note else ""
    gap = " " * max(2, 33 - len(card.heading) - 2) if note else ""
    say(head + gap + note)
    width = max((len(label) + 2 for label, _ in card.rows), default=0)
    for label, text in card.rows:
        name = click.style(f"{_clean(label):<{max(width, _LABEL_WIDTH)}}", dim=True)
        say(f"  {name}{_clean(text)}".rstrip())


def say(text: str) -> None:
    """Write one line to stderr, with colours only where they are welcome."""
    click.echo(text, err=True, color=False if "NO_COLOR" in os.environ else None)


def put(text: str, *, err: bool = False) -> None:
    """Write text of the guest, escaped; nothing is added to it."""
    click.echo(escape(text), nl=False, err=err, color=True)


def put_json(content: Any) -> None:
    """Write one JSON document, ASCII only, to stdout."""
    click.echo(json.dumps(content, indent=2, ensure_ascii=True, default=str))


def put_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write a table to stdout: drawn on a terminal, aligned plain text in a pipe."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    on_terminal = sys.stdout.isatty()
    console = Console(width=None if on_terminal else 500, highlight=False, markup=False, emoji=False)
    table = Table(box=None, pad_edge=False, header_style="bold" if on_terminal else "")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(_clean(cell)) for cell in row))
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        click.echo(line.rstrip())


def fail(problem: LicetError, *, as_json: bool) -> int:
    """Show an error and return its exit code."""
    if as_json:
        put_json(
            {
                "error": {
                    "slug": problem.slug,
                    "message": problem.message,
                    "where": str(problem.where) if problem.where else None,
                    "advice": problem.advice,
                }
            }
        )
    rows = [("where", str(problem.where))] if problem.where else []
    rows += [("you can", problem.advice)] if problem.advice else []
    show_card(Card("bad", problem.message, problem.slug, rows))
    return problem.exit_code


def unbreakable_streams() -> None:
    """Let stdout and stderr take any text, whatever encoding the terminal has."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _clean(text: str) -> str:
    return escape(text, newlines=False)
