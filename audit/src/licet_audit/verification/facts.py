"""What of a record matters for the runs: one small fact, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

GRANTS = frozenset({"not_needed", "granted", "approved"})
"""States of an authorization that let a run go on; any other one does not."""


class Fact(NamedTuple):
    """Record `seq` says `what` of a run; `about` is the number of a tool call, or a detail of that kind."""

    run_id: str
    seq: int
    what: str
    about: Any = None


def of(content: Mapping[str, Any]) -> Fact | None:
    """The fact of a record, None if it says nothing about what a run may do, does or did."""
    told = _TELL.get(content["kind"])
    run_id = content["run_id"]
    if told is None or not run_id:
        return None
    what, about = told(content.get("phase"), content["body"])
    # as `Fact(...)` does it, at a third of its price
    return tuple.__new__(Fact, (run_id, content["seq"], what, about)) if what else None


Told = tuple[str, Any]


def _request(phase: str | None, body: Mapping[str, Any]) -> Told:
    return "request", None


def _decision(phase: str | None, body: Mapping[str, Any]) -> Told:
    effect = body.get("effect")
    return (effect if effect in ("allow", "deny") else "ask"), None


def _authorization(phase: str | None, body: Mapping[str, Any]) -> Told:
    state = body.get("state")
    return ("authorized" if isinstance(state, str) and state in GRANTS else "refused"), state


def _execution(phase: str | None, body: Mapping[str, Any]) -> Told:
    return "execute", None


def _tool_call(phase: str | None, body: Mapping[str, Any]) -> Told:
    number = str(body.get("sequence"))
    if phase == "before":
        return ("call" if body.get("effect", "allow") == "allow" else "denied_call"), number
    return ("performed" if body.get("outcome") in ("returned", "raised") else ""), number


def _access(phase: str | None, body: Mapping[str, Any]) -> Told:
    return ("access" if body.get("allowed") is True else ""), None


def _result(phase: str | None, body: Mapping[str, Any]) -> Told:
    if body.get("executed") is False:
        return "refusal", None
    return "result", body.get("termination") == "unknown"


_TELL: dict[str, Callable[[str | None, Mapping[str, Any]], Told]] = {
    "request": _request,
    "decision": _decision,
    "authorization": _authorization,
    "execution": _execution,
    "tool_call": _tool_call,
    "access": _access,
    "result": _result,
}
