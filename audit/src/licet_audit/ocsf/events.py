"""Events of OCSF: what all have in common, and the classes that are used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from licet.record import Record
from licet.telemetry.attributes import attributes
from licet.telemetry.spans import nanoseconds, place, record_id
from licet.telemetry.values import text

VERSION = "1.8.0"

Event = dict[str, Any]


class Severity(IntEnum):
    """`severity_id`."""

    informational = 1
    low = 2
    medium = 3
    high = 4
    critical = 5


class Status(IntEnum):
    """`status_id`."""

    unknown = 0
    success = 1
    failure = 2


@dataclass(frozen=True, slots=True)
class Activity:
    """One activity of one class."""

    class_uid: int
    class_name: str
    category_uid: int
    category_name: str
    activity_id: int
    activity_name: str

    def as_json(self) -> Event:
        """The fields of the classification."""
        return {
            "class_uid": self.class_uid,
            "class_name": self.class_name,
            "category_uid": self.category_uid,
            "category_name": self.category_name,
            "activity_id": self.activity_id,
            "activity_name": self.activity_name,
            "type_uid": self.class_uid * 100 + self.activity_id,
            "type_name": f"{self.class_name}: {self.activity_name}",
        }


_SYSTEM = (1, "System Activity")
LAUNCH = Activity(1007, "Process Activity", *_SYSTEM, 1, "Launch")
TERMINATE = Activity(1007, "Process Activity", *_SYSTEM, 2, "Terminate")
EXECUTE = Activity(1009, "Script Activity", *_SYSTEM, 1, "Execute")
EXECUTED = Activity(1009, "Script Activity", *_SYSTEM, 99, "End")
CALL = Activity(6003, "API Activity", 6, "Application Activity", 99, "Call")
APPROVAL = Activity(6003, "API Activity", 6, "Application Activity", 99, "Approval")
FOUND = Activity(2004, "Detection Finding", 2, "Findings", 1, "Create")


def event(
    activity: Activity,
    record: Record,
    *,
    severity: Severity,
    status: Status,
    message: str,
    part: str = "",
    **fields: Any,
) -> Event:
    """An event about a record; `part` tells several about one record apart."""
    entry = record.entry
    profiles = ["security_control"] if "action_id" in fields else []
    return {
        **activity.as_json(),
        "time": nanoseconds(entry.time) // 1_000_000,
        "severity_id": severity.value,
        "severity": severity.name.capitalize(),
        "status_id": status.value,
        "status": status.name.capitalize(),
        "message": text(message),
        "metadata": {
            "version": VERSION,
            "product": _some(name="licet", vendor_name="licet", version=record.writer.get("version")),
            "profiles": profiles,
            "uid": record_id(record) + (f"#{part}" if part else ""),
            "sequence": record.seq,
            "log_name": record.log,
            "event_code": entry.kind,
            "original_time": entry.time,
            **({"correlation_uid": entry.run_id} if entry.run_id else {}),
        },
        **{name: value for name, value in fields.items() if value not in (None, {}, [])},
        "unmapped": _listed(attributes(entry.kind, entry.body) | place(record)),
    }


def device(record: Record) -> Event:
    """The host that wrote a record."""
    return {"type_id": 0, "type": "Unknown", "hostname": _host(record)}


def endpoint(record: Record) -> Event:
    """The same, where a call comes from."""
    return {"hostname": _host(record)}


def actor(request: Mapping[str, Any]) -> Event:
    """For whom a run is, from the body of its request."""
    subject = request.get("subject")
    known: Mapping[str, Any] = subject if isinstance(subject, Mapping) else {}
    kind = known.get("type")
    groups = known.get("groups")
    user = _some(
        uid=text(known.get("id") or "unknown"),
        type_id={"user": 1, "service": 4}.get(str(kind), 99 if kind else 0),
        type=kind if isinstance(kind, str) else None,
        groups=[{"name": text(group)} for group in groups] if isinstance(groups, list) and groups else None,
    )
    session = known.get("session")
    return _some(app_name="licet", user=user, session={"uid": session} if isinstance(session, str) else None)


def person(body: Mapping[str, Any]) -> Event:
    """Who answered, from the body of an answer."""
    human = body.get("reviewer") == "human"
    return actor({"subject": {**body, "type": "user" if human else "unknown"}})


def allowed() -> Event:
    """The disposition of what was let through."""
    return {"action_id": 1, "action": "Allowed", "disposition_id": 1, "disposition": "Allowed"}


def blocked() -> Event:
    """The disposition of what was refused."""
    return {"action_id": 2, "action": "Denied", "disposition_id": 2, "disposition": "Blocked"}


def fingerprint(digest: object) -> list[Event]:
    """A keyed digest as the hash of something."""
    if not isinstance(digest, str) or ":" not in digest:
        return []
    algorithm, _, value = digest.partition(":")
    return [{"algorithm_id": 99, "algorithm": algorithm, "value": value}]


def _host(record: Record) -> str:
    host = record.writer.get("host")
    return host if isinstance(host, str) and host else "unknown"


def _some(**fields: Any) -> Event:
    return {name: value for name, value in fields.items() if value is not None}


def _listed(found: Mapping[str, Any]) -> Event:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}
