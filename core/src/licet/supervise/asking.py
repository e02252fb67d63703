"""What a run may ask of its caller while it goes on, and the courier by which it does."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from licet.supervise.calling import OnCall
from licet.supervise.courier import Courier

Connect = Callable[[str, int], Coroutine[Any, Any, int]]
"""Returns a connected descriptor for a host and a port, or raises `OSError`; anything else ends the run."""


@dataclass(frozen=True, slots=True)
class Asking:
    """`connect` and `on_call` are called on the loop of the `courier`."""

    courier: Courier
    connect: Connect | None = None
    on_call: OnCall | None = None
