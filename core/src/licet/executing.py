"""Handing a plan to its backend, and telling every way in which that can fail apart.

Rules this module keeps: whatever a backend raises becomes an outcome, save a cancellation of the run itself.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from licet import backend as backends
from licet.backend import Backend, Outcome, Termination
from licet.errors import AuditUnavailable, BackendError, LaunchFailed, SuspensionVoid
from licet.host import RunHost
from licet.output import bounded
from licet.plan import ExecutionPlan


async def execute(backend: Backend, plan: ExecutionPlan, host: RunHost) -> Outcome:
    """Run a sealed plan; its outcome says why the host ended it, where it did."""
    outcome = await _executed(backend, plan, host)
    if outcome.detail is None and host.why_ended is not None and not outcome.succeeded:
        return replace(outcome, detail=host.why_ended)
    return outcome


async def _executed(backend: Backend, plan: ExecutionPlan, host: RunHost) -> Outcome:
    try:
        return await backends.execute(backend, plan, host)
    except AuditUnavailable as problem:  # a tool call could not be recorded
        return Outcome(Termination.audit_unavailable, detail=problem.message)
    except (LaunchFailed, SuspensionVoid) as problem:  # nothing ran here
        return Outcome(Termination.launch_failed, detail=str(problem))
    except BackendError as problem:
        return Outcome(Termination.backend_error, detail=str(problem))
    except asyncio.CancelledError:
        if (task := asyncio.current_task()) is None or task.cancelling():
            raise
        return Outcome(Termination.backend_error, detail=f"`{plan.backend}` cancelled itself")
    except (Exception, SystemExit) as problem:  # a stranger's backend can fail in any way
        detail = f"`{plan.backend}` failed: {type(problem).__name__}: {problem}"
        return Outcome(Termination.backend_error, detail=bounded(detail, 1000))
