"""What of a record matters for the runs: one small fact, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from msgspec import UNSET

from licet_audit.verification.fields import Body, Fields

GRANTS = frozenset({"not_needed", "granted"})
"""States of an authorization that let a run go on."""
PENDING = "pending"
"""The state of an authorization that says nothing yet; any other one refuses."""
APPROVAL = "approval"
"""A fact that is about the whole record, see `approvals`."""
_MADE = frozenset({"returned", "raised", "withheld", "timed_out", "unknown"})


class Fact(NamedTuple):
    """Record `seq` says `what` of a run; `about` is the number of a tool call, or a detail of that kind.

    Of a call that has to be asked about, it is the number and the digest; of an execution, its plan; of an
    access that had to be asked about, the digest.
    """

    run_id: str
    seq: int
    what: str
    about: Any = None


def of(record: Fields) -> Fact | None:
    """The fact of a record, None if it says nothing about what a run may do, does or did."""
    told = _TELL.get(record.kind)
    if told is None or not record.run_id:
        return None
    what, about = told(record.phase, record.body)
    # as `Fact(...)` does it, at a third of its price
    return tuple.__new__(Fact, (record.run_id, record.seq, what, about)) if what else None


Told = tuple[str, Any]


def _request(phase: str | None, body: Body) -> Told:
    return "request", None


def _decision(phase: str | None, body: Body) -> Told:
    return (body.effect if body.effect in ("allow", "deny") else "ask"), None


def _authorization(phase: str | None, body: Body) -> Told:
    state = body.state
    if state == PENDING:
        return "", None
    return ("authorized" if isinstance(state, str) and state in GRANTS else "refused"), state


def _execution(phase: str | None, body: Body) -> Told:
    return "execute", _text(body.plan_digest)


def _tool_call(phase: str | None, body: Body) -> Told:
    number = str(body.sequence)
    if phase == "before":
        if body.effect == "ask":
            return "asked_call", (number, _text(body.call_digest))
        return ("call" if body.effect in ("allow", UNSET) else "denied_call"), number
    return ("performed" if body.outcome in _MADE else ""), number


def _approval(phase: str | None, body: Body) -> Told:
    return APPROVAL, None


def _access(phase: str | None, body: Body) -> Told:
    if phase is not None or body.allowed is not True:
        return "", None  # a question, or what came of an access that was told before
    return "access", _text(body.call_digest)


def _commit(phase: str | None, body: Body) -> Told:
    return "access", None


def _result(phase: str | None, body: Body) -> Told:
    if body.executed is False:
        return "refusal", None
    return "result", body.termination == "unknown"


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


_TELL: dict[str, Callable[[str | None, Body], Told]] = {
    "request": _request,
    "decision": _decision,
    "authorization": _authorization,
    "approval": _approval,
    "execution": _execution,
    "tool_call": _tool_call,
    "access": _access,
    "commit": _commit,
    "result": _result,
}
