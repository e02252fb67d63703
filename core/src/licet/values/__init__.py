"""Values between host and guest: one wire form, bounded on every side.

Rules this package keeps:

- the wire form is JSON; what JSON can't say is an object with the key `$type`;
- every walk is iterative and within a `Budget`: no cycle, bomb or depth can hang or overflow it;
- what can't be carried truthfully is marked (`Opaque`, `Omitted`), never silently altered; for an input that
  is not enough: `check_crossing` refuses it and names the place;
- `_encode`, `_decode` and `_show` also run in guests, sent by the host: they import only what is built in.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from licet.values import _decode, _encode, _show

__all__ = [
    "DEFAULT",
    "Budget",
    "Omitted",
    "Opaque",
    "check_crossing",
    "decode",
    "encode",
    "exactly",
    "from_json",
    "repr_bounded",
    "to_json",
]

repr_bounded = _show.repr_bounded


@dataclass(frozen=True, slots=True)
class Budget:
    """How much of a value is carried: nodes in all, levels of nesting, bytes of text and binary."""

    nodes: int = 100_000
    depth: int = 100
    bytes: int = 4 << 20


DEFAULT = Budget()


@dataclass(frozen=True, slots=True)
class Opaque:
    """Stands for a value that can't cross: the name of its type, and its repr, bounded."""

    type_name: str
    repr: str


@dataclass(frozen=True, slots=True)
class Omitted:
    """Stands for a part that was left out: `cycle`, `depth` or `budget`; `count` items, if known."""

    reason: str
    count: int | None = None


def encode(value: object, budget: Budget = DEFAULT) -> Any:
    """Return `value` as a tree that JSON can say; what can't cross is marked."""
    return _encode.encode(value, budget.nodes, budget.depth, budget.bytes, repr_bounded)


def decode(tree: object) -> Any:
    """Return the value that a tree stands for.

    Raises:
        ValueError: the tree is no wire form.
    """
    return _decode.decode(tree, Opaque, Omitted)


def to_json(value: object, budget: Budget = DEFAULT) -> str:
    """Return the wire form of `value` as ASCII JSON text."""
    return _encode.write(encode(value, budget))


def from_json(text: str | bytes) -> Any:
    """Read what `to_json` wrote, or a hostile imitation of it.

    Raises:
        ValueError: the text is no JSON, is nested too deep, or is no wire form.
    """
    return decode(parse(text))


def parse(text: str | bytes) -> Any:
    """Read JSON text that nobody vouches for into a tree.

    Raises:
        ValueError: the text is no JSON, or is nested too deep.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("the text is nested too deep to be a value") from None


def check_crossing(value: object, budget: Budget = DEFAULT) -> None:
    """Accept an input that reaches the code exactly as it is.

    Raises:
        ValueError: some part can't cross; the message names the place, such as `orders[3].x`.
    """
    _encode.encode(value, budget.nodes, budget.depth, budget.bytes, repr_bounded, strict=True)


def exactly(value: object, budget: Budget = DEFAULT) -> str:
    """The wire form of a value that crosses exactly as it is, as ASCII JSON text.

    Raises:
        ValueError: as for `check_crossing`.
    """
    if budget is DEFAULT and _is_simple(value):
        return _compact(value)
    tree = _encode.encode(value, budget.nodes, budget.depth, budget.bytes, repr_bounded, strict=True)
    return _encode.write(tree)


_compact = json.JSONEncoder(separators=(",", ":")).encode
_SIMPLE_MEMBERS, _SIMPLE_LENGTH, _SIMPLE_INT = 32, 200, 2**31


def _is_simple(value: object, level: int = 0) -> bool:
    """Whether a value is small, and JSON as it is: most arguments and results are."""
    kind = type(value)
    if value is None or kind is bool:
        return True
    if kind is int:
        return -_SIMPLE_INT < value < _SIMPLE_INT  # type: ignore[operator]
    if kind is str:
        return len(value) <= _SIMPLE_LENGTH and value.isascii()  # type: ignore[arg-type, attr-defined]
    if level == 2 or (kind is not list and kind is not dict):
        return False
    if len(value) > _SIMPLE_MEMBERS:  # type: ignore[arg-type]
        return False
    if kind is dict:
        for key in value:  # type: ignore[attr-defined]
            if type(key) is not str or key == "$type" or len(key) > _SIMPLE_LENGTH or not key.isascii():
                return False
        value = value.values()  # type: ignore[attr-defined]
    return all(_is_simple(one, level + 1) for one in value)  # type: ignore[attr-defined]
