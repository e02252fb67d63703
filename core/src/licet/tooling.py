"""A tool: a function of the embedding program that code may call, with what the program says of it.

Rules this module keeps:

- a tool is bound and called as its own signature says; what it is called by in code is checked here;
- what a tool touches is said by its author in the words of policy, and is part of every decision on a call;
- a wrapper around a tool keeps what was said of it: a partial, a method, a function that wraps another.
"""

from __future__ import annotations

import functools
import inspect
import keyword
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar, overload

from licet import parameters, toolkits, units, values
from licet.errors import InvalidRequest
from licet.output import bounded
from licet.policy.patterns import canonical_target
from licet.request import ACTIONS, MOST_BYTES, Action, Intent, Tool

__all__ = ["Tool", "is_usable", "tool", "toolkit", "tools_of"]

F = TypeVar("F", bound=Callable[..., Any])

_MOST_DESCRIPTION = 2000


def is_usable(name: object) -> bool:
    """Whether code can use a name that a caller gives to an input or a tool."""
    return (
        isinstance(name, str)
        and name.isidentifier()
        and not keyword.iskeyword(name)
        and not name.startswith("__")
    )


@overload
def tool(function: F, /) -> F: ...


@overload
def tool(
    *,
    name: str | None = None,
    touches: Iterable[Intent | str] = (),
    idempotent: bool = False,
    timeout: float | str | None = None,
    most_bytes: int | str = MOST_BYTES,
    description: str | None = None,
) -> Callable[[F], F]: ...


def tool(function: Any = None, /, **said: Any) -> Any:
    """Say of a function what a `Tool` says; the function itself stays as it is.

    Use it bare, or with fields of `Tool`: `@licet.tool(touches=["network api.example.com:443"])`. What it
    touches is spelled as in policies (`network HOST:PORT`, `read PATH`, `write PATH`, `shell`), with absolute
    paths; `timeout` and `most_bytes` may have units (`5s`, `64KiB`).

    Raises:
        InvalidRequest: a field is malformed.
    """
    if function is None:
        return lambda decorated: tool(decorated, **said)
    touches = said.pop("touches", ())
    said = {name: value for name, value in said.items() if value is not None}
    fields = {"name": toolkits.name_of(function), "description": _described(function), **said}
    name = fields["name"]
    acts = (touches,) if isinstance(touches, (str, Intent)) else touches
    fields["touches"] = tuple(_touch(name, act) for act in acts)
    for field, reader in (("timeout", units.duration), ("most_bytes", units.size)):
        if field in fields:
            fields[field] = _read(name, field, fields[field], reader)
    setattr(function, toolkits.MARK, _checked(Tool(handler=function, **fields)))
    return function


def _read(tool: str, field: str, value: object, reader: Callable[[object], Any]) -> Any:
    try:
        return reader(value)
    except ValueError as problem:
        raise InvalidRequest(f"the tool `{bounded(tool, 80)}`: `{field}`: {problem}") from None


def toolkit(source: Any) -> dict[str, Tool]:
    """The tools of a mapping, of a toolkit (`tools` or `list_tools()`), or of any number of callables.

    An item is a callable, a `Tool`, or an object with a `name` and `execute`, `run` or `__call__`.

    Raises:
        InvalidRequest: it is no source of tools, or one of them is malformed.
    """
    try:
        return tools_of(toolkits.named(source))
    except ValueError as problem:
        raise InvalidRequest(f"`tools`: {problem}") from None


def tools_of(items: Mapping[str, Any]) -> dict[str, Tool]:
    """A tool for each item, under the name that it has there.

    Raises:
        InvalidRequest: one of them is malformed.
    """
    return {name: _tool_of(name, item) for name, item in items.items()}


def _tool_of(name: str, item: Any) -> Tool:
    if isinstance(item, Tool):
        return _checked(item if item.name == name else replace(item, name=name))
    handler = _handler(name, item)
    marked = _marked(item) or _marked(handler)
    if marked is not None:
        return _checked(replace(marked, name=name, handler=handler))
    return _checked(Tool(name, handler, description=_described(item)))


def _checked(made: Tool) -> Tool:
    """A tool whose every field is what it has to be; paths that it touches, as their links lead now."""
    if not is_usable(made.name):
        raise InvalidRequest(f"the tool `{bounded(str(made.name), 80)}` has no name that code can use")
    if not callable(made.handler):
        raise InvalidRequest(
            f"the tool `{made.name}` can't be called: it is a `{type(made.handler).__name__}`"
        )
    if made.timeout is not None:
        _read(made.name, "timeout", made.timeout, units.duration)
    if _read(made.name, "most_bytes", made.most_bytes, units.size) > values.DEFAULT.bytes:
        raise InvalidRequest(
            f"the tool `{made.name}` has `most_bytes` {made.most_bytes}, at most {values.DEFAULT.bytes} cross"
        )
    if not made.touches:
        return made
    touches = tuple(dict.fromkeys(_touch(made.name, one) for one in made.touches))
    return made if touches == made.touches else replace(made, touches=touches)


def _marked(item: Any) -> Tool | None:
    while isinstance(item, functools.partial):
        item = item.func
    found = getattr(item, toolkits.MARK, None)
    return found if isinstance(found, Tool) else None


def _handler(name: str, item: Any) -> Callable[..., Any]:
    """What a call of an item calls."""
    if inspect.isroutine(item) or isinstance(item, (type, functools.partial)):
        return item
    for method in ("execute", "run"):
        if callable(found := getattr(item, method, None)):
            try:
                return parameters.by_name(found, item)
            except ValueError as problem:
                raise InvalidRequest(f"the tool `{bounded(name, 80)}`: {problem}") from None
    return item  # type: ignore[no-any-return]


def _described(item: Any) -> str:
    said = getattr(item, "description", None)
    if not isinstance(said, str):
        function = isinstance(item, (functools.partial, type)) or inspect.isroutine(item)
        said = (
            inspect.getdoc(item.func if isinstance(item, functools.partial) else item) if function else None
        )
    return bounded(inspect.cleandoc(said or ""), _MOST_DESCRIPTION)


def _touch(tool: str, said: Any) -> Intent:
    """One act that a tool says it does, in canonical form."""
    action, _, target = str(said).strip().partition(" ")
    if action not in ACTIONS or action in ("run", "tool"):
        raise InvalidRequest(
            f"the tool `{tool}` touches `{bounded(str(said), 80)}`, which is nothing that a tool can touch",
            advice="write `network HOST:PORT`, `read PATH`, `write PATH` or `shell`",
        )
    known: Action = action
    if known in ("read", "write") and not _is_absolute(target.strip()):
        raise InvalidRequest(
            f"the tool `{tool}` touches `{bounded(str(said), 80)}`, whose path depends on the directory",
            advice="write an absolute path",
        )
    try:
        return Intent(known, canonical_target(known, target.strip(), base="/"), when="call")
    except ValueError as problem:
        raise InvalidRequest(f"the tool `{tool}` touches `{bounded(str(said), 80)}`: {problem}") from None


def _is_absolute(path: str) -> bool:
    return path.startswith(("/", "~", "\\")) or path[1:2] == ":"
