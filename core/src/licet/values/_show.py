"""A repr that never raises, never hangs on built-in types, and stops at a limit.

Rules this module keeps:

- for built-in types it writes what `repr` writes, in an iterative walk that ends at the limit;
- another type writes its own repr, and whatever it raises is told in its place; but a container of another
  type that holds containers only gives its name, because such a repr can take for ever;
- it runs in guests too, sent by the host: it imports nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_BRACKETS: dict[type, tuple[str, str]] = {
    list: ("[", "]"),
    tuple: ("(", ")"),
    dict: ("{", "}"),
    set: ("{", "}"),
    frozenset: ("frozenset({", "})"),
}
_AGAIN: dict[type, str] = {list: "[...]", tuple: "(...)", dict: "{...}"}
_DECIMAL_BITS = 2048  # 617 digits, which every limit on digits allows


def repr_bounded(value: object, limit: int = 1000) -> str:
    """Return `repr(value)`, cut to `limit` characters of which the last is then `…`."""
    pieces: list[str] = []
    length = 0
    for piece in _pieces(value, limit):
        pieces.append(piece)
        length += len(piece)
        if length > limit:
            break
    text = "".join(pieces)
    return text if len(text) <= limit else text[: max(limit - 1, 0)] + "…"


def _pieces(value: object, limit: int) -> Iterator[str]:
    """Yield the repr in pieces: a stack of iterators over members, innermost last."""
    stack: list[tuple[Iterator[str | tuple[object]], str, int]] = []
    inside: set[int] = set()
    item: object = value
    while True:
        kind = type(item)
        if kind in _BRACKETS and item and id(item) not in inside:
            start, end = _BRACKETS[kind]
            yield start
            inside.add(id(item))
            stack.append((_members(item), end, id(item)))
        else:
            yield _leaf(item, limit, id(item) in inside)
        while stack:
            members, end, key = stack[-1]
            step = next(members, None)
            if isinstance(step, str):
                yield step
            elif step is not None:
                item = step[0]
                break
            else:
                stack.pop()
                inside.discard(key)
                yield end
        else:
            return


def _members(item: Any) -> Iterator[str | tuple[object]]:
    """Yield separators as text and members as 1-tuples; a change during the walk ends it."""
    separator = ""
    try:
        for member in item.items() if type(item) is dict else item:
            if separator:
                yield separator
            separator = ", "
            if type(item) is dict:
                yield (member[0],)
                yield ": "
                yield (member[1],)
            else:
                yield (member,)
    except RuntimeError:
        yield ", …"
    if type(item) is tuple and len(item) == 1:
        yield ","


def _leaf(item: Any, limit: int, again: bool) -> str:
    kind = type(item)
    if again:
        return _AGAIN.get(kind, "...")
    if kind in (str, bytes, bytearray) and len(item) > limit:
        return repr(item[:limit])
    if kind is int and item.bit_length() > _DECIMAL_BITS:
        return _long_integer(item, limit)
    try:
        if kind not in _BRACKETS and isinstance(item, tuple(_BRACKETS)) and not _is_flat(item):
            # its own repr may be C code that writes out shared parts for ever
            return f"<{_name(kind)} with members of its own>"
        return str.__str__(repr(item))
    except Exception as problem:
        return f"<{_name(kind)} whose repr raised {_name(type(problem))}>"


def _is_flat(item: Any) -> bool:
    """Whether no member of a container is a container."""
    members = item.values() if isinstance(item, dict) else item
    return not any(isinstance(member, tuple(_BRACKETS)) for member in members)


def _long_integer(item: int, limit: int) -> str:
    """In decimal up to 5000 digits or so, if this process allows that many; else in hexadecimal."""
    if item.bit_length() < 16_384:
        try:
            return repr(item)
        except ValueError:
            pass
    beyond = max(item.bit_length() - limit * 4, 0)
    return ("-" if item < 0 else "") + hex(abs(item) >> beyond)


def _name(kind: type) -> str:
    """The name of a type, past whatever its metaclass does."""
    name: str = type.__dict__["__name__"].__get__(kind)
    return str.__str__(name)[:200]
