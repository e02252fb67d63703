"""Lines of a result's card about the approval that it waits for, or did not get.

Rules this module keeps: what to type next is shown as it can be typed in the current directory.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from licet.approvals.forms import StoredApproval
from licet.backend import Termination
from licet.cli import approving, places
from licet.cli.sheets import Row
from licet.result import ExecutionResult


def rows(result: ExecutionResult, state: Path, policy: str | None) -> Iterator[Row]:
    """What waits, whom it needs and until when, and the commands that come next; or who said no.

    `state` is the state directory of the run, `policy` the name that it was given (None: none).
    """
    if result.approval is None:
        return
    name = result.approval.request.id
    yield from _about(result.approval)
    if result.termination is Termination.approval_pending:
        yield "look", places.command(f"approvals show {name}", state)
        yield "answer", places.command(f"approvals approve {name}", state)
        yield "then", approving.resuming(result.run_id, policy)


def heading(result: ExecutionResult) -> str | None:
    """How the card of a run begins that an approval stopped; None for any other."""
    if result.approval is None or result.termination is not Termination.approval_denied:
        return None
    said = {"expired": "its approval has expired", "revoked": "its approval was revoked"}
    why = said.get(result.approval.state, "it was not approved")
    if result.backend is not None:
        return why
    return f"{why}, nothing more ran" if result.approval.request.kind == "call" else f"{why}, nothing ran"


def _about(stored: StoredApproval) -> Iterator[Row]:
    request = stored.request
    if stored.state == "pending":
        yield "waits", approving.what_of(request)
        yield from (("needs", str(one)) for one in request.requirements)
        yield "until", approving.until(request)
    yield from approving.became(stored)
