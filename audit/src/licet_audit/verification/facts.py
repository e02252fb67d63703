"""What of a record matters for the runs: one small fact, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from msgspec import UNSET

from licet_audit.verification.fields import Body, Fields

GRANTS = frozenset({"not_needed", "granted", "approved"})
"""States of an authorization that let a run go on; any other one does not."""


class Fact(NamedTuple):
    """Record `seq` says `what` of a run; `about` is the number of a tool call, or a detail of that kind."""

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
    return ("authorized" if isinstance(state, str) and state in GRANTS else "refused"), state


def _execution(phase: str | None, body: Body) -> Told:
    return "execute", None


def _tool_call(phase: str | None, body: Body) -> Told:
    number = str(body.sequence)
    if phase == "before":
        return ("call" if body.effect in ("allow", UNSET) else "denied_call"), number
    return ("performed" if body.outcome in ("returned", "raised") else ""), number


def _access(phase: str | None, body: Body) -> Told:
    return ("access" if body.allowed is True else ""), None


def _commit(phase: str | None, body: Body) -> Told:
    return "access", None


def _result(phase: str | None, body: Body) -> Told:
    if body.executed is False:
        return "refusal", None
    return "result", body.termination == "unknown"


_TELL: dict[str, Callable[[str | None, Body], Told]] = {
    "request": _request,
    "decision": _decision,
    "authorization": _authorization,
    "execution": _execution,
    "tool_call": _tool_call,
    "access": _access,
    "commit": _commit,
    "result": _result,
}
