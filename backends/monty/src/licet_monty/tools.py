"""What passes between a tool and the code: arguments that may leave, replies that come back.

Rules this module keeps:

- only plain data leaves: arguments come as text (see `prelude`), and of what has no wire form, or was left
  out for its size, the host hears only why the call is refused;
- an error of a tool arrives as the nearest exception that Monty knows, its own name in the message.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, get_args

from licet import values
from licet.backend import GuestError, ToolCall

from licet_monty.wire import read

if TYPE_CHECKING:
    from pydantic_monty import ExternalSettledResult

_BUDGET = values.DEFAULT
_LOSSES = {
    "cycle": "contain themselves",
    "depth": f"are nested deeper than {_BUDGET.depth} levels",
    "budget": f"are too much: at most {_BUDGET.nodes} values and {_BUDGET.bytes} bytes of text can be passed",
}


def read_call(name: str, line: str, arguments: str) -> ToolCall:
    """Return the call that the sandbox wrote down; one that is refused if its arguments can't leave."""
    known = int(line) if line.isdecimal() and line != "0" else None
    try:
        args, kwargs = _arguments(arguments)
    except ValueError as why:
        refused = f"the arguments of {name}() {why}; pass numbers, texts, lists, dicts"
        return ToolCall(name, line=known, refused=refused)
    return ToolCall(name, args, kwargs, known)


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


def undefined(name: str) -> ExternalSettledResult:
    """Say that a name is not defined, as CPython does."""
    return {"exc_type": "NameError", "message": f"name {name!r} is not defined"}


def unanswerable(name: str, why: object) -> ExternalSettledResult:
    """Say in the code that the reply of a tool can't enter the sandbox."""
    return {"exc_type": "TypeError", "message": f"{name}() returned what can't enter the sandbox: {why}"}


def raised(error: GuestError) -> ExternalSettledResult:
    """Return the exception that a tool's error is in the code."""
    if error.type in _known():
        return {"exc_type": error.type, "message": error.message}  # type: ignore[typeddict-item]
    return {"exc_type": "RuntimeError", "message": f"{error.type}: {error.message}"}


@cache
def _known() -> frozenset[str]:
    import pydantic_monty

    fatal = {"SystemExit", "KeyboardInterrupt", "BaseException", "MemoryError", "StopIteration"}
    return frozenset(get_args(pydantic_monty.ExcType)) - fatal
