"""What a guest is told when it asks the system for something: environment, sleep, randomness, modules.

Rules this module keeps:

- the environment is the plan's, and nothing else;
- only arguments whose type Monty itself has checked are read: any other could be a value that takes for ever
  to build here (see `trailing`); so `os.getenv` is answered from the text of its call.
"""

from __future__ import annotations

import ast
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic_monty import ExternalResult, ExternalSettledResult

MOST_RANDOM = 1 << 20
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


def random_bytes(count: Any) -> ExternalResult:
    """Answer `os.urandom`, within reason."""
    if not isinstance(count, int) or not 0 <= count <= MOST_RANDOM:
        return {
            "exc_type": "ValueError",
            "message": f"os.urandom gives 0 to {MOST_RANDOM} bytes at a time here",
        }
    return {"return_value": secrets.token_bytes(count)}
