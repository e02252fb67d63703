"""A request on its way to its result, and a run that is under way.

Rules this module keeps: what is here is what the stages hand on, and decides nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from licet import bodies
from licet.approvals.forms import StoredApproval
from licet.backend import Outcome, Termination
from licet.host import RunHost
from licet.plain import plain_body
from licet.plan import ExecutionPlan
from licet.prepare import Prepared
from licet.request import ExecutionRequest
from licet.rerun import Rerun
from licet.select import Chosen, Offer
from licet.trail import Trail

CANCELLED = Outcome(Termination.cancelled)
"""How a run ends that somebody cancels."""


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


def note_selection(prepared: Prepared, trail: Trail) -> None:
    """Note what was selected, and why not the others."""
    selection = prepared.selection
    body = prepared.shared.once("selection", lambda: plain_body(bodies.selection(selection)))
    trail.step("selection", body)


def chosen_of(prepared: Prepared) -> Chosen:
    """What will run it, or runs it."""
    chosen = prepared.selection.chosen
    assert chosen is not None
    return chosen
