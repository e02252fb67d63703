"""From a value to the tree that JSON can say, and from the tree to text.

Rules this module keeps:

- it runs in guests too, sent by the host: it imports nothing that is not built in, and no type it looks for;
- exact types only: a subclass may mean anything, so it is opaque;
- a shared part is written out each time it is met, and each time counts against the budget.
"""

from __future__ import annotations

import sys
from itertools import islice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Place = tuple[Any, ...]
    Task = tuple[Any, Any, Any, int, Place]

LARGEST_PLAIN_INT = 2**53
DECIMAL_BITS = 2048  # 617 digits: the limit on digits that a process may set for itself is at least 640
REPR_LIMIT = 1000

_CONTAINERS = (list, dict, tuple, set, frozenset)
_ENTER = object()


class _Loss(Exception):
    """Why a part can't cross truthfully, and the mark it gets where a mark will do."""

    def __init__(self, why: str, mark: Any) -> None:
        self.why = why
        self.mark = mark


def encode(
    value: Any,
    nodes: int,
    depth: int,
    size: int,
    describe: Callable[[Any, int], str],
    *,
    strict: bool = False,
) -> Any:
    """Return the tree of `value` within a budget of nodes, levels and bytes.

    `describe` makes the bounded repr of what can't cross.

    Raises:
        ValueError: `strict` is set, and a part would be lost; the message names its place.
    """
    return _Encoder(nodes, depth, size, describe, strict).run(value)


