"""What a caller is told at the end of a run, made from the values of its stages.

Rules this module keeps:

- a run whose code never ran says so, and why; code that can't be parsed has failed by itself;
- a result that could not be recorded is no success, and keeps all that the code did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from licet.approvals.forms import StoredApproval
from licet.backend import GuestError, Outcome, Termination
from licet.decide import Decision
from licet.errors import ApprovalsUnavailable, AuditUnavailable
from licet.plan import ExecutionPlan
from licet.prepare import Prepared
from licet.result import AuditPlace, BackendUsed, ExecutionResult, Protection, ToolCallMade
from licet.scrubbing import Clean
from licet.select import Chosen
from licet.trail import Trail
from licet.writes.staged import Written

if TYPE_CHECKING:
    from licet.approvals.desk import Permit


def refusal(prepared: Prepared) -> tuple[Termination, str] | None:
    """How and why a run ends without any backend; None if it needs one."""
    if prepared.decision.effect == "deny":
        return Termination.policy_denied, why_denied(prepared.decision)
    if prepared.syntax_error is not None:
        return Termination.exited, prepared.syntax_error.message
    return None


def refused(
    prepared: Prepared, trail: Trail, termination: Termination, detail: str, advice: str | None = None
) -> ExecutionResult:
    """The result of a run whose code never ran."""
    unreadable = prepared.syntax_error if termination is Termination.exited else None
    return ExecutionResult(
        run_id=trail.run_id,
        termination=termination,
        success=False,
        exit_code=1 if unreadable else None,
        error=GuestError("SyntaxError", unreadable.message, unreadable.line) if unreadable else None,
        decision=prepared.explanation,
        changes=prepared.request.changes,
        audit=_place(trail),
        unrecorded=trail.lost.message if trail.lost else None,
        detail=None if unreadable else detail,
        advice=unreadable.advice if unreadable else advice,
    )


def finished(
    prepared: Prepared,
    plan: ExecutionPlan,
    clean: Clean,
    protection: Protection,
    tool_calls: Sequence[ToolCallMade],
    written: Written,
    trail: Trail,
) -> ExecutionResult:
    """The result of a run that is recorded."""
    outcome, output = clean.outcome, clean.output
    chosen = prepared.selection.chosen
    assert chosen is not None
    return ExecutionResult(
        run_id=plan.run_id,
        termination=outcome.termination,
        success=outcome.succeeded and written.refused is None,
        value=outcome.value,
        value_repr=outcome.value_repr,
        stdout=output.stdout,
        stderr=output.stderr,
        stdout_truncated=output.stdout_truncated,
        stderr_truncated=output.stderr_truncated,
        stdout_bytes=output.stdout_bytes,
        stderr_bytes=output.stderr_bytes,
        stdout_kept=output.stdout_kept,
        stderr_kept=output.stderr_kept,
        exit_code=outcome.exit_code,
        error=outcome.error,
        decision=prepared.explanation,
        backend=BackendUsed(plan.backend, chosen.descriptor.version, chosen.isolation),
        contract=plan.contract,
        usage=outcome.usage,
        changes=prepared.request.changes,
        tool_calls=tuple(tool_calls),
        artifacts=written.artifacts,
        audit=_place(trail),
        unrecorded=trail.lost.message if trail.lost else None,
        protection=protection,
        detail=written.refused or _detail(outcome, written),
        advice=_REFUSED_WRITES if written.refused else None,
        scrubbed=clean.findings,
    )


def _detail(outcome: Outcome, written: Written) -> str | None:
    """What is to be said of a run: of one that failed by itself, also that its changes are gone."""
    if not written.dropped or outcome.termination is not Termination.exited:
        return outcome.detail
    dropped = "what it wrote was dropped, since it did not end well"
    return f"{outcome.detail}; {dropped}" if outcome.detail else dropped


_REFUSED_WRITES = "look at what else changes these files, then run the code again"


def protected(outcome: Outcome, chosen: Chosen) -> Protection:
    """What was seen of the protection of a run, and of which controls nothing was."""
    unknown = tuple(name for name in chosen.levels if name not in outcome.observed)
    return Protection(outcome.configured, outcome.observed, unknown)


def unrecorded(result: ExecutionResult, problem: AuditUnavailable) -> ExecutionResult:
    """The same result, after its record could not be written."""
    return replace(
        result,
        success=False,
        termination=Termination.audit_unavailable,
        detail=f"the code ran, but its result could not be recorded: {problem.message}",
        advice=problem.advice,
    )


def unselected(prepared: Prepared) -> tuple[Termination, str] | None:
    """How and why a run ends that policy does not deny; None if a backend can run it."""
    if prepared.selection.chosen is None:
        return Termination.no_backend, "no backend can run this here"
    return None


def waiting(
    prepared: Prepared, trail: Trail, permit: Permit, tool_calls: Sequence[ToolCallMade] = ()
) -> ExecutionResult:
    """The result, so far, of a run that waits for an approval."""
    result = refused(prepared, trail, Termination.approval_pending, permit.reason, permit.advice)
    return replace(result, approval=permit.approval, tool_calls=tuple(tool_calls))


def over(stored: StoredApproval, why: str | None = None) -> ExecutionResult:
    """The result of a run whose approval is over, or was spent elsewhere: nothing is left to go on with."""
    return ExecutionResult(
        run_id=stored.request.run_id,
        termination=Termination.approval_denied,
        success=False,
        detail=why or stored.sentence,
        advice="run the code again, which asks anew",
        approval=stored,
    )


def unable(
    prepared: Prepared, trail: Trail, problem: AuditUnavailable | ApprovalsUnavailable
) -> ExecutionResult:
    """The result of a run that did not happen, since the trail or the approvals can't be kept."""
    audit = isinstance(problem, AuditUnavailable)
    termination = Termination.audit_unavailable if audit else Termination.launch_failed
    return refused(prepared, trail, termination, problem.message, problem.advice)


def denied_by(outcome: Outcome, denial: str | None) -> Outcome:
    """The outcome, of code that did not survive what it was told of a call that somebody denied, as that."""
    error = outcome.error
    if denial is None or error is None or (error.type, error.message) != ("PermissionError", denial):
        return outcome
    return replace(outcome, termination=Termination.approval_denied, exit_code=None, detail=denial)


def why_denied(decision: Decision) -> str:
    """One sentence that says what denied it, or that it was to be asked about and nobody can be."""
    if decision.refusals:
        first = decision.refusals[0]
        return f"line {first.line}: {first.message}" if first.line else first.message
    for verdict in decision.verdicts:
        if verdict.effect == "deny" and verdict.intent.when != "access":
            return f"`{verdict.intent}` is denied: {verdict.reason}"
    for ballot in decision.ballots:
        if ballot.effect == "deny":
            return f"`{ballot.decider}` denies it: {ballot.reason}"
    return "it needs an approval, and nobody can give one"


def _place(trail: Trail) -> AuditPlace | None:
    record = trail.last
    return AuditPlace(record.log, record.seq, record.leaf) if record is not None else None
