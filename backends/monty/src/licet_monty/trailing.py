"""How the value of a program's last expression is kept, without letting it cross as an object.

Monty would hand the value over as host objects. Building these can't be stopped: on CPython before 3.14 a set
that holds forty levels of shared tuples is hashed for hours, inside one C call that no signal ends. So:

- the last expression is bound to a name, in place, so that no line moves; what then crosses is text;
- text comes from an f-string, which yields `str` whatever the code has done to any name: code can forge what
  its own value says, not what kind of thing reaches the host;
- a number or a short text crosses at once; for all else `value` asks the session a second time;
- built-in types go by their names there: as inputs they would take long to cross, and where code has bound
  such a name anew, the session is asked as well.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from licet.screen import syntax_tree

VALUE = "__licet_value__"

_EPILOGUE = f"""
try:
    __licet_text__ = (
        f"{{{VALUE}!r}}"
        if {VALUE} is None
        or type({VALUE}) in (int, float, bool) and -1e15 < {VALUE} < 1e15
        or type({VALUE}) is str and {VALUE}.count("") < 200
        else ""
    )
except:
    __licet_text__ = ""
f"{{__licet_text__:.250}}"
"""
_SIMPLE_TEXT = re.compile(r"'[^'\\]*'")


@dataclass(frozen=True, slots=True)
class Kept:
    """The value of the last expression, and its repr; both None if there is none, or it is None."""

    value: Any = None
    shown: str | None = None


NO_VALUE = Kept()
_WORDS = {"None": NO_VALUE, "True": Kept(True, "True"), "False": Kept(False, "False")}


_MOST_KEPT = 8 << 10
"""Characters of code that is kept as rewritten: what runs again and again is rewritten once."""


def keep_value(code: str) -> str | None:
    """Return `code` so rewritten that the value of its last expression is kept; None if it ends in none.

    None too for what this Python can't parse: such code runs as it is, and yields no value.
    """
    return (_kept if len(code) <= _MOST_KEPT else _rewritten)(code)


def _rewritten(code: str) -> str | None:
    code = code.replace("\r\n", "\n").replace("\r", "\n")
    last = _last_expression(code)
    if last is None:
        return None
    lines = code.split("\n")
    start_row, start, end_row, end = last
    lines[end_row] = f"{lines[end_row][:end]}){lines[end_row][end:]}"
    lines[start_row] = f"{lines[start_row][:start]}{VALUE} = ({lines[start_row][start:]}"
    return "\n".join(lines) + _EPILOGUE


_kept = lru_cache(maxsize=256)(_rewritten)


def small(text: object) -> Kept | None:
    """Read what the rewritten code yielded, as far as that is the whole value."""
    if not isinstance(text, str) or not text:
        return None
    if text in _WORDS:
        return _WORDS[text]
    if _SIMPLE_TEXT.fullmatch(text):
        return Kept(text[1:-1], text)
    try:
        number = float(text) if set(text) & set(".en") else int(text)
    except ValueError:
        return None
    return Kept(number, repr(number))


def _last_expression(code: str) -> tuple[int, int, int, int] | None:
    """Return where the last expression statement starts and ends: rows and columns, in characters from 0."""
    tree = syntax_tree(code)
    if tree is None:
        return None
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr) or last.end_lineno is None or last.end_col_offset is None:
        return None
    lines = code.split("\n")
    rows = last.lineno - 1, last.end_lineno - 1
    start, end = (
        len(lines[row].encode("utf-8", "surrogatepass")[:offset].decode("utf-8", "surrogatepass"))
        for row, offset in zip(rows, (last.col_offset, last.end_col_offset), strict=True)
    )
    return rows[0], start, rows[1], end
