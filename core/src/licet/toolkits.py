"""What a caller brings as its tools, by name: a mapping, a toolkit, or any number of named callables.

Rules this module keeps:

- a toolkit is known by what it has (`tools`, or `list_tools()`), never by its class;
- a tool without a name, and a name that stands for two of them, is refused;
- nothing here calls a tool, or waits for anything.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

MOST_TOOLS = 1000
"""How many tools a request may bring."""

MARK = "__licet_tool__"
"""The attribute of a function that says what kind of tool it is."""

_ADVICE = "pass {name: function}, a list of functions, or an object with `tools` or `list_tools()`"


def named(source: Any) -> dict[str, Any]:
    """The tools of `source` by name; None is no tool.

    Raises:
        ValueError: it is no source of tools, or a name stands for two of them or is missing.
    """
    if source is None:
        return {}
    if isinstance(source, Mapping):
        return _mapping(source)
    if isinstance(source, (str, bytes)) or inspect.isroutine(source) or isinstance(source, type):
        raise ValueError(f"`{_kind(source)}` is no source of tools; {_ADVICE}")
    if (held := getattr(source, "tools", None)) is not None and not callable(held):
        return named(held)
    if callable(listing := getattr(source, "list_tools", None)):
        return named(_listed(listing()))
    if not isinstance(source, Iterable):
        raise ValueError(f"`{_kind(source)}` is no source of tools; {_ADVICE}")
    found: dict[str, Any] = {}
    for item in _few(source):
        name = name_of(item)
        if name in found:
            raise ValueError(f"two tools are called `{name}`; pass a mapping that gives each its own name")
        found[name] = item
    return found


def name_of(item: Any) -> str:
    """What a tool is called that comes without a name beside it.

    Raises:
        ValueError: it has no name.
    """
    while isinstance(item, functools.partial):
        item = item.func
    for holder, attribute in ((getattr(item, MARK, None), "name"), (item, "name"), (item, "__name__")):
        if isinstance(name := getattr(holder, attribute, None), str):
            return name
    raise ValueError(f"a `{_kind(item)}` has no name; pass a mapping that gives it one")


def _mapping(source: Mapping[Any, Any]) -> dict[str, Any]:
    for name in _few(source):
        if not isinstance(name, str):
            raise ValueError(f"a tool has a text as its name, found a `{_kind(name)}`")
    return dict(source)


def _few(source: Iterable[Any]) -> list[Any]:
    items = list(islice(source, MOST_TOOLS + 1))
    if len(items) > MOST_TOOLS:
        raise ValueError(f"more than {MOST_TOOLS} tools; pass those that the code is to use")
    return items


def _listed(answer: Any) -> Any:
    if inspect.isawaitable(answer):
        if inspect.iscoroutine(answer):
            answer.close()
        raise ValueError("`list_tools()` has to be awaited; await it, and pass what it returns")
    return answer


def _kind(item: object) -> str:
    return type(item).__name__
