"""What a record of an approval says, in words; see `telling`, whose rules hold here too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from licet import units
from licet.workbench.history.bodies import mappings, text, texts

from licet_audit.telling import SAID_BY, Told, Tone, told

Body = Mapping[str, Any]

_TONES: dict[str, Tone] = {
    "granted": "good",
    "denied": "bad",
    "expired": "bad",
    "withdrawn": "warn",
    "revoked": "bad",
    "failed_to_start": "warn",
    "unknown": "warn",
    "consuming": "faint",
}

_ENDINGS = {
    "executed": "ran",
    "failed_to_start": "did not start, and is spent",
    "unknown": "is spent, and may have run: its process died",
}


def approval(body: Body) -> Iterator[Told]:
    """The lines of one record."""
    event = text(body, "event") or "?"
    name = text(body, "approval") or "?"
    match event:
        case "asked":
            yield from _asked(body, name)
        case "answered":
            yield from _answered(body, name)
        case "granted":
            yield told("granted", f"{name} by {_persons(body.get('by'))}, {reach(body.get('reach'))}", "good")
        case "denied" | "expired" | "withdrawn" | "revoked":
            by = text(body, "by")
            who = f" by {by}" if by else ""
            # nobody has to give a reason
            why = "" if body.get("reason") == "" else f": {text(body, 'reason') or '?'}"
            yield told(event, f"{name}{who}{why}", _TONES[event])
        case "waiting":
            held = _suspended(body)
            yield told("waits", f"for {name}{held}; its process may end, and there is no result yet", "warn")
        case "resumed":
            yield told("resumed", f"{name} was answered, and the run goes on here")
        case "consuming" | "consumed" | "executed" | "failed_to_start" | "unknown":
            yield told("approval", f"{name}: {_use(body, event)}", _TONES.get(event, "plain"))
        case _:
            yield told("approval", ", ".join(f"{key} {value}" for key, value in body.items()), "warn")


def requirement(demand: Body) -> str:
    """What one asking entry demands: `2 human persons of finance`."""
    count = demand.get("count")
    kind = "human " if demand.get("reviewer") == "human" else ""
    groups = " or ".join(texts(demand.get("from")))
    noun = "person" if count == 1 else "persons"
    return f"{count} {kind}{noun}{f' of {groups}' if groups else ''}"


def answerer(person: object) -> str:
    """Who answered, and who says so."""
    if not isinstance(person, Mapping):
        return "?"
    groups = texts(person.get("groups"))
    parts = [
        text(person, "id") or "?",
        *([f"tenant {tenant}"] if (tenant := text(person, "tenant")) else []),
        *([f"in {', '.join(groups)}"] if groups else []),
        "a person was seen to act" if person.get("reviewer") == "human" else "maybe a program",
        SAID_BY.get(str(person.get("asserted_by")), "nobody vouches for that"),
    ]
    return ", ".join(parts)


def reach(found: object) -> str:
    """How far a grant or a yes reaches."""
    if not isinstance(found, Mapping):
        return "reaching ?"
    uses, scope = found.get("uses"), text(found, "scope") or "?"
    vary = texts(found.get("vary"))
    parts = [
        {"once": "for this once", "session": "for this session", "shape": "for this shape"}.get(scope, scope),
        *([f"whatever {', '.join(vary)}"] if vary else []),
        *([f"{uses} uses at most" if uses is not None else "any number of uses"] if scope != "once" else []),
        *([f"within {seconds(found['expires'])}"] if found.get("expires") is not None else []),
    ]
    return ", ".join(parts)


def seconds(value: object) -> str:
    """A time that a record holds as text."""
    try:
        return units.show_duration(float(str(value)))
    except (ValueError, OverflowError):
        return str(value)


def _asked(body: Body, name: str) -> Iterator[Told]:
    what = f"call {body.get('sequence')}" if body.get("of") == "call" else "the run"
    services = texts(body.get("services"))
    asked = f" by {', '.join(services)}" if services else ", and nobody is there to ask"
    yield told("asks", f"to approve {what}{asked}, within {seconds(body.get('expires'))} ({name})", "warn")
    for demand in mappings(body.get("requirements")):
        yield told("  needs", requirement(demand))
    yield told("  shown", str(body.get("shown")), "faint")
    yield told("  for", str(body.get("digest")), "faint")


def _answered(body: Body, name: str) -> Iterator[Told]:
    approves = body.get("answer") == "approve"
    own = " (who asked)" if body.get("self") is True else ""
    said = f"{answerer(body.get('person'))}{own}, through {text(body, 'service') or '?'}"
    tone: Tone = "good" if approves else "bad"
    counts = body.get("counts") is True
    yield told("yes" if approves else "no", f"to {name} from {said}", tone if counts else "warn")
    if not counts:
        yield told("  but", f"it does not count: {text(body, 'objection') or '?'}", "warn")
    if reason := text(body, "reason"):
        yield told("  saying", reason)
    if approves:
        yield told("  reach", reach(body), "faint")


def _persons(by: object) -> str:
    return " and ".join(texts(by)) or "?"


def _suspended(body: Body) -> str:
    size = body.get("suspended_bytes")
    if body.get("suspended") is not True:
        return ""
    shown = units.show_size(size) if isinstance(size, int) and 0 <= size < 2**53 else "?"
    return f", with its code written down ({shown})"


def _use(body: Body, event: str) -> str:
    use = f"use {body.get('use')}"
    if event == "consuming":
        return f"{use} is about to be spent on {body.get('digest')}"
    if event == "consumed":
        return f"{use} is spent, as #{body.get('consuming')} said"
    return f"{use} {_ENDINGS.get(event, 'is spent')}"
