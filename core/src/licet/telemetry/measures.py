"""What is counted and measured of one run, from its records alone.

Rules this module keeps: attributes have few values (effects, terminations, kinds, names of backends): never
a subject, a path, a policy, the name of a tool, or what code chose.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from licet.record import Record
from licet.telemetry import names as n
from licet.telemetry.attributes import verdicts_of
from licet.telemetry.names import Metric
from licet.telemetry.spans import RESOLVED, instant, nanoseconds

Measure = tuple[Metric, float, dict[str, str]]
"""A metric, what to add to it or record of it, and its attributes."""

_ASKED = "asked"
_APPROVED = frozenset(
    {"answered", "waiting", "resumed", "consumed", "executed", "failed_to_start", "unknown"}
)
_ACTIONS = frozenset({"run", "read", "write", "network", "shell", "tool"})


class RunMeasures:
    """Turns the records of one run, in their order, into measures."""

    def __init__(self) -> None:
        self._began = 0
        self._executed = 0
        self._calls: dict[str, int] = {}
        self._about: dict[str, str] = {}
        self._asked: dict[str, int] = {}

    def feed(self, record: Record) -> Iterator[Measure]:
        """The measures that this record makes."""
        entry, now = record.entry, nanoseconds(record.entry.time)
        yield n.RECORDS, 1, {n.KIND: entry.kind}
        match entry.kind, entry.phase:
            case "request", _:
                self._began = instant(entry.body.get("at")) or now
            case "decision", _:
                yield from self._decision(entry.body, now)
            case "selection", _:
                self._keep(n.BACKEND, entry.body.get("backend"))
            case "execution", _:
                self._executed = now
            case "tool_call", "before":
                self._calls[str(entry.body.get("sequence"))] = now
                yield from _decided(entry.body)
            case "tool_call", _:
                began = self._calls.pop(str(entry.body.get("sequence")), now)
                outcome = {n.CALL_OUTCOME: str(entry.body.get("outcome"))}
                yield n.CALL_DURATION, _seconds(now - began), outcome
            case "approval", _:
                yield from self._approval(entry.body, now)
            case "probe", "after":
                yield from _claims(entry.body)
            case "result", _:
                yield from self._result(entry.body, now)

    def _decision(self, body: Mapping[str, Any], now: int) -> Iterator[Measure]:
        self._keep(n.EFFECT, body.get("effect"))
        if self._began:
            yield n.DECISION_DURATION, _seconds(now - self._began), self._some(n.EFFECT)
        yield from _decided(body)

    def _approval(self, body: Mapping[str, Any], now: int) -> Iterator[Measure]:
        event, approval = str(body.get("event")), str(body.get("approval"))
        if event == _ASKED or event in RESOLVED or event in _APPROVED:
            yield n.APPROVALS, 1, {n.APPROVAL_EVENT: event}
        if event == _ASKED:
            self._asked[approval] = now
        elif event in RESOLVED and (asked := self._asked.pop(approval, None)) is not None:
            yield n.APPROVAL_DURATION, _seconds(now - asked), {n.APPROVAL_EVENT: event}

    def _result(self, body: Mapping[str, Any], now: int) -> Iterator[Measure]:
        self._keep(n.TERMINATION, body.get("termination"))
        about = self._some(n.EFFECT, n.TERMINATION, n.BACKEND)
        yield n.RUNS, 1, about
        if self._began:
            yield n.RUN_DURATION, _seconds(now - self._began), about
        if self._executed:
            yield n.EXECUTION_DURATION, _seconds(now - self._executed), self._some(n.TERMINATION, n.BACKEND)

    def _keep(self, name: str, value: object) -> None:
        if isinstance(value, str):
            self._about[name] = value

    def _some(self, *names: str) -> dict[str, str]:
        return {name: self._about[name] for name in names if name in self._about}


def _decided(body: Mapping[str, Any]) -> Iterator[Measure]:
    yield n.DECISIONS, 1, {n.EFFECT: str(body.get("effect"))}
    denied = (str(one.get("intent")) for one in verdicts_of(body) if one.get("effect") == "deny")
    for action, count in Counter(intent.partition(" ")[0] for intent in denied).items():
        if action in _ACTIONS:
            yield n.DENIALS, count, {n.INTENT_ACTION: action}


def _claims(body: Mapping[str, Any]) -> Iterator[Measure]:
    for outcome in ("held", "leaked", "inconclusive"):
        count = body.get(outcome)
        if type(count) is int and count > 0:
            yield n.CLAIMS, count, {n.BACKEND: str(body.get("backend")), n.OUTCOME: outcome}


def _seconds(ns: int) -> float:
    return max(ns, 0) / 1e9  # a wall clock may be set back
