"""What a check finds: one frozen value a finding, in one order.

Rules this module keeps: an error is about one document and stands whatever surrounds it; a warning depends on
the bounds, the backends or the day; each says how to write it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from licet.errors import Position

Severity = Literal["error", "warning"]
Code = Literal[
    "invalid-policy",
    "dead-entry",
    "idle-rule",
    "shadowed-rule",
    "impossible-condition",
    "redundant-entry",
    "idle-part",
    "idle-under-bounds",
    "idle-approval",
    "ended-rule",
    "ended-exception",
    "closed-by-bound",
    "sealed-entry",
    "superfluous-bound",
    "nobody-opens",
]
"""What can be found; `docs/reference/policy.md` says what each means."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with a policy. `code` is stable; `witness` is a case that shows it."""

    severity: Severity
    code: Code
    where: Position
    message: str
    advice: str
    witness: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The form of `licet policy check --json`."""
        return asdict(self)


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Errors first, then by place; each once."""
    return tuple(
        sorted(
            dict.fromkeys(findings),
            key=lambda one: (one.severity, one.where.file, one.where.line, one.where.column, one.code),
        )
    )
