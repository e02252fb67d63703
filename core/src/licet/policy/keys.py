"""The keys of a mapping in a test, each with its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from licet.errors import InvalidPolicy, Position
from licet.policy.problems import explain, unknown
from licet.policy.yaml import Fields

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Keys:
    """Reads `fields`, a mapping that stands in `where`."""

    fields: Fields
    where: Position

    def place(self, key: str) -> Position:
        """Where a key stands; for one that is left out, the mapping."""
        return Position(self.where.file, *self.fields.places[key]) if key in self.fields else self.where

    def only(self, known: Sequence[str], what: str) -> None:
        """Refuse any other key; `what` is what the mapping is.

        Raises:
            InvalidPolicy: with its place and the nearest known one.
        """
        for key in self.fields:
            if key not in known:
                raise unknown(f"unknown key `{key}` in {what}", key, known, self.place(key))

    def model(self, key: str, kind: type[M], *, said: str | None = None) -> M:
        """What stands under `key` as a value of `kind`; errors call it `said`.

        Raises:
            InvalidPolicy: with the place of the first problem and what to write instead.
        """
        return model(self.fields[key], kind, said or key, self.place(key))


def model(tree: object, kind: type[M], said: str, where: Position) -> M:
    """Read `tree`, which stands in `where`, as a value of `kind`; errors call it `said`.

    Raises:
        InvalidPolicy: with the place of the first problem and what to write instead.
    """
    if not isinstance(tree, Fields):
        raise InvalidPolicy(f"`{said}` is a mapping, found `{tree}`", where=where)
    try:
        return kind.model_validate(dict(tree))
    except ValidationError as problem:
        raise explain(problem, tree, where.file, kind, path=(said,)) from None
