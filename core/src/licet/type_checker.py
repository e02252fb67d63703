"""What a backend may offer beside running code: to look at its types first, without running any of it.

Rules this module keeps: findings are feedback for whoever writes the code; no decision rests on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class TypeFinding:
    """One thing that a type checker objects to; `line` and `column` are 1-based, `code` is its rule."""

    line: int
    column: int
    code: str
    message: str


@runtime_checkable
class TypeChecker(Protocol):
    """A backend that can check the types of code for its own language."""

    async def check_types(self, code: str, stubs: str) -> tuple[TypeFinding, ...]:
        """Check `code`, whose surroundings `stubs` declare, and run none of it.

        Raises:
            TypesUnchecked: it could not be checked; the message says why.
        """
        ...
