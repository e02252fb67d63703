"""From the records of a log to events: what is launched, ended, refused, called, and found.

Rules this module keeps:

- code in an interpreter of another language is a script (1009), code in a process of its own is that process
  (1007); a run that was refused is a launch that was blocked, and has no end;
- a call of a tool is one event, with the decision on it; one whose outcome nobody knows says so;
- what a person answers is an event of that person, and what came of an approval is one of who asked;
- a claim that an attack got through is a finding, and so is a log that is not what was written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from licet.record import Record
from licet.result import UNCERTAIN
from licet.telemetry.attributes import is_refuted
from licet.telemetry.spans import FAULTS
from licet.telemetry.values import at, objects, text

from licet_audit.claims import Verification
from licet_audit.ocsf import events as e
from licet_audit.ocsf.events import Event, Severity, Status

_LIMITS = frozenset(
    {"timeout", "cpu_limit", "memory_limit", "process_limit", "output_limit", "file_limit", "tool_limit"}
)


_MADE = frozenset({"returned", "raised", "withheld", "timed_out", "unknown"})
"""Outcomes of calls that were made, which one that was asked about is once it is approved."""
_TOLD: dict[str, tuple[str, Status]] = {
    "asked": ("asks", Status.unknown),
    "granted": ("granted", Status.success),
    "denied": ("denied", Status.failure),
    "expired": ("expired", Status.failure),
    "withdrawn": ("withdrawn", Status.failure),
    "revoked": ("revoked", Status.failure),
    "consumed": ("spent", Status.success),
    "answered": ("answered", Status.unknown),
}
"""Events of approvals that others care for, in words, and what they say of the approval."""


@dataclass(slots=True)
class _Run:
    """What is known of a run so far."""

    request: Mapping[str, Any] = field(default_factory=dict)
    decision: Mapping[str, Any] = field(default_factory=dict)
    execution: Record | None = None
    calls: dict[str, Record] = field(default_factory=dict)

    @property
    def is_script(self) -> bool:
        """Whether the language is what walls the code in."""
        return self.execution is not None and self.execution.entry.body.get("isolation") == "language"


class Mapper:
    """Takes records in their order, and gives the events that each makes."""

    def __init__(self) -> None:
        self._runs: dict[str, _Run] = {}

    def feed(self, record: Record) -> Iterator[Event]:
        """The events that this record makes."""
        entry = record.entry
        if entry.run_id and entry.kind != "approval":  # which may come once the run has ended
            run = self._runs.setdefault(entry.run_id, _Run())
        else:
            run = self._runs.get(entry.run_id) or _Run()
        match entry.kind, entry.phase:
            case "request", _:
                run.request = entry.body
            case "decision", _:
                run.decision = entry.body
            case "execution", _:
                run.execution = record
                yield _started(record, run)
            case "tool_call", "before":
                run.calls[str(entry.body.get("sequence"))] = record
            case "tool_call", _:
                before = run.calls.pop(str(entry.body.get("sequence")), record)
                yield _called(before, record, run, entry.body.get("outcome"))
            case "approval", _ if str(entry.body.get("event")) in _TOLD:
                yield _approved(record, run)
            case "probe", "after":
                yield from _refuted(record)
            case "result", _:
                yield from (_called(before, before, run, None) for before in run.calls.values())
                yield _ended(record, run) if run.execution is not None else _refused(record, run)
                self._runs.pop(entry.run_id, None)


def tampered(verification: Verification, log: str) -> Event | None:
    """A finding about the log itself; None where it is as it was written, as far as can be told."""
    if verification.status not in ("tampered", "incomplete"):
        return None
    failed = [claim for claim in verification.claims if claim.ok is False]
    what = "; ".join(f"{claim.name}: {claim.detail}" for claim in failed) or verification.status
    severity = Severity.critical if verification.status == "tampered" else Severity.high
    return {
        **e.FOUND.as_json(),
        "time": 0,
        "severity_id": severity.value,
        "severity": severity.name.capitalize(),
        "status_id": 1,
        "status": "New",
        "message": text(f"the audit log is {verification.status}: {what}"),
        "metadata": {
            "version": e.VERSION,
            "product": {"name": "licet", "vendor_name": "licet"},
            "profiles": ["security_control"],
            "uid": f"{log}#verification",
            "log_name": log,
        },
        "finding_info": {
            "uid": f"{log}#verification",
            "title": f"audit log {verification.status}",
            "desc": text(what),
            "analytic": {"type_id": 5, "type": "Fingerprinting", "name": "licet audit verify"},
        },
        "is_alert": True,
        "resources": [{"uid": log, "type": "audit log"}],
        "unmapped": {
            "claims": {claim.name: claim.ok for claim in verification.claims},
            "first_bad_seq": verification.first_bad_seq,
            "first_bad_byte": verification.first_bad_byte,
        },
    }


def _started(record: Record, run: _Run) -> Event:
    backend = record.entry.body.get("backend")
    return e.event(
        e.EXECUTE if run.is_script else e.LAUNCH,
        record,
        severity=Severity.informational,
        status=Status.success,
        message=f"code starts in `{backend}`",
        **e.allowed(),
        **_what(record, run),
    )


def _ended(record: Record, run: _Run) -> Event:
    body = record.entry.body
    termination = str(body.get("termination"))
    status = Status.success if body.get("success") is True else Status.failure
    severity = Severity.informational
    if termination in FAULTS:
        severity, status = Severity.high, Status.unknown if termination == "unknown" else status
    elif termination in _LIMITS:
        severity = Severity.low
    code = body.get("exit_code")
    ending: Event = {"exit_code": code} if type(code) is int and not run.is_script else {}
    return e.event(
        e.EXECUTED if run.is_script else e.TERMINATE,
        record,
        severity=severity,
        status=status,
        message=f"code ended: {termination}",
        status_code=termination,
        **ending,
        **_what(record, run),
    )


def _refused(record: Record, run: _Run) -> Event:
    body = record.entry.body
    termination = str(body.get("termination"))
    fault = termination in FAULTS
    return e.event(
        e.LAUNCH,
        record,
        severity=Severity.high if fault else Severity.medium,
        status=Status.failure,
        message=f"nothing ran: {body.get('detail') or termination}",
        status_code=termination,
        status_detail=text(body.get("detail") or termination),
        **e.blocked(),
        **_what(record, run),
    )


def _called(before: Record, record: Record, run: _Run, outcome: object) -> Event:
    body = before.entry.body
    effect = str(body.get("effect") or "refused")  # a call that can't be made is not decided
    tool = text(body.get("tool"))
    ended = None if outcome in UNCERTAIN or not isinstance(outcome, str) else outcome
    status = {"returned": Status.success, None: Status.unknown}.get(ended, Status.failure)
    made = effect == "allow" or (effect == "ask" and outcome in _MADE)
    disposition = e.allowed() if made else e.blocked()
    return e.event(
        e.CALL,
        record,
        part="" if outcome is not None else "unknown",
        severity=Severity.informational if made else Severity.medium,
        status=status,
        message=f"code calls the tool `{tool}`: {outcome or 'nobody knows how it ended'}",
        status_code=str(outcome or "unknown"),
        **disposition,
        authorizations=[{"decision": effect, **_policy(run)}],
        actor=e.actor(run.request),
        api={
            "operation": tool,
            "service": {"name": "licet", "uid": before.entry.run_id},
            "request": {"uid": text(body.get("call_digest") or "")},
        },
        src_endpoint=e.endpoint(record),
        **_policy(run),
    )


def _approved(record: Record, run: _Run) -> Event:
    body = record.entry.body
    said, status = _TOLD[str(body.get("event"))]
    answer, person = body.get("answer"), body.get("person")
    actor = e.person(person) if isinstance(person, Mapping) else e.actor(run.request)
    decision = {"decision": text(answer or said), **_policy(run)}
    return e.event(
        e.APPROVAL,
        record,
        severity=Severity.informational if status is not Status.failure else Severity.medium,
        status=status,
        message=f"approval `{text(body.get('approval'))}` {said}{f': {answer}' if answer else ''}",
        status_code=said,
        status_detail=text(body.get("reason") or "") or None,
        authorizations=[decision],
        actor=actor,
        api={
            "operation": f"approval {body.get('event')}",
            "service": {"name": "licet", "uid": record.entry.run_id},
            "request": {"uid": text(body.get("approval") or "")},
        },
        src_endpoint=e.endpoint(record),
        **_policy(run),
    )


def _refuted(record: Record) -> Iterator[Event]:
    body = record.entry.body
    backend = text(body.get("backend"))
    for result in filter(is_refuted, objects(body, "results")):
        attack = text(result.get("attack"))
        yield e.event(
            e.FOUND,
            record,
            part=attack,
            severity=Severity.high,
            status=Status.success,
            message=f"`{backend}` claims what the attack `{attack}` got through",
            is_alert=True,
            finding_info={
                "uid": f"{record.log}/{record.seq}#{attack}",
                "title": f"claim of sandbox refuted: {attack}",
                "desc": text(f"observed: {result.get('observed')}; without walls: {result.get('twin')}"),
                "types": ["sandbox escape"],
                "analytic": {"type_id": 2, "type": "Behavioral", "name": attack, "uid": attack},
            },
            resources=[{"name": backend, "type": "sandbox backend", "version": text(body.get("version"))}],
        ) | {"status_id": 1, "status": "New"}


def _what(record: Record, run: _Run) -> Event:
    """Who and what an event about a run is about."""
    about: Event = {"actor": e.actor(run.request), "device": e.device(record), **_policy(run)}
    if run.is_script:
        size = run.request.get("code_bytes")
        return about | {
            "script": {
                "type_id": 3,
                "type": "Python",
                "uid": record.entry.run_id,
                "hashes": e.fingerprint(at(run.request, "digests.code")),
                "script_content": {
                    "value": "",
                    "is_truncated": True,
                    "untruncated_size": size if type(size) is int else 0,
                },
            }
        }
    backend = run.execution.entry.body.get("backend") if run.execution is not None else None
    sandbox = {"sandbox": backend} if isinstance(backend, str) else {}
    return about | {"process": {"uid": record.entry.run_id, "name": "python", **sandbox}}


def _policy(run: _Run) -> Event:
    name, digest = run.decision.get("policy"), run.decision.get("policy_digest")
    if not isinstance(name, str):
        return {}
    return {
        "policy": {"name": name, "is_applied": True} | ({"uid": digest} if isinstance(digest, str) else {})
    }
