"""Tools as Monty's code sees them: names it may call, arguments that may leave, replies that come back.

Rules this module keeps:

- only plain data leaves: an argument of a class of the code's own is refused in the code, with advice, before
  anything on the host looks at it (its repr and its equality may walk without end);
- an error of a tool arrives as the nearest exception that Monty knows, its own name in the message.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, get_args

from licet import values
from licet.backend import GuestError

if TYPE_CHECKING:
    from pydantic_monty import ExternalSettledResult

_CONTAINERS = (list, tuple, set, frozenset)
_PLAIN = frozenset(
    {type(None), bool, int, float, complex, str, bytes}
    | {datetime.date, datetime.time, datetime.datetime, datetime.timedelta, decimal.Decimal}
)


def stand_in(name: str) -> Callable[..., None]:
    """Return what stands for a tool that the code reads without calling it; Monty calls it by its name."""

    def tool() -> None:
        """Never called: Monty surfaces each call."""

    tool.__name__ = tool.__qualname__ = name
    return tool


def why_refused(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str | None:
    """Return why arguments can't leave the sandbox, None if they can."""
    left = values.DEFAULT.nodes
    pending: list[Any] = [*args, *kwargs.values()]
    while pending:
        item = pending.pop()
        left -= 1
        if left < 0:
            return f"are more than {values.DEFAULT.nodes} values"
        kind = type(item)
        if kind in _CONTAINERS:
            pending.extend(item)
        elif kind is dict:
            pending.extend(item)
            pending.extend(item.values())
        elif kind not in _PLAIN:
            return f"hold a `{getattr(item, 'name', kind.__name__)}`, which is no plain data"
    return None


def refused(name: str, why: str) -> ExternalSettledResult:
    """Say in the code that a call did not happen."""
    return {
        "exc_type": "TypeError",
        "message": f"the arguments of {name}() {why}; pass numbers, texts, lists, dicts",
    }


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
