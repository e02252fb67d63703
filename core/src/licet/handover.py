"""What passes between code and tools, on every backend: arguments that may leave, errors that come back.

Rules this module keeps:

- only plain data leaves: arguments come as text that code can have written, and of what has no wire form, or
  was left out for its size, the host hears only why the call is refused;
- what code can make the host build is bounded before it is read; that costs a few passes in C, and no more
  for text that was made to be hard;
- an error of a tool arrives as the nearest exception that every backend knows, its own name in the message.
"""

from __future__ import annotations

import builtins
import re
from typing import Any

from licet import values
from licet.backend import GuestError, ToolCall

_BUDGET = values.DEFAULT
_SHORT = 1 << 20
_MOST_PARTS = 12 * _BUDGET.nodes  # a member of a tagged container takes five, and six quotes
_PARTS = b"[{,"
_REST = bytes(set(range(256)) - {*_PARTS, *b'"'})
_TEXT = re.compile(rb'"[^"]*+"')
_LOSSES = {
    "cycle": "contain themselves",
    "depth": f"are nested deeper than {_BUDGET.depth} levels",
    "budget": f"are too much: at most {_BUDGET.nodes} values and {_BUDGET.bytes} bytes of text can be passed",
}

RAISED = frozenset(
    {
        "ArithmeticError", "AssertionError", "AttributeError", "Exception", "FileExistsError",
        "FileNotFoundError", "ImportError", "IndexError", "IsADirectoryError", "KeyError", "LookupError",
        "ModuleNotFoundError", "NameError", "NotADirectoryError", "NotImplementedError", "OSError",
        "OverflowError", "PermissionError", "RecursionError", "RuntimeError", "SyntaxError", "TimeoutError",
        "TypeError", "UnboundLocalError", "ValueError", "ZeroDivisionError",
    }
)  # fmt: skip
"""What a tool's error is raised as: its own type, or that which it is a kind of; else a `RuntimeError`."""


def read_call(name: str, line: int | None, arguments: str) -> ToolCall:
    """Return the call that a sandbox wrote down; one that is refused if its arguments can't leave.

    `arguments` is the list of positional ones and the mapping of the others, in wire form.
    """
    try:
        args, kwargs = _arguments(arguments)
    except ValueError as why:
        refused = f"the arguments of {name}() {why}; pass numbers, texts, lists, dicts"
        return ToolCall(name, line=line, refused=refused)
    return ToolCall(name, args, kwargs, line)


def undefined(name: str) -> GuestError:
    """Say that a name is not defined, as CPython does."""
    return GuestError("NameError", f"name {name!r} is not defined")


def unanswerable(name: str, why: object) -> GuestError:
    """Say in the code that the reply of a tool can't enter the sandbox."""
    return GuestError("TypeError", f"{name}() returned what can't enter the sandbox: {why}")


def raised(error: GuestError) -> GuestError:
    """The error of a tool as it is raised in the code."""
    if error.type in RAISED:
        return error
    own = getattr(builtins, error.type, None)
    kinds = (kind.__name__ for kind in own.__mro__[1:]) if isinstance(own, type) else ()
    near = next((kind for kind in kinds if kind in RAISED), "Exception")
    return GuestError("RuntimeError" if near == "Exception" else near, f"{error.type}: {error.message}")


def read(text: str) -> Any:
    """Return the value of a text in the wire form of `licet.values` that code can have written.

    Raises:
        ValueError: it is no wire form, or stands for more than any sandbox would write.
    """
    if len(text) > _SHORT and _parts(text) > _MOST_PARTS:
        raise ValueError("the text stands for too many values")
    return values.from_json(text)


def _arguments(text: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    try:
        given = read(text)
    except ValueError:
        raise ValueError("can't be read") from None
    _check(given)
    match given:
        case [list(args), dict(kwargs)] if all(type(key) is str for key in kwargs):
            return tuple(args), kwargs
    raise ValueError("can't be read")


def _check(given: Any) -> None:
    """Refuse a tree that holds a mark of something lost; it is as large as the text that it was read from."""
    pending = [given]
    while pending:
        item = pending.pop()
        if type(item) in (list, tuple, set, frozenset):
            pending.extend(item)
        elif type(item) is dict:
            pending.extend(item)
            pending.extend(item.values())
        elif type(item) is values.Opaque:
            raise ValueError(f"hold a `{item.type_name}`, which is no plain data")
        elif type(item) is values.Omitted:
            raise ValueError(_LOSSES.get(item.reason, "are too much"))


def _parts(text: str) -> int:
    """About how many values and keys a JSON text holds."""
    data = text.encode("utf-8", "replace").replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, _REST)
    quotes = data.count(b'"')
    if quotes > _MOST_PARTS:
        return quotes
    bare = _TEXT.sub(b"", data)
    return sum(bare.count(part) for part in _PARTS)
