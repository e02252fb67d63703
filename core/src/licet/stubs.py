"""Type stubs: what code may call and read, written as Python declares it, for a type checker or a model.

Rules this module keeps:

- what a stub says is what a call is held to: parameters as the policy or Python has them, in the same order;
- an annotation is told only if it is made of types that cross; whatever else it is, it is `Any`, so that a
  stub never names what code can't name, and never says more than is known;
- a tool that is awaitable gives a value either way: called directly it is its result, awaited too;
- text of others (descriptions, names) can't end what it stands in.
"""

from __future__ import annotations

import collections.abc
import datetime
import decimal
import keyword
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from licet.calling import signature_of
from licet.output import bounded
from licet.policy import PolicyStack
from licet.policy.signatures import Parameter, Signature, Type, annotations_of
from licet.request import Tool

_HEADER = """\
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import IO, Any, Generator, Literal
"""
_OPEN = "def open(file: Any, mode: str = ..., *args: Any, **kwargs: Any) -> IO[Any]: ..."

_MOST_DESCRIPTION = 500
_MOST_ITEMS = 100
_MOST_DEPTH = 4

_PLAIN: Mapping[Any, str] = {
    type(None): "None", None: "None", bool: "bool", int: "int", float: "float", complex: "complex",
    str: "str", bytes: "bytes", decimal.Decimal: "Decimal", datetime.date: "date",
    datetime.datetime: "datetime", datetime.time: "time", datetime.timedelta: "timedelta",
    list: "list[Any]", tuple: "tuple[Any, ...]", dict: "dict[Any, Any]", set: "set[Any]",
    frozenset: "frozenset[Any]",
}  # fmt: skip
_KINDS: Mapping[str, str] = {
    "string": "str", "int": "int", "decimal": "Decimal", "float": "float", "bool": "bool", "bytes": "bytes",
    "date": "date", "datetime": "datetime", "duration": "timedelta", "list": "list[Any]",
    "map": "dict[str, Any]",
}  # fmt: skip
_LISTS = (list, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Collection)
_MAPS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
_ORDER = ("placed", "plain", "rest", "named", "extra")

_CLOSED = ("bool", "None", "Any")
_UNIONS = (typing.Union, types.UnionType)


def stubs_of(
    tools: Iterable[Tool], stack: PolicyStack, inputs: Mapping[str, Any], *, opens_files: bool
) -> str:
    """The stubs of a run: its inputs by the types of their values, its tools, and `open` if it has files."""
    parts = [_HEADER]
    parts += [f"{name}: {_of_value(value)}" for name, value in inputs.items()]
    parts += [_OPEN] if opens_files else []
    parts += [stub_of(tool, signature_of(tool.name, stack, tool.handler)) for tool in tools]
    return "\n".join(parts) + "\n"


def stub_of(tool: Tool, signature: Signature | None) -> str:
    """The stub of one tool, whose parameters are `signature` (None: nobody knows them)."""
    given = _annotation(annotations_of(tool.handler).get("return", Any))
    lines = []
    if tool.is_async and not given.startswith(_CLOSED) and "|" not in given and "Literal" not in given:
        awaited, given = given, f"{tool.name}_result"
        lines.append(f"class {given}({awaited}):")
        lines.append(f"    def __await__(self) -> Generator[Any, Any, {awaited}]: ...")
    elif tool.is_async:
        given = "Any"  # no type is both this and awaitable
    lines.append(f"def {shown_signature(tool, signature)} -> {given}:")
    lines += [f'    """{_described(tool)}"""'] if tool.description else []
    lines.append("    ...")
    return "\n".join(lines)


def shown_signature(tool: Tool, signature: Signature | None) -> str:
    """A tool with its parameters, as one line of Python: `pay(order: str, amount: int, note: str = ...)`."""
    if signature is None:
        return f"{tool.name}(*args: Any, **kwargs: Any)"
    return f"{tool.name}({', '.join(_parameters(signature, annotations_of(tool.handler)))})"


