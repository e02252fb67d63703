"""What passes between a tool and the code, as Monty takes it (see `licet.handover`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from licet import handover
from licet.backend import GuestError, ToolCall

if TYPE_CHECKING:
    from pydantic_monty import ExternalSettledResult


def read_call(name: str, line: str, arguments: str) -> ToolCall:
    """Return the call that the sandbox wrote down; one that is refused if its arguments can't leave."""
    known = int(line) if line.isdecimal() and line != "0" else None
    return handover.read_call(name, known, arguments)


def undefined(name: str) -> ExternalSettledResult:
    """Say that a name is not defined, as CPython does."""
    return raised(handover.undefined(name))


def unanswerable(name: str, why: object) -> ExternalSettledResult:
    """Say in the code that the reply of a tool can't enter the sandbox."""
    return raised(handover.unanswerable(name, why))


def raised(error: GuestError) -> ExternalSettledResult:
    """Return the exception that a tool's error is in the code."""
    known = handover.raised(error)
    return {"exc_type": known.type, "message": known.message}  # type: ignore[typeddict-item]
