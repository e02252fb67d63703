"""What the host sends to a new interpreter: the command line, and one message that makes it keeper and guest.

Rules this module keeps:

- the flags isolate: no environment variable, no user site, no `site`, no current directory on the path;
- the message travels from host to child only, so that `marshal` is safe here, as it is not the other way;
- the final expression is split off by the host, where a parser costs the run nothing, but only where no
  text of the code can make that parser slow or talkative; else the guest splits.
"""

from __future__ import annotations

import ast
import marshal
import math
import os
import re
import sys
from functools import cache
from importlib import resources
from typing import Any

from licet import values
from licet.supervise.spec import Program, Snippet, Spec

FLAGS = ("-I", "-S", "-B", "-u", "-X", "utf8")
FRAME_LIMIT = 4 << 20
BUDGET = (100_000, 100, 2 << 20)
SPLIT_LIMIT = 64 << 10

_LOADER = """\
import marshal, posix, sys
def read(fd, size):
    data = b""
    while len(data) < size:
        piece = posix.read(fd, size - len(data))
        if not piece:
            posix._exit(0)
        data += piece
    return data
def load(fd):
    modules, settings = marshal.loads(read(fd, int.from_bytes(read(fd, 8), "big")))
    spaces = {name: {"__name__": name} for name, code in modules}
    for name, code in modules:
        exec(code, spaces[name])
    return spaces, settings
def start():
    spaces, settings = load(int(sys.argv[1]))
    spaces["guest"]["enter"](settings, spaces)
start()
"""
_SENT = (
    ("show", "licet.values", "_show.py"),
    ("encode", "licet.values", "_encode.py"),
    ("decode", "licet.values", "_decode.py"),
    ("keeper", "licet.supervise", "_keeper.py"),
    ("guest", "licet.supervise", "_guest.py"),
)
_MAY_WARN = re.compile(r"\\|[0-9]_*[A-Za-z]")


def command(interpreter: str, control: int) -> list[str]:
    """Return the command line of an isolated interpreter that reads its message from `control`."""
    return [interpreter, *FLAGS, "-c", _LOADER, str(control)]


def message(spec: Spec, *, host: int, control: int, channel: int, workdir: int) -> bytes:
    """Return what the new interpreter reads first; the numbers are its descriptors and the host's pid.

    Raises:
        ValueError: an input can't cross.
    """
    settings: dict[str, Any] = {
        "host": host,
        "control": control,
        "channel": channel,
        "workdir": workdir,
        "limits": _limits(spec),
        "confine_signals": spec.confine_signals,
        "locale": os.fsencode(locale) if (locale := spec.environment.get("LC_CTYPE")) is not None else None,
        "frame_limit": FRAME_LIMIT,
        "budget": BUDGET,
        "argv": list(spec.work.argv) if isinstance(spec.work, Program) else None,
    }
    if isinstance(spec.work, Snippet):
        settings |= snippet_settings(spec.work)
    data = marshal.dumps((load_modules(_SENT, spec.interpreter == sys.executable), settings))
    return len(data).to_bytes(8, "big") + data


def snippet_settings(work: Snippet) -> dict[str, Any]:
    """What the guest is told of its code."""
    values.check_crossing(work.inputs)
    body, last, undecided = split(work.code)
    return {
        "code": body,
        "last": last,
        "split_here": undecided,
        "inputs": values.encode(work.inputs),
        "recursion": work.recursion,
    }


def split(code: str) -> tuple[str, str | None, bool]:
    """Split off the final expression statement of `code`.

    Returns the code before it, and the expression in a form that keeps its line numbers, or None if there is
    none; the flag says that the question was left to the guest. Never raises, never warns.
    """
    if len(code) > SPLIT_LIMIT or _MAY_WARN.search(code):
        return code, None, True
    try:
        statements = ast.parse(code).body
        lines = code.replace("\r\n", "\n").replace("\r", "\n").encode().split(b"\n")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return code, None, True
    last = statements[-1] if statements else None
    if not isinstance(last, ast.Expr) or last.end_lineno is None:
        return code, None, False
    first, end = last.lineno - 1, last.end_lineno - 1
    text = lines[first : end + 1]
    text[-1] = text[-1][: last.end_col_offset]
    text[0] = text[0][last.col_offset :]
    body = b"\n".join([*lines[:first], lines[first][: last.col_offset]]).decode()
    # a complete statement ends in neither: what goes is a separator, or the end of a comment
    return body.rstrip(" \t\n\f;\\"), "\n" * first + "(" + b"\n".join(text).decode() + "\n)", False


def _limits(spec: Spec) -> dict[int, tuple[int, int]]:
    """Resource limits of each process, by the system's number; a second more to die of the hard one."""
    import resource

    limits: dict[int, tuple[int, int]] = {}
    if spec.cpu_time is not None:
        seconds = max(math.ceil(spec.cpu_time), 1)
        limits[resource.RLIMIT_CPU] = (seconds, seconds + 1)
    if spec.memory is not None:
        limits[resource.RLIMIT_AS] = (spec.memory, spec.memory)
    return limits


@cache
def load_modules(modules: tuple[tuple[str, str, str], ...], same_interpreter: bool) -> list[tuple[str, Any]]:
    """The modules to send (name, package, file): compiled for this very interpreter, else as text."""
    sent: list[tuple[str, Any]] = []
    for name, package, file in modules:
        text = (resources.files(package) / file).read_text("utf-8")
        sent.append((name, compile(text, f"<licet {name}>", "exec") if same_interpreter else text))
    return sent
