"""The guest's side: runs the code and reports its value or its error over the private channel.

It runs in the child, sent by the host. Rules this module keeps:

- the code runs in a clean `__main__`, compiled from text, so that an encoding cookie means nothing;
- the value of a final expression statement, or the uncaught exception, is reported once, by the process
  that was started and by no fork of it;
- an uncaught exception is printed to standard error as CPython prints it, and the exit code is 1;
- after that the interpreter shuts down as usual: threads are joined, exit handlers run, files are flushed.
"""

from __future__ import annotations

import sys

if sys.platform == "win32":
    import nt as posix
else:
    import posix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any

CODE_NAME = "<code>"
ONLY_AST = 0x400
PARSER_ROOM = 8 << 20
MESSAGE_LIMIT = 2000
REPR_LIMIT = 10_000


def enter(settings: dict[str, Any], modules: dict[str, dict[str, Any]]) -> None:
    """Start keeper and guest, and in the guest do what `settings` asks for."""
    write = modules["encode"]["write"]
    try:
        applied = modules["keeper"]["start"](settings)
        send(settings["channel"], write({"ready": applied}))
        _restore_locale(settings["locale"])
        if settings["argv"]:
            posix.execve(settings["argv"][0], settings["argv"], posix.environ)
    except OSError as problem:
        send(settings["channel"], write({"failed": problem.strerror}))
        posix._exit(1)
    run(settings, _values(settings, modules))


def _restore_locale(given: bytes | None) -> None:
    """Undo what CPython does to LC_CTYPE where the locale is `C` or unset."""
    if sys.platform == "win32":
        return  # where it does nothing of the kind
    if given is None:
        posix.unsetenv(b"LC_CTYPE")
        posix.environ.pop(b"LC_CTYPE", None)
    else:
        posix.putenv(b"LC_CTYPE", given)
        posix.environ[b"LC_CTYPE"] = given


def _values(settings: dict[str, Any], modules: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The functions of `licet.values` that were sent along."""
    show, encode = modules["show"]["repr_bounded"], modules["encode"]["encode"]
    nodes, depth, size = settings["budget"]
    return {
        "decode": modules["decode"]["decode"],
        "encode": lambda value: encode(value, nodes, depth, size, show),
        "repr_bounded": show,
        "type_name": modules["encode"]["type_name"],
        "write": modules["encode"]["write"],
    }


def send(channel: int, text: str) -> None:
    """Write one frame; a channel that the code closed or broke carries nothing any more."""
    data = text.encode("ascii")
    data = len(data).to_bytes(4, "big") + data
    try:
        while data:
            data = data[posix.write(channel, data) :]
    except OSError:
        pass


def run(settings: dict[str, Any], values: dict[str, Any]) -> None:
    """Run the code of `settings`; ends by returning or by `SystemExit`."""
    report = Reporter(settings["channel"], settings["frame_limit"], values)
    names = sys.modules["__main__"].__dict__
    names.clear()
    names.update(__name__="__main__", __builtins__=sys.modules["builtins"], __doc__=None, __package__=None)
    names.update(values["decode"](settings["inputs"], tuple, tuple))
    sys.argv = [CODE_NAME]
    if settings["recursion"] is not None:
        sys.setrecursionlimit(settings["recursion"])
    try:
        try:
            body, last = _compile(settings)
        except (MemoryError, RecursionError):
            bytearray(PARSER_ROOM)  # raises again where it is memory that was missing
            raise SyntaxError("the code is too complex for the parser") from None
        exec(body, names)
        value = None if last is None else eval(last, names)
    except SystemExit:
        raise
    except BaseException as problem:
        report.error(problem)
        _print(problem)
        sys.exit(1)
    report.value(value)


def _compile(settings: dict[str, Any]) -> tuple[CodeType, CodeType | None]:
    """Compile the code and its final expression; the host has split them, unless it chose not to."""
    if settings["last"] is not None:
        body = compile(settings["code"], CODE_NAME, "exec", dont_inherit=True)
        return body, compile(settings["last"], CODE_NAME, "eval", dont_inherit=True)
    if not settings["split_here"]:
        return compile(settings["code"], CODE_NAME, "exec", dont_inherit=True), None
    import _ast

    tree = compile(settings["code"], CODE_NAME, "exec", ONLY_AST, dont_inherit=True)
    last = tree.body.pop() if tree.body and type(tree.body[-1]) is _ast.Expr else None
    body = compile(tree, CODE_NAME, "exec", dont_inherit=True)
    if last is None:
        return body, None
    return body, compile(_ast.Expression(last.value), CODE_NAME, "eval", dont_inherit=True)


class Reporter:
    """Writes the one frame that says what came of the code."""

    def __init__(self, channel: int, limit: int, values: dict[str, Any]) -> None:
        self._channel = channel
        self._limit = limit
        self._values = values
        self._process = posix.getpid()

    def value(self, value: object) -> None:
        """Report the value of the final expression; nothing if it is None."""
        if value is None:
            return
        show, write = self._values["repr_bounded"], self._values["write"]
        try:
            text = write({"value": self._values["encode"](value), "repr": show(value, REPR_LIMIT)})
            if len(text) > self._limit:
                omitted = {"$type": "omitted", "reason": "budget", "count": None}
                text = write({"value": omitted, "repr": show(value, REPR_LIMIT)})
        except BaseException:  # whatever a hostile type raises; memory may be short as well
            text = '{"value":{"$type":"omitted","reason":"error","count":null},"repr":"<no repr>"}'
        self._send(text)

    def error(self, problem: BaseException) -> None:
        """Report an exception: the name of its type, its text, the last line of the code it passed."""
        try:
            kind = self._values["type_name"](type(problem)).rpartition(".")[2]
            fields = {"type": kind, "message": _message(problem), "line": _line(problem)}
            self._send(self._values["write"]({"error": fields}))
        except BaseException:
            self._send('{"error":{"type":"MemoryError","message":"no memory to tell the error","line":null}}')

    def _send(self, text: str) -> None:
        if posix.getpid() == self._process:
            send(self._channel, text)


def _message(problem: BaseException) -> str:
    try:
        text = problem.msg if isinstance(problem, SyntaxError) and problem.msg else str(problem)
        text = str.__str__(text)
    except BaseException:
        return "<no message: its text could not be made>"
    return text if len(text) <= MESSAGE_LIMIT else text[: MESSAGE_LIMIT - 1] + "…"


def _line(problem: BaseException) -> int | None:
    line = None
    trace = problem.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == CODE_NAME:
            line = trace.tb_lineno
        trace = trace.tb_next
    if isinstance(problem, SyntaxError) and problem.filename == CODE_NAME and type(problem.lineno) is int:
        return problem.lineno
    return line


def _print(problem: BaseException) -> None:
    """Print the traceback through the hook of the code, if it set one, without the frames of this module."""
    trace = problem.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != CODE_NAME:
        trace = trace.tb_next
    try:
        sys.excepthook(type(problem), problem.with_traceback(trace), trace)
    except BaseException:
        sys.__excepthook__(*sys.exc_info())
