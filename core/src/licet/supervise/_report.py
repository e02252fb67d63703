"""What came of the code: its value or its uncaught exception, told once over the private channel.

It runs in the guest, sent by the host. Rules this module keeps:

- only the process that was started reports, and no fork of it;
- whatever a hostile type does, or memory that is short, ends in a report, if a poorer one.
"""

from __future__ import annotations

import sys

if sys.platform == "win32":
    import nt as posix
else:
    import posix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, TracebackType
    from typing import Any

PARSER_ROOM = 8 << 20
MESSAGE_LIMIT = 2000
REPR_LIMIT = 10_000


class Reporter:
    """Writes the one frame that the host waits for."""

    def __init__(
        self,
        channel: int,
        process: int,
        settings: dict[str, Any],
        values: dict[str, dict[str, Any]],
        sending: Any,
    ) -> None:
        self._sending = sending  # held by whoever writes to the channel
        self._channel = channel
        self._process = process
        self._limit = settings["frame_limit"]
        self._budget = settings["budget"]
        self._show = values["show"]["repr_bounded"]
        self._encode = values["encode"]["encode"]
        self._type_name = values["encode"]["type_name"]
        self._write = values["encode"]["write"]

    def value(self, value: object) -> None:
        """Report the value of the final expression."""
        try:
            tree = self._encode(value, *self._budget, self._show)
            text = self._write({"value": tree, "repr": self._show(value, REPR_LIMIT)})
            if len(text) > self._limit:
                omitted = {"$type": "omitted", "reason": "budget", "count": None}
                text = self._write({"value": omitted, "repr": self._show(value, REPR_LIMIT)})
        except BaseException:  # whatever a hostile type raises; memory may be short as well
            text = '{"value":{"$type":"omitted","reason":"error","count":null},"repr":"<no repr>"}'
        self._send(text)

    def error(self, problem: BaseException, code: str, names: dict[str, Any]) -> None:
        """Report and print an exception: its type, its text, the last line of the code that it passed."""
        problem = _blame_parser(problem, names)
        trace = _enter(problem, names)
        try:
            kind = self._type_name(type(problem)).rpartition(".")[2]
            fields = {"type": kind, "message": _message(problem), "line": _line(problem, trace, code)}
            self._send(self._write({"error": fields}))
        except BaseException:
            self._send('{"error":{"type":"MemoryError","message":"no memory to tell the error","line":null}}')
        _print(problem, trace)

    def _send(self, text: str) -> None:
        """Write the frame; a channel that the code closed or broke carries nothing any more."""
        if posix.getpid() != self._process:
            return
        data = text.encode("ascii")
        data = len(data).to_bytes(4, "big") + data
        try:
            with self._sending:
                while data:
                    data = data[posix.write(self._channel, data) :]
        except OSError:
            pass


def _blame_parser(problem: BaseException, names: dict[str, Any]) -> BaseException:
    """Tell code that no parser can take from code that runs out of memory or stack."""
    if not isinstance(problem, MemoryError | RecursionError) or _enter(problem, names) is not None:
        return problem
    try:
        bytearray(PARSER_ROOM)
    except MemoryError as short:
        return short
    return SyntaxError("the code is too complex for the parser")


def _enter(problem: BaseException, names: dict[str, Any]) -> TracebackType | None:
    """The traceback from the first frame of the code on."""
    trace = problem.__traceback__
    while trace is not None and trace.tb_frame.f_globals is not names:
        trace = trace.tb_next
    return trace


def _message(problem: BaseException) -> str:
    try:
        text = problem.msg if isinstance(problem, SyntaxError) and problem.msg else str(problem)
        text = str.__str__(text)
    except BaseException:
        return "<no message: its text could not be made>"
    return text if len(text) <= MESSAGE_LIMIT else text[: MESSAGE_LIMIT - 1] + "…"


def _line(problem: BaseException, trace: TracebackType | None, code: str) -> int | None:
    """The last line of the code that the exception passed; text that the code ran is not the code."""
    if trace is None:
        line = problem.lineno if isinstance(problem, SyntaxError) else None
        return line if type(line) is int else None
    line, own = trace.tb_lineno, _places(code)
    while (trace := trace.tb_next) is not None:
        if _place(trace.tb_frame.f_code) in own:
            line = trace.tb_lineno
    return line


def _places(code: str) -> set[tuple[object, ...]]:
    """The functions that `code` itself defines, and where."""
    try:
        found = [compile(code, "<string>", "exec", dont_inherit=True)]
    except BaseException:  # no memory or stack is left for it
        return set()
    for each in found:
        found += [part for part in each.co_consts if type(part) is type(each)]
    return {_place(each) for each in found}


def _place(code: CodeType) -> tuple[object, ...]:
    return code.co_qualname, code.co_firstlineno, code.co_linetable


def _print(problem: BaseException, trace: TracebackType | None) -> None:
    """Print the traceback through the hook of the code, if it set one, without the frames of this module."""
    try:
        sys.excepthook(type(problem), problem.with_traceback(trace), trace)
    except BaseException:
        sys.__excepthook__(*sys.exc_info())
