"""From a run that waits to sealed bytes, and from these to a run that goes on: what approvals are built on.

A call that has to be asked about waits where nothing stands in the way (`obstacle`); its backend writes the
run down, and the outcome is `approval_pending`. `suspend` seals it. Later, in this process or another one,
the request is prepared anew, `reopen` says what waited, a new host settles that call, and `resumed` is the
plan that goes on.

Rules this module keeps:

- what a run is bound to is taken from what was prepared anew, never from the bytes that are to be trusted;
- which call waits is told by whoever kept it; the sealed bytes have to agree;
- nothing here stores anything, asks anybody, or keeps a run from going on twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from licet import plan as plans
from licet import rerun, suspension
from licet.approvals.forms import StoredApproval
from licet.backend import Outcome, Reply
from licet.digests import HostDigest
from licet.errors import SuspensionVoid
from licet.host import RunHost
from licet.plan import ExecutionPlan, Resumption
from licet.prepare import Prepared
from licet.surroundings import Surroundings
from licet.suspension import Binding, Suspended
from licet.waiting import WaitingCall


@dataclass(frozen=True, slots=True)
class Reopened:
    """A run that was suspended, as it waited.

    `at` is the instant of its request, in seconds since the epoch. `state` is for the host with which it goes
    on (`RunHost(past=...)`), `snapshot` for its backend.
    """

    call: WaitingCall
    at: float
    state: Mapping[str, Any] = field(repr=False)
    snapshot: bytes = field(repr=False)


def suspend(prepared: Prepared, run_id: str, host: RunHost, outcome: Outcome, key: bytes) -> bytes:
    """Seal the run `run_id` that ended in `outcome` under the host's `key`, bound to the call that waits.

    Raises:
        ValueError: it can't go on later; the message says why.
    """
    if outcome.suspension is None or host.waiting is None:
        raise ValueError(outcome.detail or "the backend can't suspend a run, or no call of it waits")
    state = {"at": prepared.facts.at.timestamp(), "host": host.state()}
    bound = binding(prepared, run_id, host.waiting)
    return suspension.seal(Suspended(state, outcome.suspension), bound, key)


def reopen(sealed: bytes, prepared: Prepared, run_id: str, call: WaitingCall, key: bytes) -> Reopened:
    """Open the run `run_id` that waits for `call`, if it may go on as it is `prepared` now.

    Raises:
        SuspensionVoid: something that binds it has changed since, or these are not the sealed bytes.
    """
    opened = suspension.unseal(sealed, binding(prepared, run_id, call), key)
    state = opened.state["host"]
    return Reopened(WaitingCall(**state["waiting"]), opened.state["at"], state, opened.snapshot)


def call_of(approval: StoredApproval) -> WaitingCall:
    """The call that waits, as far as whoever keeps the approval knows it: the sealed run has to agree."""
    told = approval.request.document["call"]
    return WaitingCall(told["sequence"], told["tool"], approval.request.digest, "", told["line"])


def binding(prepared: Prepared, run_id: str, call: WaitingCall) -> Binding:
    """What the run `run_id` is bound to while it waits for `call`.

    Raises:
        SuspensionVoid: no backend can run it here.
    """
    chosen = prepared.selection.chosen
    if chosen is None:
        raise SuspensionVoid(
            f"no backend can go on with the run `{run_id}` here",
            advice="go on with it where it was suspended, or run the code again",
        )
    descriptor = chosen.descriptor
    return Binding(
        run_id=run_id,
        sequence=call.sequence,
        tool=call.name,
        call_digest=call.digest,
        plan_digest=chosen.plan_digest,
        policy_digest=prepared.stack.digest,
        code_digest=prepared.request.digests.code,
        backend=descriptor.name,
        version=descriptor.version,
        configuration=descriptor.configuration,
        contract=descriptor.sandbox_enforcement_contract.claimed_digest,
    )


def surroundings(
    reopened: Reopened, digest: HostDigest, prepared: Prepared, plan: ExecutionPlan
) -> Surroundings:
    """What the code of a run that goes on sees of the world: its own stream, and no earlier time.

    Raises:
        AuditUnavailable: the host has no key.
    """
    taken, reached = reopened.state["random_bytes"], reopened.state["readings"]["latest"]
    return rerun.surroundings(digest, prepared.stack, plan, reopened.at, taken=taken, reached=reached)


def resumed(plan: ExecutionPlan, reopened: Reopened, reply: Reply) -> ExecutionPlan:
    """The plan of the same run, sealed anew, that goes on with the `reply` to the call that waited."""
    return going_on(plan, reopened.snapshot, reply)


def going_on(plan: ExecutionPlan, snapshot: bytes, reply: Reply) -> ExecutionPlan:
    """The plan sealed anew, that goes on from `snapshot` with the `reply` to the call that waited."""
    error = None if reply.error is None else (reply.error.type, reply.error.message)
    return plans.seal(replace(plan, resumption=Resumption(snapshot, reply.value, error)))
