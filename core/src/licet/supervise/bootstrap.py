"""What the host sends to a new interpreter: the command line, and messages that make it keeper and guest.

Rules this module keeps:

- the flags isolate: no environment variable, no user site, no `site`, no current directory on the path;
- messages travel from host to child only, so that `marshal` is safe here, as it is not the other way;
- the final expression is found by the host, where a parser costs the run nothing, but only where no text of
  the code can make that parser slow or talkative; else the guest looks.
"""

from __future__ import annotations

import ast
import marshal
import math
import os
import re
import sys
from collections.abc import Container
from functools import cache
from importlib import resources
from typing import Any

from licet import values
from licet.supervise.spec import INTERPRETER, Program, Snippet, Spec

_Modules = tuple[tuple[str, str, str], ...]

FLAGS = ("-I", "-S", "-B", "-u", "-X", "utf8")
FRAME_LIMIT = 4 << 20
CALL_LIMIT = FRAME_LIMIT + (64 << 10)
"""What a frame may have of a run with tools: more than `FRAME_LIMIT` for arguments, with their envelope."""
BUDGET = (100_000, 100, 2 << 20)
SPLIT_LIMIT = 64 << 10


def _framed(text: str) -> bytes:
    """A frame of the private channel."""
    return len(text).to_bytes(4, "big") + text.encode("ascii")


HELLO = _framed('{"begun":true}')
NO_MEMORY = {
    "value": _framed('{"value":{"$type":"omitted","reason":"error","count":null},"repr":"<no repr>"}'),
    "error": _framed('{"error":{"type":"MemoryError","message":"no memory to tell the error","line":null}}'),
}

LOADER = """\
import marshal, sys
def read(fd, size):
    data = b""
    while len(data) < size:
        data += system.read(fd, size - len(data)) or sys.exit()
    return data
def unpack(modules, loads=marshal.loads, run=exec, natives=vars(__builtins__).copy()):
    spaces = {}
    for name, code in loads(modules):
        spaces[name] = {"__name__": name, "__builtins__": natives}
        run(code, spaces[name])
    return spaces
def start(fd):
    while fd:
        main, settings = marshal.loads(read(fd, int.from_bytes(read(fd, 8), "big")))
        modules = unpack(main) or {"main": modules["next"]}
        modules["loader"] = {"read": read, "unpack": unpack, "orders": fd}
        fd = modules["main"]["main"](settings, modules)
"""
"""Goes between an import of the system's own module as `system` and a call of `start`.

A message without modules is for the one that an earlier message brought as `next`.
"""

_LOADER = f"import posix as system\n{LOADER}start(int(sys.argv[1]))\n"
_USED = ("used", "licet.supervise", "_used.py")
_KEEPER = (("walls", "licet.supervise", "_walls.py"), _USED, ("main", "licet.supervise", "_keeper.py"))
_LASTING_KEEPER = (*_KEEPER, ("standby", "licet.supervise", "_standby.py"))
_GUEST = (("main", "licet.supervise", "_guest.py"),)
_DECODE = (("decode", "licet.values", "_decode.py"),)
_REPORT = (
    ("show", "licet.values", "_show.py"),
    ("encode", "licet.values", "_encode.py"),
    ("report", "licet.supervise", "_report.py"),
)
_TOOLS = (("tools", "licet.supervise", "_tools.py"),)
_CROSSING = (*_REPORT[:2], *_DECODE)
_MAY_WARN = re.compile(r"\\|[0-9]_*[A-Za-z]")


def command(interpreter: str, *ends: int) -> list[str]:
    """Return the command line of an isolated interpreter that reads its orders from the first of `ends`."""
    return [interpreter, *FLAGS, "-c", _LOADER, *map(str, ends)]


def keeper_message(spec: Spec, *, fresh: bool, idle: float | None) -> bytes:
    """Return what makes a `fresh` interpreter the keeper of a run, or gives a keeper its next one.

    With `idle`, it waits for so many seconds after the run, and the code gets another interpreter; else the
    code goes on in a fork of this one.
    """
    argv = list(spec.work.argv) if isinstance(spec.work, Program) else None
    if argv is None and idle is not None:
        argv = command(spec.interpreter)
    settings = {
        "limits": limits(spec),
        "confine_signals": spec.confine_signals,
        "argv": argv,
        "environment": dict(spec.environment),
        "reports": isinstance(spec.work, Snippet),
        "standby": idle,
    }
    if not fresh:
        return _frame(marshal.dumps(settings))
    modules, interpreter = (_KEEPER, spec.interpreter) if idle is None else (_LASTING_KEEPER, sys.executable)
    return pack(modules, interpreter, settings)


