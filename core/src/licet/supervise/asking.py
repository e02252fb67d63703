"""What a run may ask of its caller while it goes on, and the courier by which it does."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from licet.supervise.channel import Called
from licet.supervise.courier import Courier


@dataclass(frozen=True, slots=True)
class Answered:
    """What a call of a tool comes to.

    The `tree` of a value (see `licet.values`), or an `error`, which is the name of a built-in exception and
    a message; `last` ends the run instead.
    """

    tree: Any = None
    error: tuple[str, str] | None = None
    last: bool = False


OnCall = Callable[[Called], Coroutine[Any, Any, Answered]]
"""Answers a call of a tool; what it raises ends the run."""

Connect = Callable[[str, int], Coroutine[Any, Any, int]]
"""Returns a connected descriptor for a host and a port, or raises `OSError`; anything else ends the run."""


@dataclass(frozen=True, slots=True)
class Asking:
    """`on_call` and `connect` are called on the loop of the `courier`."""

    courier: Courier
    on_call: OnCall | None = None
    connect: Connect | None = None
