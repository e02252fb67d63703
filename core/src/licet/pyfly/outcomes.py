"""Limits and results under PyFly's names.

Rules this module keeps:

- limits combine by the lowest, and one that makes no sense is refused when it is made;
- `error_type` is `CodeSafetyError`, `SandboxUnavailableError`, the type that the code raised, or licet's
  name for the way the run ended; code can give its exceptions any name, so `termination` tells them apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from licet import result
from licet.backend import Termination
from licet.pyfly.safety import of_intent, of_violation
from licet.request import Limits

_NO_SANDBOX = frozenset(
    {
        Termination.no_backend,
        Termination.launch_failed,
        Termination.backend_error,
        Termination.backend_lost,
    }
)


@dataclass(frozen=True, slots=True)
class ExecutionLimits:
    """Upper bounds of one run; None states none, and leaves that to the policy.

    Raises:
        ValueError: a limit is no positive number, or `max_allocations` is stated, which nobody can keep.
    """

    timeout_seconds: float | None = None
    max_memory_bytes: int | None = None
    max_allocations: int | None = None
    max_recursion_depth: int | None = None

    def __post_init__(self) -> None:
        if self.max_allocations is not None:
            raise ValueError("`max_allocations` can't be kept; use `max_memory_bytes` and `timeout_seconds`")
        lowest(self)


def lowest(*several: ExecutionLimits) -> Limits:
    """The limits of a request under all of these.

    Raises:
        ValueError: one of them is no positive number.
    """
    found: dict[str, float | int] = {}
    for one in several:
        for name, value in _limits(one).stated().items():
            found[name] = min(value, found.get(name, value))
    return Limits(**found)


def _limits(asked: ExecutionLimits) -> Limits:
    try:
        return Limits(
            wall_time=asked.timeout_seconds,
            memory=asked.max_memory_bytes,
            recursion=asked.max_recursion_depth,
        )
    except ValidationError as problem:
        first = problem.errors(include_url=False)[0]
        name, why = first["loc"][0], first["msg"].removeprefix("Value error, ")
        raise ValueError(f"the limit `{name}`: {why}") from None


@dataclass(frozen=True, slots=True)
class ExecutionResult:
    """How a run went; never raises.

    `output` is the value of the script's last expression. `run_id` finds the run in the trail (None if it got
    there neither as run nor as refusal), `termination` is licet's word for how it ended.
    """

    success: bool
    output: Any = None
    stdout: str = ""
    stderr: str = ""
    error: str | None = None
    error_type: str | None = None
    violations: list[str] = field(default_factory=list)
    run_id: str | None = None
    termination: str | None = None


def outcome_of(ran: result.ExecutionResult) -> ExecutionResult:
    """What PyFly's callers learn of a run of licet."""
    told: dict[str, Any] = {}
    if not ran.success:
        violations = list(_violations(ran)) if ran.termination is Termination.policy_denied else []
        told = {"error": _error(ran), "error_type": _kind(ran, violations), "violations": violations}
    return ExecutionResult(
        success=ran.success,
        output=ran.value if ran.success else None,
        stdout=ran.stdout,
        stderr=ran.stderr,
        run_id=ran.run_id,
        termination=ran.termination.value,
        **told,
    )


def _kind(ran: result.ExecutionResult, violations: list[str]) -> str:
    if violations:
        return "CodeSafetyError"
    if ran.termination in _NO_SANDBOX:
        return "SandboxUnavailableError"
    return ran.error.type if ran.error is not None else ran.termination.value


def _error(ran: result.ExecutionResult) -> str:
    """What went wrong, and what would help, as far as that is known."""
    advice = ran.advice
    if ran.termination is Termination.no_backend and ran.decision is not None:
        advice = "; ".join(repair.text for repair in ran.decision.repair)
    return f"{ran.summary}; {advice}" if advice else ran.summary


def _violations(ran: result.ExecutionResult) -> Iterator[str]:
    """What in the text of the code was refused; nothing where it is not the code that policy denies."""
    if ran.decision is None:
        return
    for refusal in ran.decision.refusals:
        yield str(of_violation(refusal))
    for verdict in ran.decision.verdicts:
        if verdict.effect != "allow" and verdict.intent.source == "inferred":
            yield str(of_intent(verdict.intent))