class _Encoder:
    """One walk, depth first. What is pending is a slot to fill, or the id of a container to leave."""

    def __init__(
        self, nodes: int, depth: int, size: int, describe: Callable[[Any, int], str], strict: bool
    ) -> None:
        self.nodes = nodes
        self.depth = depth
        self.size = size
        self.describe = describe
        self.strict = strict
        self.inside: set[int] = set()

    def run(self, value: Any) -> Any:
        root = [None]
        pending: list[Task | int] = [(value, root, 0, 0, ())]
        while pending:
            task = pending.pop()
            if isinstance(task, int):
                self.inside.discard(task)
                continue
            item, slots, index, level, place = task
            try:
                tree = self.leaf(item, level)
                if tree is _ENTER:
                    tree, children = self.open(item, level, place)
                    self.inside.add(id(item))
                    pending.append(id(item))
                    pending.extend(reversed(children))
            except _Loss as loss:
                if self.strict:
                    raise ValueError(f"`{spell_place(place)}` {loss.why}") from None
                tree = loss.mark
            slots[index] = tree
        return root[0]

    def leaf(self, item: Any, level: int) -> Any:
        """Encode what holds no other values; `_ENTER` for what does."""
        self.nodes -= 1
        if self.nodes < 0:
            raise _Loss("is too much: more values than the budget allows", _omitted("budget"))
        kind = type(item)
        if item is None or kind is bool:
            return item
        if kind is int:
            return self.integer(item)
        if kind is float:
            return item if item - item == 0 else {"$type": "float", "value": repr(item)}
        if kind is str or kind is bytes or kind is bytearray:
            return self.text(item, kind)
        if kind is complex:
            return {"$type": "complex", "items": [self.leaf(item.real, level), self.leaf(item.imag, level)]}
        if kind not in _CONTAINERS:
            return self.foreign(item, kind)
        if id(item) in self.inside:
            raise _Loss("contains itself", _omitted("cycle"))
        if level >= self.depth:
            raise _Loss(f"is nested deeper than {self.depth} levels", _omitted("depth", len(item)))
        return _ENTER

    def spend(self, size: int) -> None:
        """Take `size` bytes from the budget."""
        if size > self.size:
            raise _Loss("is too much: more bytes than the budget allows", _omitted("budget", size))
        self.size -= size

    def integer(self, item: int) -> Any:
        if -LARGEST_PLAIN_INT <= item <= LARGEST_PLAIN_INT:
            return item
        bits = item.bit_length()
        self.spend(bits // 4)
        return (
            {"$type": "int", "value": str(item)}
            if bits <= DECIMAL_BITS
            else {"$type": "int", "hex": hex(item)}
        )

    def text(self, item: Any, kind: type) -> Any:
        self.spend(len(item))
        if self.strict and kind is bytearray:
            raise _Loss("is a `bytearray`, which not every sandbox knows; pass `bytes` instead", None)
        if self.strict and kind is str and not _is_clean(item):
            raise _Loss("holds half of a surrogate pair, which is no character", None)
        if kind is not str:
            return {"$type": kind.__name__, "base64": _base64(item)}
        return item if _is_clean(item) else {"$type": "str", "base64": _base64(_surrogates(item))}

    def open(self, item: Any, level: int, place: Place) -> tuple[Any, list[Task]]:
        """Return the tree of a container with empty slots, and the tasks that fill them."""
        rest = len(item) - self.nodes
        if rest > 0 and self.strict:
            raise _Loss("is too much: more values than the budget allows", None)
        kind = type(item)
        if kind is dict:
            return self.mapping(item, level + 1, place, rest)
        members = list(islice(item, max(self.nodes, 0)))
        slots: list[Any] = [None] * len(members)
        children = [(member, slots, i, level + 1, (place, i)) for i, member in enumerate(members)]
        if rest > 0:
            slots.append(_omitted("budget", rest))
        return slots if kind is list else {"$type": kind.__name__, "items": slots}, children

    def mapping(self, item: dict[Any, Any], level: int, place: Place, rest: int) -> tuple[Any, list[Task]]:
        """An object where JSON allows it, else a list of pairs."""
        if rest <= 0 and "$type" not in item and all(type(key) is str and _is_clean(key) for key in item):
            self.spend(sum(map(len, item)))
            tree: dict[str, Any] = dict.fromkeys(item)
            return tree, [(inner, tree, key, level, (place, key)) for key, inner in item.items()]
        pairs: list[Any] = []
        children: list[Task] = []
        for key, inner in islice(item.items(), max(self.nodes // 2, 0)):
            pair = [None, None]
            children.append((key, pair, 0, level, (place, key)))
            children.append((inner, pair, 1, level, (place, key)))
            pairs.append(pair)
        if len(pairs) < len(item):
            if self.strict:
                raise _Loss("is too much: more values than the budget allows", None)
            mark = _omitted("budget", len(item) - len(pairs))
            pairs.append([mark, mark])
        return {"$type": "dict", "items": pairs}, children

    def foreign(self, item: Any, kind: type) -> Any:
        """Encode the few types of the standard library that are values, or mark what is none."""
        clock = sys.modules.get("datetime")
        if clock is not None:
            if kind is clock.timedelta:
                return {"$type": "timedelta", "items": [item.days, item.seconds, item.microseconds]}
            if kind is clock.date:
                return {"$type": "date", "value": item.isoformat()}
            if (kind is clock.datetime or kind is clock.time) and (
                item.tzinfo is None or type(item.tzinfo) is clock.timezone
            ):
                return {"$type": kind.__name__, "value": item.isoformat(), "fold": item.fold}
        numbers = sys.modules.get("decimal")
        if numbers is not None and kind is numbers.Decimal:
            text = str(item)
            self.spend(len(text))
            return {"$type": "decimal", "value": text}
        marks = sys.modules.get("licet.values")
        if marks is not None and kind is marks.Opaque:
            raise _Loss("is itself a mark of something lost", _opaque(item.type_name, item.repr))
        if marks is not None and kind is marks.Omitted:
            raise _Loss("is itself a mark of something lost", _omitted(item.reason, item.count))
        name = type_name(kind)
        mark = None if self.strict else _opaque(name, self.describe(item, REPR_LIMIT))
        raise _Loss(f"is a `{name}`, which can't cross into the sandbox; pass plain data instead", mark)


def type_name(kind: type) -> str:
    """The name of a type, with its module unless that is built in; past whatever its metaclass does."""
    module: Any = type.__dict__["__module__"].__get__(kind)
    name = str.__str__(type.__dict__["__qualname__"].__get__(kind))[:200]
    if type(module) is not str or module in ("builtins", "__main__"):
        return _clean(name)
    return _clean(f"{module[:200]}.{name}")


def spell_place(place: Place) -> str:
    """Write a place as an expression: `orders[3].x`."""
    steps: list[str] = []
    while place:
        place, step = place
        if type(step) is str and step.isidentifier():
            steps.append(f".{step[:80]}")
        else:
            steps.append(f"[{repr(step)[:80] if type(step) in (int, str) else type(step).__name__}]")
    return "".join(reversed(steps)).removeprefix(".") or "value"


def _opaque(name: str, text: str) -> dict[str, Any]:
    return {"$type": "opaque", "type": _clean(name), "repr": _clean(text)}


def _omitted(reason: str, count: int | None = None) -> dict[str, Any]:
    return {"$type": "omitted", "reason": reason, "count": count}


def _is_clean(text: str) -> bool:
    try:
        text.isascii() or text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _clean(text: str) -> str:
    return text if _is_clean(text) else text.encode("utf-8", "backslashreplace").decode("utf-8")


def _surrogates(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _base64(data: bytes) -> str:
    from binascii import b2a_base64

    return b2a_base64(data, newline=False).decode("ascii")


def write(tree: Any) -> str:
    """Write a tree as ASCII JSON text; iterative, so no depth can overflow."""
    out: list[str] = []
    pending: list[Any] = [_Raw(""), tree]
    while pending:
        item = pending.pop()
        kind = type(item)
        if kind is _Raw:
            out.append(item.text)
        elif kind is str:
            out.append(_quote(item))
        elif kind is dict:
            pending.append(_Raw("}"))
            for position, (key, inner) in enumerate(reversed(item.items())):
                pending += (_Raw("," if position else ""), inner, _Raw(":"), key)
            out.append("{")
        elif kind is list:
            pending.append(_Raw("]"))
            for position, inner in enumerate(reversed(item)):
                pending += (_Raw("," if position else ""), inner)
            out.append("[")
        else:
            out.append("null" if item is None else repr(item).lower() if kind is bool else repr(item))
    return "".join(out)


class _Raw:
    """A piece of JSON text that is ready."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


def _quote(text: str) -> str:
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    from _json import encode_basestring_ascii

    return encode_basestring_ascii(text)