def _parameters(signature: Signature, hints: Mapping[str, Any]) -> Iterable[str]:
    ordered = sorted(signature.parameters, key=lambda one: _ORDER.index(one.role))
    unspeakable = [one for one in ordered if keyword.iskeyword(one.name)]
    ordered = [one for one in ordered if one not in unspeakable]
    last_placed = max((n for n, one in enumerate(ordered) if one.role == "placed"), default=-1)
    optional = False
    starred = any(one.role == "rest" for one in ordered)
    for number, one in enumerate(ordered):
        if one.role == "named" and not starred:
            starred = True
            yield "*"
        optional = (optional or not one.required) if one.role in ("placed", "plain") else False
        yield _parameter(one, hints.get(one.name), optional=optional or not one.required)
        if number == last_placed:
            yield "/"
    if unspeakable and not any(one.role == "extra" for one in ordered):
        yield "**kwargs: Any"


def _parameter(one: Parameter, hint: Any, *, optional: bool) -> str:
    said = _of_type(one.type) if hint is None else _annotation(hint)
    match one.role:
        case "rest":
            return f"*{one.name}: {said if hint is not None else 'Any'}"
        case "extra":
            return f"**{one.name}: {said if hint is not None else 'Any'}"
    return f"{one.name}: {said}{' = ...' if optional else ''}"


def _of_type(said: Type) -> str:
    return f"list[{_of_type(said.item)}]" if said.item is not None else _KINDS.get(said.kind, "Any")


def _annotation(said: Any, depth: int = 0) -> str:
    """An annotation, as far as it is made of types that cross."""
    if depth > _MOST_DEPTH:
        return "Any"
    if isinstance(said, type) or said is None:
        found = _PLAIN.get(said)
        if found is not None:
            return found
    origin, args = typing.get_origin(said), typing.get_args(said)
    if origin is typing.Annotated:
        return _annotation(args[0], depth)
    if origin is typing.Literal:
        return f"Literal[{', '.join(map(repr, args))}]" if all(map(_is_word, args)) else "Any"
    inner = [_annotation(one, depth + 1) for one in args if one is not Ellipsis]
    if origin in _UNIONS:
        return "Any" if "Any" in inner else " | ".join(dict.fromkeys(inner))
    if origin is tuple and inner:
        return f"tuple[{inner[0]}, ...]" if args[-1] is Ellipsis else f"tuple[{', '.join(inner)}]"
    if origin in _LISTS and len(inner) == 1:
        return f"list[{inner[0]}]"
    if origin in _MAPS and len(inner) == 2:
        return f"dict[{', '.join(inner)}]"
    if origin in (set, frozenset) and len(inner) == 1:
        return f"{origin.__name__}[{inner[0]}]"
    return "Any"


def _is_word(value: object) -> bool:
    return value is None or type(value) in (bool, int) or (type(value) is str and len(value) <= 100)


def _of_value(value: Any, depth: int = 0) -> str:
    """The type of an input, from its value; what is mixed, or nested deep, is `Any`."""
    kind = type(value)
    if depth > _MOST_DEPTH or kind not in _PLAIN:
        return "Any"
    if kind in (list, set, frozenset):
        return f"{kind.__name__}[{_common(list(value), depth)}]"
    if kind is tuple:
        return f"tuple[{_common(value, depth)}, ...]"
    if kind is dict:
        return f"dict[{_common(list(value), depth)}, {_common(list(value.values()), depth)}]"
    return _PLAIN[kind]


def _common(items: Sequence[Any], depth: int) -> str:
    found = {_of_value(item, depth + 1) for item in items[:_MOST_ITEMS]}
    return found.pop() if len(found) == 1 and len(items) <= _MOST_ITEMS else "Any"


def _described(tool: Tool) -> str:
    text = bounded(tool.description, _MOST_DESCRIPTION).replace("\\", "\\\\").replace('"', '\\"')
    return "".join(one if one.isprintable() or one == "\n" else " " for one in text)
