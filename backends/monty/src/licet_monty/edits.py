"""Edits of the text of code that leave every line where it is.

Rules this module keeps:

- places are those of `ast`: lines from 1, columns in bytes of UTF-8 from 0;
- edits don't overlap; at one place, what closes comes before what is added, and that before what opens.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Place = tuple[int, int]

_ORDER = {"close": 0, "add": 1, "open": 2, "replace": 3}


@dataclass(frozen=True, slots=True)
class Edit:
    """`text` in place of what stands from `start` to `end`; nothing stands there unless it replaces."""

    kind: Literal["close", "add", "open", "replace"]
    start: Place
    end: Place
    text: str


def opens(node: ast.expr, text: str) -> Edit:
    """Put `text` before `node`."""
    place = start_of(node)
    return Edit("open", place, place, text)


def closes(node: ast.expr, text: str) -> Edit:
    """Put `text` behind `node`."""
    place = end_of(node)
    return Edit("close", place, place, text)


def replaces(node: ast.expr, text: str) -> Edit:
    """Put `text` in the place of `node`; it has to hold as many line ends as that."""
    start, end = start_of(node), end_of(node)
    return Edit("replace", start, end, text)


def start_of(node: ast.expr) -> Place:
    """Where a node starts."""
    return node.lineno, node.col_offset


def end_of(node: ast.expr) -> Place:
    """Where a node ends."""
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


class Text:
    """The bytes of code, with where its lines start."""

    def __init__(self, code: str) -> None:
        self._bytes = code.encode("utf-8", "surrogatepass")
        self._starts = [0]
        for line in self._bytes.split(b"\n"):
            self._starts.append(self._starts[-1] + len(line) + 1)

    def offset(self, place: Place) -> int:
        """The byte offset of a place."""
        line, column = place
        return self._starts[line - 1] + column

    def between(self, start: Place, end: Place) -> str:
        """What stands from `start` to `end`."""
        return self._bytes[self.offset(start) : self.offset(end)].decode("utf-8", "surrogatepass")

    def edited(self, edits: Iterable[Edit]) -> str:
        """The code with all edits made."""
        found = sorted(edits, key=lambda edit: (self.offset(edit.start), _ORDER[edit.kind]))
        pieces: list[bytes] = []
        done = 0
        for edit in found:
            start, end = self.offset(edit.start), self.offset(edit.end)
            pieces += (self._bytes[done:start], edit.text.encode("utf-8", "surrogatepass"))
            done = end
        return b"".join((*pieces, self._bytes[done:])).decode("utf-8", "surrogatepass")
