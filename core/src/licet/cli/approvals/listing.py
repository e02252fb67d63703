"""`licet approvals list`: what waits, what may still be used, and on request what is over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, get_args

import click

from licet.approvals.forms import OPEN, State, StoredApproval
from licet.cli.approvals.office import with_place

if TYPE_CHECKING:
    from licet.approvals.store import ApprovalStore

COLUMNS = ("id", "state", "what", "requester", "since", "expires in", "needs")
"""What a table of approvals tells."""

_SHORT = 12  # characters of an id: its time, and some more
_STATES = get_args(State)


@click.command("list")
@with_place
@click.option("--all", "everything", is_flag=True, help="Also those that are over.")
@click.option(
    "--only", "states", multiple=True, type=click.Choice(_STATES), help="Those in this state, instead."
)
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="How many at most.")
def listing(
    policy: str | None,
    state: str | None,
    as_json: bool,
    everything: bool,
    states: tuple[State, ...],
    limit: int,
) -> int:
    """List what waits for an approval, and what was approved and not used up; the oldest that waits first.

    \b
    Exit codes: 0 also where there is nothing · 2 usage · 8 the approvals can't be read
    """
    from licet.cli.approvals.office import looked_into
    from licet.cli.terminal import put_json, put_table, say

    with looked_into(policy, state) as office:
        found = _chosen(office.store, states, limit, everything=everything) if office else []
        past = sum(_counts(office.store).values()) if office else 0
    if as_json:
        put_json([as_document(one) for one in found])
        return 0
    if found:
        put_table(COLUMNS, table(found), prose=1, whole=0)
    elif not (states or everything):
        say("✓ nothing waits for an approval", err=False)
    if past and not (states or everything):
        say(f"{past:,} {'is' if past == 1 else 'are'} over: `licet approvals list --all` shows the newest")
    return 0


def as_document(stored: StoredApproval) -> dict[str, Any]:
    """One approval as programs read it, without what was shown."""
    from dataclasses import asdict

    from licet import units

    request, reach = stored.request, stored.reach
    return {
        "id": request.id,
        "state": stored.state,
        "run_id": request.run_id,
        "kind": request.kind,
        "tool": _said(stored, "call", "tool"),
        "target": _said(stored, "connection", "target"),
        "requester": request.requester.model_dump(exclude_none=True),
        "asked_at": units.show_moment(request.asked.wall),
        "expires_at": units.show_moment(request.asked.wall + request.expires),
        "requirements": [one.model_dump(by_alias=True) for one in request.requirements],
        "digest": request.digest,
        "shown": request.shown,
        "answers": [
            {**asdict(given.answer), "at": units.show_moment(given.at.wall)} for given in stored.given
        ],
        "reach": {**asdict(reach), "vary": sorted(reach.vary)},
        "used": stored.used,
        "ending": stored.ending,
        "reason": stored.reason,
    }


def short_ids(found: Sequence[StoredApproval]) -> list[str]:
    """Their ids, as short as tells these apart."""
    ids = {one.request.id for one in found}
    length = _SHORT
    while len({one[:length] for one in ids}) < len(ids):
        length += 1
    return [one.request.id[:length] for one in found]


def _chosen(
    store: ApprovalStore, states: Sequence[State], limit: int, *, everything: bool
) -> list[StoredApproval]:
    """What was asked for: what waits first, oldest first; then the newest."""
    wanted = states or (_STATES if everything else tuple(OPEN))
    waiting = list(store.listed(("pending",), limit=limit))[::-1] if "pending" in wanted else []
    others = [name for name in wanted if name != "pending"]
    return (waiting + list(store.listed(others, limit=limit) if others else ()))[:limit]


def _counts(store: ApprovalStore) -> dict[State, int]:
    """How many are over, by state."""
    return {state: count for state, count in store.counted().items() if state not in OPEN}


def table(found: Sequence[StoredApproval]) -> list[tuple[str, ...]]:
    """The rows of a table of approvals, whose columns are `COLUMNS`."""
    import time

    from licet import units
    from licet.approvals.clocks import now
    from licet.cli import approving

    at = now()
    rows: list[tuple[str, ...]] = []
    for name, stored in zip(short_ids(found), found, strict=True):
        request = stored.request
        rest = approving.seconds_left(request, at) if stored.state in OPEN else 0
        rows.append(
            (
                name,
                stored.state,
                _about(stored),
                request.requester.id,
                units.show_age(time.time() - request.asked.wall),
                units.show_duration(rest) if rest > 0 else "-",
                "; ".join(map(str, request.requirements)),
            )
        )
    return rows


def _about(stored: StoredApproval) -> str:
    if tool := _said(stored, "call", "tool"):
        return f"tool {tool}"
    target = _said(stored, "connection", "target")
    return f"network {target}" if target else "run"


def _said(stored: StoredApproval, about: str, name: str) -> str | None:
    found = stored.request.document.get(about)
    return str(found[name]) if found else None
