"""Taking lines out of code: whole statements, with every other line where it was.

Rules this module keeps:

- what is left can be parsed: a statement gives way to `pass`;
- no line moves, so that lines named before and after mean the same;
- a line that stands inside a statement takes all of that statement with it, and no more.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import lru_cache

Span = tuple[int, int]
"""First and last line of what goes, both 1-based and inclusive."""


def span_of(code: str, line: int) -> Span | None:
    """The lines of the smallest statements that `line` is part of; None if it is part of none.

    Code that can't be parsed has none.
    """
    touched = [_lines(one) for one in _touched(code, line)]
    return (min(first for first, _ in touched), max(last for _, last in touched)) if touched else None


def without(code: str, lines: Iterable[int]) -> str:
    """`code` without the statements of these lines."""
    gone = [statement for line in sorted(set(lines)) for statement in _touched(code, line)]
    rows = [row.encode() for row in code.split("\n")]  # columns are counted in bytes
    for start, end in sorted(_outermost(gone), reverse=True):
        (first, left), (last, right) = start, end
        kept = rows[first - 1][:left] + b"pass"
        tail = rows[last - 1][right:]
        rows[first - 1 : last] = [kept + tail, *[b""] * (last - first)]
    return b"\n".join(rows).decode()


_Place = tuple[int, int]


def _touched(code: str, line: int) -> list[ast.stmt]:
    around = [node for node in _statements(code) if _lines(node)[0] <= line <= _lines(node)[1]]
    return [node for node in around if not any(_is_inside(other, node) for other in around)]


@lru_cache(maxsize=4)
def _statements(code: str) -> tuple[ast.stmt, ...]:
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.stmt))


def _is_inside(inner: ast.stmt, outer: ast.stmt) -> bool:
    return inner is not outer and _begin(outer) <= _begin(inner) and _end(inner) <= _end(outer)


def _outermost(statements: Iterable[ast.stmt]) -> list[tuple[_Place, _Place]]:
    places = {(_begin(one), _end(one)) for one in statements}
    return [one for one in places if not any(o != one and o[0] <= one[0] and one[1] <= o[1] for o in places)]


def _lines(node: ast.stmt) -> Span:
    return _begin(node)[0], _end(node)[0]


def _begin(node: ast.stmt) -> _Place:
    decorators = getattr(node, "decorator_list", ())
    if decorators:  # they begin behind their `@`, at the column of the statement
        return min(one.lineno for one in decorators), node.col_offset
    return node.lineno, node.col_offset


def _end(node: ast.stmt) -> _Place:
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
