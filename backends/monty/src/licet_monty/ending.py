"""How a run ended: Monty's errors as licet's terminations.

Rules this module keeps:

- a limit is told from code that imitates one by what only Monty knows or does (see `bounds`);
- what licet stopped itself ended for the reason it was stopped for, whatever Monty says of it;
- a worker is used again only where Monty leaves it sound: after a value, or an exception of the code's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from licet.backend import GuestError, Termination
from licet.output import bounded

from licet_monty.bounds import Bounds
from licet_monty.lacks import member_lacked
from licet_monty.prelude import FEED, LATER_CALL, NOW_CALL, Known

if TYPE_CHECKING:
    from pydantic_monty import Frame

MOST_MESSAGE = 4000
_LACKS = "Monty, the Python subset that ran this, lacks it: "
_INTERNAL = "Internal error in monty: "
_TOO_LARGE = ("result frame of ", "argument frame of ")
_SYNCHRONOUS = "cannot suspend in this synchronous context"
_SAY_IT_OTHERWISE = (
    "{what} in a loop or a comprehension, not from inside map, sorted or filter, "
    "nor in a method such as __repr__"
)
_A_TOOL = f"a tool {_SYNCHRONOUS}"


@dataclass(frozen=True, slots=True)
class Ending:
    """Why a run ended; `sound`: its worker may serve another run; `stderr` is still to be written."""

    termination: Termination
    exit_code: int | None = None
    error: GuestError | None = None
    detail: str | None = None
    sound: bool = False
    stderr: str = ""


def of(problem: Exception, bounds: Bounds, known: Known) -> Ending:
    """Return how a run ended that raised `problem`, one of Monty's; `known` is what its session was given."""
    import pydantic_monty

    if isinstance(problem, pydantic_monty.MontySyntaxError):
        return _failed("SyntaxError", problem.display("msg"), problem.traceback())
    if isinstance(problem, pydantic_monty.MontyRuntimeError):
        shown = problem.display("type-msg")
        kind, message = _kind(shown, problem.display("msg"))
        if kind == "NotImplementedError" and message.endswith(_SYNCHRONOUS):
            message = _A_TOOL if NOW_CALL in message or LATER_CALL in message else message
        frames = problem.traceback()
        own = [frame for frame in frames if frame.filename != FEED] if known.trusted else frames
        return _raised(kind, message, shown, own, bounds, framed=bool(frames))
    if isinstance(problem, pydantic_monty.MontyCrashedError):
        if problem.timed_out:
            return Ending(
                bounds.interpreter_cause, detail="the interpreter overran its time in one operation"
            )
        return Ending(Termination.backend_lost, detail=f"the worker died: {problem}")
    if isinstance(problem, pydantic_monty.MontyConversionError):
        return Ending(Termination.backend_error, detail=f"an input can't cross into Monty: {problem}")
    return Ending(Termination.backend_lost, detail=f"the worker can't be understood: {problem}")


def _raised(
    kind: str, message: str, shown: str, frames: list[Frame], bounds: Bounds, *, framed: bool
) -> Ending:
    limit = bounds.cause(kind, message, framed=framed)
    if limit is not None:
        return Ending(limit, detail=message)
    if kind == "SystemExit":
        if shown == "SystemExit":
            return Ending(Termination.exited, exit_code=0, sound=True)
        return Ending(Termination.exited, exit_code=1, stderr=f"{message}\n", sound=True)
    if not framed and message.startswith(_INTERNAL):
        detail = _LACKS + message.removeprefix(_INTERNAL)
        return Ending(Termination.exited, exit_code=1, error=_error(kind, message, frames), detail=detail)
    if not framed and message.startswith(_TOO_LARGE):
        return Ending(Termination.memory_limit, detail=message)
    if not framed and kind == "UnicodeEncodeError":
        return Ending(Termination.backend_error, detail=f"an input can't cross into Monty: {message}")
    return _failed(kind, message, frames)


def _failed(kind: str, message: str, frames: list[Frame]) -> Ending:
    detail = None
    if kind == "NotImplementedError":
        if frames and frames[-1].function_name is None:
            detail = _LACKS + message
        elif message.endswith(_SYNCHRONOUS):
            what = "read the clock" if message.startswith("OS function ") else "call tools"
            detail = _SAY_IT_OTHERWISE.format(what=what)
    elif (lacked := member_lacked(kind, message)) is not None:
        detail = f"{_LACKS}`{lacked}`"
    error = _error(kind, message, frames)
    return Ending(Termination.exited, exit_code=1, error=error, detail=detail, sound=True)


def _error(kind: str, message: str, frames: list[Frame]) -> GuestError:
    own: list[Any] = [frame for frame in frames if not frame.filename.startswith("<string>")]
    line = own[-1].line if own else None
    return GuestError(kind.rpartition(".")[2], bounded(message, MOST_MESSAGE), line)


def _kind(shown: str, message: str) -> tuple[str, str]:
    """Split `type: message` at the place where the message that Monty gives alone starts."""
    if message or shown.endswith(": "):
        return shown[: len(shown) - len(message) - 2], message
    return shown, message