def guest_message(spec: Spec) -> bytes:
    """Return what the guest has to do; nothing if it is a program, which reads no messages.

    Raises:
        ValueError: an input can't cross.
    """
    if isinstance(spec.work, Program):
        return b""
    work, known = spec.work, _is_own(spec.interpreter)
    values.check_crossing(work.inputs)
    code, result, undecided = keep_result(work.code, {*work.inputs, *work.tools})
    locale = spec.environment.get("LC_CTYPE")
    settings = {
        "hello": HELLO,
        "locale": None if locale is None else os.fsencode(locale),
        "code": code,
        "result": result,
        "undecided": undecided,
        "inputs": values.encode(work.inputs) if work.inputs else None,
        "decode": _load(_DECODE, known) if work.inputs else None,
        "recursion": work.recursion,
        "packages": work.packages,
        "report": _load(_REPORT, known),
        "no_memory": NO_MEMORY,
        "frame_limit": FRAME_LIMIT,
        "budget": BUDGET,
        "leaves": spec.jail is not None,
        "tools": None,
    }
    if work.tools:
        budget = values.DEFAULT
        settings |= {
            "tools": _load(_TOOLS, known),
            "tool_names": tuple(work.tools.items()),
            "crossing": _load(_CROSSING, known),
            "call_budget": (budget.nodes, budget.depth, budget.bytes),
            "call_limit": FRAME_LIMIT,
        }
    return pack(_GUEST if spec.jail is None else (), spec.interpreter, settings)


def pack(modules: _Modules, interpreter: str, settings: dict[str, Any]) -> bytes:
    """Return `modules` and `settings` as an `interpreter` takes them that was started by `command`."""
    return _frame(marshal.dumps((_load(modules, _is_own(interpreter)), settings)))


def _frame(data: bytes) -> bytes:
    return len(data).to_bytes(8, "big") + data


def keep_result(code: str, taken: Container[str] = ()) -> tuple[str, str, bool]:
    """Give the value of the final expression statement of `code` a name.

    Returns code that assigns it, every line where it was, if there is such a statement; the name, which
    occurs neither in the code nor in `taken`; and whether the question was left to the guest. Never raises,
    never warns.
    """
    result = "_result"
    while result in code or result in taken:
        result += "_"
    if len(code) > SPLIT_LIMIT or _MAY_WARN.search(code):
        return code, result, True
    try:
        statements = ast.parse(code).body
        lines = code.replace("\r\n", "\n").replace("\r", "\n").encode().split(b"\n")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return code, result, True
    last = statements[-1] if statements else None
    if not isinstance(last, ast.Expr) or last.end_lineno is None:
        return code, result, False
    first, end = last.lineno - 1, last.end_lineno - 1
    lines[end] = lines[end][: last.end_col_offset] + b"\n)"
    lines[first] = b"%s%s = (%s" % (
        lines[first][: last.col_offset],
        result.encode(),
        lines[first][last.col_offset :],
    )
    return b"\n".join(lines[: end + 1]).decode(), result, False


def limits(spec: Spec) -> dict[int, tuple[int, int]]:
    """Resource limits of each process, by the system's number; a second more to die of the hard one."""
    import resource

    found: dict[int, tuple[int, int]] = {}
    if spec.cpu_time is not None:
        seconds = max(math.ceil(spec.cpu_time), 1)
        found[resource.RLIMIT_CPU] = (seconds, seconds + 1)
    if spec.memory is not None:
        found[resource.RLIMIT_AS] = (spec.memory, spec.memory)
    return found


@cache
def _is_own(interpreter: str) -> bool:
    """Whether this process runs in that interpreter too, by whichever name, so that it can compile for it."""
    return os.path.realpath(interpreter) == os.path.realpath(INTERPRETER)


@cache
def _load(modules: _Modules, same_interpreter: bool) -> bytes:
    """The modules to send: compiled for this very interpreter, else as text."""
    sent: list[tuple[str, Any]] = []
    for name, package, file in modules:
        text = (resources.files(package) / file).read_text("utf-8")
        code = compile(text, f"<licet {name}>", "exec", optimize=2) if same_interpreter else text
        sent.append((name, code))
    return marshal.dumps(sent)
