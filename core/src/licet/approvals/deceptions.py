"""What in a text may deceive whoever reads it: characters that can't be seen, or that look like others.

Rules this module keeps:

- what is found is a warning beside the whole text, and changes nothing of it;
- of each kind and character the first line and the number is told, so the list is bounded by the characters
  that there are, and not by how often a text repeats them;
- scripts are told by the names of characters, as Unicode has them. A word that is written wholly in another
  script is not found: that needs a table of what looks alike, and would be a guess;
- time is linear in the length of the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Literal

from licet.output import escape

Kind = Literal[
    "bidi", "control", "zero-width", "homoglyph-mixed-script", "normalized", "long line", "trailing padding"
]

LONG_LINE = 500
"""Characters beyond which the rest of a line is likely out of sight."""

WIDE_GAP = 80
"""Columns of blanks that push what follows out of sight."""

TALL_GAP = 20
"""Blank lines that push what follows out of sight."""

_MARKS = frozenset("\u061c\u200e\u200f")  # directional marks, which the bidirectional class does not tell
_DIRECTIONS = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})
_CONTROLS = frozenset({"Cc", "Cs", "Zl", "Zp"})
_ALIKE = frozenset({"LATIN", "GREEK", "CYRILLIC", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU"})
"""Scripts that have letters in common to the eye, by the first word of the names of their letters."""

_WORD = re.compile(r"\w+")
_GAP = re.compile(r"(?<!\s)\s++(?=\S)")


def suspicions(where: str, texts: Iterable[str], *, code: bool = False) -> list[dict[str, Any]]:
    """What is suspicious in the texts that are shown as `where`; `code` also looks at lines and identifiers.

    Each is `where`, `line` (the first, 1-based; None unless it is code), `kind`, `character` (as `U+202E`;
    None where it is no matter of one) and `count`. The kind `normalized` is a word that Python reads as
    another one, `homoglyph-mixed-script` a word with letters of several scripts that look alike.
    """
    found: dict[tuple[Kind, str | None], list[int]] = {}
    for text in texts:
        for line, kind, character in _found(text, code):
            found.setdefault((kind, character), [line, 0])[1] += 1
    return [
        {
            "where": where,
            "line": line if code else None,
            "kind": kind,
            "character": None if character is None else f"U+{ord(character):04X}",
            "count": count,
        }
        for (kind, character), (line, count) in found.items()
    ]


def _found(text: str, code: bool) -> Iterator[tuple[int, Kind, str | None]]:
    hidden = {character: kind for character in set(text) if (kind := _kind(character)) is not None}
    foreign = not text.isascii()
    if not (hidden or foreign or code):
        return
    blank = 0
    for number, line in enumerate(text.split("\n"), 1):
        if hidden and not hidden.keys().isdisjoint(line):
            yield from ((number, hidden[one], one) for one in line if one in hidden)
        if foreign and not line.isascii():
            yield from ((number, kind, one) for kind, one in _words(line, code))
        if not code:
            continue
        if not line.strip():
            blank += 1
            continue
        if blank >= TALL_GAP or (_width(line) > WIDE_GAP and _has_wide_gap(line)):
            yield number, "trailing padding", None
        if len(line.rstrip()) > LONG_LINE:
            yield number, "long line", None
        blank = 0


def _has_wide_gap(line: str) -> bool:
    return any(_width(gap[0]) >= WIDE_GAP for gap in _GAP.finditer(line))


def _width(text: str) -> int:
    return len(text.expandtabs(8))


@lru_cache(maxsize=1024)
def _kind(character: str) -> Kind | None:
    if escape(character) == character:
        return None
    if character in _MARKS or unicodedata.bidirectional(character) in _DIRECTIONS:
        return "bidi"
    return "control" if unicodedata.category(character) in _CONTROLS else "zero-width"


def _words(line: str, code: bool) -> Iterator[tuple[Kind, str]]:
    for word in _WORD.findall(line):
        if word.isascii():
            continue
        read = unicodedata.normalize("NFKC", word)
        if code and read != word:
            yield "normalized", next(one for one in word if unicodedata.normalize("NFKC", one) != one)
        scripts = {one: script for one in read if (script := _script(one)) is not None}
        if len({*scripts.values()}) > 1:
            yield "homoglyph-mixed-script", next(one for one, name in scripts.items() if name != "LATIN")


@lru_cache(maxsize=1024)
def _script(character: str) -> str | None:
    """The script of a letter that may look like one of another script; None for all other characters."""
    if not character.isalpha():
        return None
    name = unicodedata.name(character, "").partition(" ")[0]
    return name if name in _ALIKE else None
