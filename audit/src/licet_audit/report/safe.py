"""Text of records on its way into a page: bounded, with nothing hidden in it.

Rules this module keeps:

- controls, bidi marks, invisible characters, lone surrogates and towers of marks are spelled out before a
  template sees them;
- no text is longer than its bound, and what was left out is counted;
- a name that may look like another one is accompanied by its code points.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from licet.output import escape
from markupsafe import Markup

MOST_TEXT = 2000
"""Characters of one text in a page."""
MOST_CONTENT = 64 * 1024
"""Characters of one kept content in a page."""

_MOST_POINTS = 3
_MOST_STACKED = 4  # marks on one character
_ACCENTED = re.compile("[\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u0130\u0132-\u0137\u0139-\u017e]")

T = TypeVar("T")


class Content(str):
    """A text that keeps its lines, bounded by `MOST_CONTENT` instead of `MOST_TEXT`."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Part(Generic[T]):
    """The first items of many, and how many more there are."""

    items: tuple[T, ...]
    more: int


def part(items: Iterable[T], most: int) -> Part[T]:
    """The first `most` of some items."""
    whole = tuple(items)
    return Part(whole[:most], max(len(whole) - most, 0))


def worded(value: object) -> str:
    """A small value of a record in words; `""` for null."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {worded(inner)}" for name, inner in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(worded, value))
    return "" if value is None else str(value)


def shown(value: object) -> object:
    """What a template writes for a value, before it escapes it; markup of the templates passes as it is."""
    if isinstance(value, Markup) or type(value) is int:
        return value
    if value is None:
        return "–"
    text = str(value)
    most = MOST_CONTENT if isinstance(value, Content) else MOST_TEXT
    more = f" … {len(text) - most} more characters" if len(text) > most else ""
    return _unstacked(escape(text[:most], newlines=isinstance(value, Content))) + more


def oddities(name: str) -> str:
    """The code points of a name that may pass for others, for a reader who can't tell them apart; else `""`.

    Latin letters with accents (U+00C0 to U+017F) pass for none, but for three of them.
    """
    if name.isascii():
        return ""
    found = [one for one in dict.fromkeys(name[:MOST_TEXT]) if _may_pass_for_another(one)]
    told = [f"U+{ord(one):04X} {unicodedata.name(one, 'unnamed').lower()}" for one in found[:_MOST_POINTS]]
    return ", ".join(told) + (f" and {len(found) - _MOST_POINTS} more" if len(found) > _MOST_POINTS else "")


def _unstacked(text: str) -> str:
    """Spell out marks that are stacked on one character higher than languages do, over what stands around."""
    if text.isascii():
        return text
    found, stacked = [], 0
    for character in text:
        stacked = stacked + 1 if unicodedata.category(character) in ("Mn", "Me") else 0
        found.append(f"\\u{ord(character):04x}" if stacked > _MOST_STACKED else character)
    return "".join(found)


def _may_pass_for_another(character: str) -> bool:
    if character.isascii() or _ACCENTED.match(character):
        return False
    return escape(character) == character  # what is spelled out can be told apart
