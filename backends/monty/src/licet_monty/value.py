"""The value of a run: asked of the session as text, and read on the host as text of an enemy.

Rules this module keeps:

- only text crosses (see `trailing` for why), at most `MOST_TEXT` of it, in the wire form of `licet.values`;
- nothing that the code does to the names used here makes the host fail;
- a value that can't be written within the limits of the run ends the run as any other code would.
"""

from __future__ import annotations

import contextlib
from typing import Any

from licet import handover, values

from licet_monty.encoder import ENCODER, TYPES
from licet_monty.trailing import VALUE, Kept

REPR_LIMIT = 10_000
_BUDGET = values.DEFAULT
_MOST_TEXT = 16 * _BUDGET.bytes

INPUTS: dict[str, Any] = {"__licet_types__": TYPES}
"""The inputs that `QUESTION` needs."""

QUESTION = f"""{ENCODER}
__licet_text__ = __licet_encode__({VALUE}, {_BUDGET.nodes}, {_BUDGET.depth}, {_BUDGET.bytes}, __licet_types__)
f"{{__licet_text__:.{_MOST_TEXT}}}"
"""
"""Code that asks a session for the value that the code before it kept."""


def read(text: object) -> Kept:
    """Read the value that the sandbox wrote; opaque if the code has tampered with what writes it."""
    value: Any = values.Opaque("unknown", "<a value that can't be read>")
    if isinstance(text, str):
        with contextlib.suppress(ValueError):
            value = handover.read(text)
    return Kept(value, _show(value))


def _show(value: Any) -> str | None:
    """Return the repr of a value, bounded; None for None."""
    if value is None:
        return None
    return value.repr if isinstance(value, values.Opaque) else values.repr_bounded(value, REPR_LIMIT)
