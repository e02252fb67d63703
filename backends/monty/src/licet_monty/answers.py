"""What a guest is told when it asks the system for something: environment, files, sleep, randomness, modules.

Rules this module keeps:

- the environment is the plan's, time and randomness are the host's, and nothing else is;
- files are asked of the host, and no file is there yet;
- only arguments whose type Monty itself has checked are read: any other could be a value that takes for ever
  to build here (see `trailing`); so `os.getenv` is answered from the text of its call.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from licet.backend import Access
from licet.operations import Operation, intents_of

if TYPE_CHECKING:
    from pydantic_monty import ExternalResult

MOST_RANDOM = 1 << 20
CLOCKS = frozenset({"time.time", "datetime.now", "date.today"})
SLEEPS = frozenset({"system.sleep", "time.sleep"})
ASYNC_SLEEPS = frozenset({"system.async_sleep", "asyncio.sleep"})

_OPERATIONS: Mapping[str, Operation] = {
    "Path.append_bytes": "write",
    "Path.append_text": "write",
    "Path.exists": "read",
    "Path.is_dir": "read",
    "Path.is_file": "read",
    "Path.is_symlink": "read",
    "Path.iterdir": "read",
    "Path.mkdir": "create",
    "Path.read_bytes": "read",
    "Path.read_text": "read",
    "Path.rename": "rename",
    "Path.resolve": "read",
    "Path.rmdir": "remove",
    "Path.scan": "read",
    "Path.stat": "read",
    "Path.unlink": "remove",
    "Path.write_bytes": "write",
    "Path.write_text": "write",
}


def file_accesses(name: str, args: tuple[Any, ...]) -> tuple[Access, ...]:
    """Return which accesses to files a system call makes; none if it is about anything else."""
    operation = _OPERATIONS.get(name)
    if name == "open":
        operation = "write" if len(args) > 1 and set(str(args[1])) & set("wax+") else "read"
    if operation is None:
        return ()
    paths = map(str, args[: 2 if operation == "rename" else 1])
    return tuple(Access(one.action, one.target or "") for one in intents_of(operation, *paths))


def refuse_file(target: str) -> ExternalResult:
    """Refuse a file, in words that help whoever reads them."""
    message = f"[Errno 13] Permission denied: {target!r} (no file is opened to this run)"
    return {"exc_type": "PermissionError", "message": message}


def missing_module(name: object) -> ExternalResult:
    """Say that a module is not there, as CPython does."""
    return {"exc_type": "ModuleNotFoundError", "message": f"No module named {str(name)!r}"}


def undefined(name: str) -> ExternalResult:
    """Say that a name is not defined, as CPython does."""
    return {"exc_type": "NameError", "message": f"name {name!r} is not defined"}


def getenv(call: str, environment: Mapping[str, str]) -> ExternalResult:
    """Answer `os.getenv` from the text of the call, whose arguments have to be literal texts (or None)."""
    arguments = _literals(call)
    if arguments is None:
        return {
            "exc_type": "NotImplementedError",
            "message": "os.getenv is answered here only for literal texts; use os.environ.get(name, default)",
        }
    name, default = (*arguments, None)[:2]
    return {"return_value": environment.get(str(name), default)}


def _literals(call: str) -> list[str | None] | None:
    try:
        tree = ast.parse(call.strip(), mode="eval").body if len(call) <= 1000 else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not isinstance(tree, ast.Call) or tree.keywords or not 1 <= len(tree.args) <= 2:
        return None
    values = [node.value for node in tree.args if isinstance(node, ast.Constant)]
    texts = [value for value in values if value is None or isinstance(value, str)]
    return texts if len(texts) == len(tree.args) else None


def clock(name: str, args: tuple[Any, ...], now: Callable[[str], float]) -> ExternalResult:
    """Answer one of `CLOCKS`; what reads `time.time` is its argument. The local zone is UTC."""
    if name == "time.time":
        return {"return_value": now(str(args[0]) if args else name)}
    zone = args[0] if args else None
    instant = datetime.fromtimestamp(now(name), zone or UTC)
    return {"return_value": instant.date() if name == "date.today" else instant.replace(tzinfo=zone)}


def random_bytes(count: Any, draw: Callable[[int], bytes]) -> ExternalResult:
    """Answer `os.urandom`, within reason."""
    if not isinstance(count, int) or not 0 <= count <= MOST_RANDOM:
        return {
            "exc_type": "ValueError",
            "message": f"os.urandom gives 0 to {MOST_RANDOM} bytes at a time here",
        }
    return {"return_value": draw(count)}
