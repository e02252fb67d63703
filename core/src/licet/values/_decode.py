"""From a tree back to the value it stands for; the tree may come from an enemy.

Rules this module keeps:

- iterative; every tag has its exact form, and any other form is a `ValueError`;
- nothing is imported by name from the tree, and no code of the tree's choice runs;
- nothing takes more than about linear time, however the members of a set were chosen;
- it runs in guests too, sent by the host: it imports only what a tag needs.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MOST_ALIKE = 64


def decode(tree: Any, opaque: Callable[..., Any], omitted: Callable[..., Any]) -> Any:
    """Return the value of `tree`; `opaque(type, repr)` and `omitted(reason, count)` make the marks.

    Raises:
        ValueError: the tree is no wire form.
    """
    root: list[Any] = [None]
    pending: list[tuple[Any, Any, Any]] = [(tree, root, 0)]
    built: list[tuple[str, list[Any], Any, Any]] = []
    while pending:
        item, slots, index = pending.pop()
        if type(item) is list:
            slots[index] = members = [None] * len(item)
            pending.extend((inner, members, i) for i, inner in enumerate(item))
        elif type(item) is dict and "$type" not in item:
            slots[index] = fields = dict.fromkeys(item)
            pending.extend((inner, fields, key) for key, inner in item.items())
        elif type(item) is dict and type(item.get("items")) is list:
            members = [None] * len(item["items"])
            pending.extend((inner, members, i) for i, inner in enumerate(item["items"]))
            built.append((item["$type"], members, slots, index))
        elif type(item) is dict:
            slots[index] = _simple(item, opaque, omitted)
        else:
            slots[index] = item
    for kind, members, slots, index in reversed(built):
        slots[index] = _collected(kind, members)
    return root[0]


def _collected(kind: Any, members: list[Any]) -> Any:
    """Build a tagged container from its members, which are complete."""
    try:
        if kind == "dict":
            _check_hashes([key for key, _ in members])
            return dict(members)
        if kind == "tuple":
            return tuple(members)
        if kind == "set" or kind == "frozenset":
            _check_hashes(members)
            return set(members) if kind == "set" else frozenset(members)
        if kind == "complex":
            real, imaginary = members
            return complex(real, imaginary)
        if kind == "timedelta":
            from datetime import timedelta

            days, seconds, microseconds = members
            return timedelta(days, seconds, microseconds)
    except (TypeError, ValueError, OverflowError) as problem:
        raise ValueError(f"the members of a `{kind}` are none: {problem}") from None
    raise ValueError(f"`{str(kind)[:80]}` is no type of values with members")


def _check_hashes(keys: list[Any]) -> None:
    """Refuse keys chosen to have one hash: a table of them is built in the square of their number."""
    if len(keys) > MOST_ALIKE:
        alike: dict[int, int] = {}
        for key in keys:
            number = hash(key)
            alike[number] = alike.get(number, 0) + 1
            if alike[number] > MOST_ALIKE:
                raise ValueError(f"more than {MOST_ALIKE} have one hash")


def _simple(item: dict[str, Any], opaque: Callable[..., Any], omitted: Callable[..., Any]) -> Any:
    kind = item["$type"]
    try:
        if kind == "opaque":
            return opaque(_text(item["type"]), _text(item["repr"]))
        if kind == "omitted":
            count = item.get("count")
            return omitted(_text(item["reason"]), count if type(count) is int else None)
        if "base64" in item:
            return _binary(kind, _text(item["base64"]))
        if kind == "int":
            return int(_text(item["hex"]), 16) if "hex" in item else int(_text(item["value"]))
        if kind == "float":
            return float(_text(item["value"]))
        return _of_library(kind, _text(item["value"]), item.get("fold", 0))
    except (KeyError, TypeError, ValueError, ArithmeticError) as problem:
        raise ValueError(f"a `{str(kind)[:80]}` is malformed: {str(problem)[:200]}") from None


def _binary(kind: Any, text: str) -> Any:
    from binascii import a2b_base64

    data = a2b_base64(text, strict_mode=True)
    if kind == "str":
        return data.decode("utf-8", "surrogatepass")
    if kind == "bytearray":
        return bytearray(data)
    if kind == "bytes":
        return data
    raise ValueError("no type of binary data")


def _of_library(kind: Any, text: str, fold: Any) -> Any:
    if kind == "decimal":
        from decimal import Decimal

        return Decimal(text)
    import datetime

    if kind == "date":
        return datetime.date.fromisoformat(text)
    if kind == "time":
        return datetime.time.fromisoformat(text).replace(fold=fold)
    if kind == "datetime":
        return datetime.datetime.fromisoformat(text).replace(fold=fold)
    raise ValueError("no type of values")


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError("expected text")
    return value
