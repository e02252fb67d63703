"""Taking lines out of code: whole statements, with every other line where it was.

Rules this module keeps:

- what is left can be parsed: a statement gives way to `pass`;
- no line moves, so that lines named before and after mean the same;
- a line that stands inside a statement takes all of that statement with it, and no more.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

Span = tuple[int, int]
"""First and last line of what goes, both 1-based and inclusive."""


def span_of(code: str, line: int) -> Span | None:
    """The lines of the smallest statements that `line` is part of; None if it is part of none.

    Code that can't be parsed has none.
    """
    touched = [_lines(one) for one in _innermost(code).get(line, ())]
    return (min(first for first, _ in touched), max(last for _, last in touched)) if touched else None


def without(code: str, lines: Iterable[int]) -> str:
    """`code` without the statements of these lines."""
    gone = [statement for line in sorted(set(lines)) for statement in _innermost(code).get(line, ())]
    rows = [row.encode() for row in code.split("\n")]  # columns are counted in bytes
    for start, end in sorted(_outermost(gone), reverse=True):
        (first, left), (last, right) = start, end
        kept = rows[first - 1][:left] + b"pass"
        tail = rows[last - 1][right:]
        rows[first - 1 : last] = [kept + tail, *[b""] * (last - first)]
    return b"\n".join(rows).decode()


_Place = tuple[int, int]


@lru_cache(maxsize=4)
def _innermost(code: str) -> Mapping[int, Sequence[ast.stmt]]:
    """By line, the statements that it is part of and that hold no other such statement."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    found: dict[int, list[ast.stmt]] = {}
    for node in ast.walk(tree):  # a statement comes before those inside it
        if isinstance(node, ast.stmt):
            first, last = _lines(node)
            for line in range(first, last + 1):
                around = found.get(line, ())
                found[line] = [*(other for other in around if not _is_inside(node, other)), node]
    return found


def _is_inside(inner: ast.stmt, outer: ast.stmt) -> bool:
    return inner is not outer and _begin(outer) <= _begin(inner) and _end(inner) <= _end(outer)


def _outermost(statements: Iterable[ast.stmt]) -> list[tuple[_Place, _Place]]:
    places = {(_begin(one), _end(one)) for one in statements}
    found: list[tuple[_Place, _Place]] = []
    for begin, end in sorted(places, key=lambda place: (place[0], (-place[1][0], -place[1][1]))):
        if not found or end > found[-1][1]:  # statements are inside each other or apart
            found.append((begin, end))
    return found


def _lines(node: ast.stmt) -> Span:
    return _begin(node)[0], _end(node)[0]


def _begin(node: ast.stmt) -> _Place:
    decorators = getattr(node, "decorator_list", ())
    if decorators:  # they begin behind their `@`, at the column of the statement
        return min(one.lineno for one in decorators), node.col_offset
    return node.lineno, node.col_offset


def _end(node: ast.stmt) -> _Place:
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
