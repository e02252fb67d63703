"""Text laid out for somebody who decides by it: exact, whole, and in lines that nothing in it can imitate.

Rules this module keeps:

- text of others is revealed, never cut, and broken where a line is full; what goes on begins below a sign in
  the margin, so that no text can look like a row, a number or a mark of licet's own;
- widths are counted generously, so a line breaks too early rather than by the terminal's hand;
- colours are added last, to whole lines.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import TextIO

import click

from licet.cli.terminal import Tone, columns, signed
from licet.output import reveal

Row = tuple[str, str]

_LABEL = 14
_GOES_ON = "↪ "
_LEAST = 16  # columns of text, however wide its margin
_TAB = 8
_OF_CHANGES = {"+": "green", "-": "red", "@": "cyan"}


class Sheet:
    """Lines for one stream; `width` is that of its terminal, without bound where it is none."""

    def __init__(self, stream: TextIO) -> None:
        self._width = columns(stream)
        self.lines: list[str] = []

    def heading(self, tone: Tone, heading: str, note: str = "") -> None:
        """The first line, such as that of a card."""
        self.lines.append(signed(tone, reveal(heading), reveal(note)))

    def rows(self, rows: Iterable[Row]) -> None:
        """Labelled lines; an empty label continues the one above."""
        for label, text in rows:
            name = f"  {reveal(label):<{_LABEL}}"
            first, *others = _broken(reveal(text), self._width - len(name))
            self.lines.append(_dim(name) + first)
            self.lines += (" " * len(name) + _dim(_GOES_ON) + line for line in others)

    def numbered(self, lines: Sequence[str]) -> None:
        """Lines of a text, each with its number."""
        width = len(str(len(lines)))
        for number, line in enumerate(lines, 1):
            self._margined(f"  {number:>{width}} │ ", line)

    def changes(self, lines: Iterable[str]) -> None:
        """Lines of a unified diff."""
        for line in lines:
            self._margined("  │ ", line, _OF_CHANGES.get(line[:1]))

    def text(self) -> str:
        """All of it."""
        return "\n".join(self.lines) + "\n"

    def _margined(self, margin: str, line: str, colour: str | None = None) -> None:
        pieces = _broken(reveal(line.expandtabs(_TAB)), self._width - len(margin))
        below = f"{_GOES_ON:>{len(margin)}}"
        for number, piece in enumerate(pieces):
            styled = click.style(piece, fg=colour) if colour else piece
            self.lines.append(_dim(below if number else margin) + styled)


def split(text: str) -> list[str]:
    """The lines of a text as Python counts them in source; an end that no system writes stays visible."""
    lines = text.replace("\r\n", "\n").replace("\r", "\r\n").split("\n")
    return lines[:-1] if len(lines) > 1 and not lines[-1] else lines


def _broken(text: str, width: int) -> list[str]:
    """The text in pieces that take at most `width` columns each; the later ones leave room for the sign."""
    if width >= sys.maxsize >> 1:
        return [text]
    return list(_pieces(text, max(width, _LEAST) - len(_GOES_ON))) or [""]


def _pieces(text: str, width: int) -> Iterator[str]:
    start = taken = 0
    for place, character in enumerate(text):
        if taken + _cells(character) > width:
            space = text.rfind(" ", start + (place - start) // 2, place)  # a word stays whole where it can
            end = space + 1 if space >= 0 else place
            yield text[start:end]
            start, taken = end, sum(map(_cells, text[end:place]))
        taken += _cells(character)
    if start < len(text):
        yield text[start:]


def _cells(character: str) -> int:
    return 1 if character.isascii() or unicodedata.east_asian_width(character) in ("Na", "N", "H") else 2


def _dim(text: str) -> str:
    return click.style(text, dim=True)
