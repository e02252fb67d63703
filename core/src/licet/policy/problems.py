"""What is wrong with a document, said with its place and what to write instead.

Rules this module keeps:

- a problem is told at the deepest place that stands in the file;
- an unknown name comes with the nearest known one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ValidationError

from licet.contract import Control
from licet.errors import InvalidPolicy, Position
from licet.policy.advice import nearest
from licet.policy.yaml import Fields, Items

HIDDEN = frozenset({"file", "places"})
"""Fields of a document that are no keys of the language."""

_LINES = 5


def unknown(message: str, given: str, known: Iterable[str], where: Position) -> InvalidPolicy:
    """An error about the name `given`, with the nearest of `known`."""
    return InvalidPolicy(message, where=where, advice=nearest(given, sorted(known)))


def explain(
    problem: ValidationError,
    tree: object,
    file: str,
    model: type[BaseModel],
    *,
    path: tuple[str | int, ...] = (),
    besides: Iterable[str] = (),
) -> InvalidPolicy:
    """The first problem that `model` found in `tree`.

    `path` leads from the document to `tree`; `besides` are keys that are known and no fields.
    """
    errors = problem.errors(include_url=False)
    first = errors[0]
    location = first["loc"]
    where = Position(file, *place(tree, location))
    others = _besides(sorted({place(tree, one["loc"])[0] for one in errors[1:]}), len(errors) - 1)
    spelled = ".".join(str(part) for part in (*path, *location))
    if first["type"] == "extra_forbidden":
        known = {*_keys(_model_at(model, location[:-1])), *(besides if len(location) == 1 else ())}
        return unknown(f"unknown key `{spelled}`{others}", str(location[-1]), known, where)
    if location[-1] == "[key]":
        return unknown(f"unknown name `{first['input']}`{others}", str(first["input"]), list(Control), where)
    message = first["msg"].removeprefix("Value error, ")
    given = first.get("input")
    found = f", found `{given}`" if isinstance(given, (str, int, float)) and str(given) not in message else ""
    return InvalidPolicy(f"`{spelled}`: {message[:1].lower()}{message[1:]}{found}{others}", where=where)


def _besides(lines: list[int], count: int) -> str:
    """How many problems more there are, and where to look for them."""
    if not count:
        return ""
    shown = ", ".join(map(str, lines[:_LINES])) + (", …" if len(lines) > _LINES else "")
    return f" (and {count} more, in line{'s' if len(lines) > 1 else ''} {shown})"


def place(tree: Any, location: tuple[str | int, ...]) -> tuple[int, int]:
    """Where `location` stands, or the deepest part of it that is in the file."""
    found = (1, 1)
    for part in location:
        if isinstance(tree, Fields) and part in tree:
            found, tree = tree.places[str(part)], tree[str(part)]
        elif isinstance(tree, Items) and isinstance(part, int) and part < len(tree):
            found, tree = tree.places[part], tree[part]
        else:
            break
    return found


def _keys(model: type[BaseModel]) -> Iterable[str]:
    return (field.alias or name for name, field in model.model_fields.items() if name not in HIDDEN)


def _model_at(model: type[BaseModel], location: tuple[str | int, ...]) -> type[BaseModel]:
    for part in location:
        inner = model.model_fields[str(part)].annotation if str(part) in model.model_fields else None
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            break
        model = inner
    return model
