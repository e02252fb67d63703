"""What a guest is told when it asks the system for something: environment, sleep, randomness, modules.

Rules this module keeps:

- the environment is the plan's, time and randomness are the host's, and nothing else is;
- only arguments whose type Monty itself has checked are read: any other could be a value that takes for ever
  to build here (see `trailing`); so `os.getenv` is answered from the text of its call.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic_monty import ExternalResult, ExternalSettledResult

MOST_RANDOM = 1 << 20
CLOCKS = frozenset({"time.time", "datetime.now", "date.today"})
SLEEPS = frozenset({"system.sleep", "time.sleep"})
ASYNC_SLEEPS = frozenset({"system.async_sleep", "asyncio.sleep"})

CANCELLED: ExternalSettledResult = {
    "exc_type": "RuntimeError",
    "message": "this was cancelled when its run ended",
}
"""What awaits something that an earlier run of the sandbox has begun."""


def missing_module(name: object) -> ExternalResult:
    """Say that a module is not there, as CPython does."""
    return {"exc_type": "ModuleNotFoundError", "message": f"No module named {str(name)!r}"}


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
