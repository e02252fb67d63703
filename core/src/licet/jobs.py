"""A request on its way to its result, and a run that is under way.

Rules this module keeps: what is here is what the stages hand on, and decides nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from licet.approvals.forms import StoredApproval
from licet.host import RunHost
from licet.plan import ExecutionPlan
from licet.prepare import Prepared
from licet.request import ExecutionRequest
from licet.rerun import Rerun
from licet.select import Offer
from licet.trail import Trail


@dataclass(frozen=True, slots=True)
class Job:
    """A request on its way: as it was asked, and how it is prepared under the policy that is in force then.

    `wait` is for how many seconds whoever runs it waits for an approval that nobody there can give.
    """

    asked: ExecutionRequest
    prepare: Callable[[], Awaitable[Prepared]]
    offers: Callable[[], Sequence[Offer]]
    again: Rerun | None = None
    wait: float | None = None


@dataclass(slots=True)
class UnderWay:
    """A run whose sandbox may begin, or go on after it was suspended.

    `approval` is the one that it last went on by, `open_use` the one that it began by, while it is still to
    be said what came of that; `denial` is what its code was last told of a call that somebody denied.
    """

    job: Job
    prepared: Prepared
    plan: ExecutionPlan
    host: RunHost
    trail: Trail
    approval: StoredApproval | None = None
    open_use: StoredApproval | None = None
    denial: str | None = None
