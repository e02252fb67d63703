"""What running code did, as far as its sandbox surfaced it: calls of tools, files, connections, its end.

Rules this module keeps:

- the two records of a call belong together by its number, and a call without the second one says so;
- a denied access comes before the granted ones, since there may be more of them than a page shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from licet.record import Record
from licet.units import show_size
from licet.workbench.history import bodies

from licet_audit.report import deciding, words
from licet_audit.report.safe import Part, part
from licet_audit.timeline import show_time, since

_MOST = 100
_USED = ("wall_time", "cpu_time", "peak_memory", "bytes_written")
_SECONDS = frozenset({"wall_time", "cpu_time", "timeout", "cpu_time_limit"})
_COUNTS = frozenset({"recursion", "tool_calls", "processes", "process_count_limit"})


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool; `took` is between its two records, None if the second is missing."""

    seq: int
    number: int | None
    tool: str
    effect: words.Label
    outcome: str | None
    reason: str
    digest: str
    took: str | None
    rules: Part[deciding.Rule]


@dataclass(frozen=True, slots=True)
class Access:
    """One file or connection that was asked for while the code ran."""

    seq: int
    action: str
    target: str
    allowed: bool | None


@dataclass(frozen=True, slots=True)
class Fact:
    """A named value, and a digest that belongs to it."""

    name: str
    value: str
    digest: str = ""


def calls(records: Sequence[Record]) -> Part[Call]:
    """The calls of tools, in order."""
    return part(_calls(records), _MOST)


def accesses(records: Sequence[Record]) -> Part[Access]:
    """The files and connections, denied ones first, and last the readings of the clock."""
    found = [_access(one) for one in records if one.entry.kind == "access" and one.entry.phase is None]
    return part(sorted(found, key=lambda one: (one.allowed is not False, one.action == "clock")), _MOST)


def ending(body: Mapping[str, Any]) -> tuple[Fact, ...]:
    """What the record of a result says: code's exit, use, output."""
    error = body.get("error")
    usage = body.get("usage")
    digests = body.get("digests")
    facts = [
        Fact("detail", bodies.text(body, "detail") or ""),
        Fact("exit code", _number(body.get("exit_code"))),
    ]
    if isinstance(error, Mapping):
        line = bodies.line(error.get("line"))
        at = f", line {line}" if line is not None else ""
        facts.append(Fact("error", f"{bodies.text(error, 'type') or '?'}{at}"))
    if isinstance(usage, Mapping):
        facts += [
            Fact(name.replace("_", " "), quantity(name, usage[name]))
            for name in _USED
            if usage.get(name) is not None
        ]
    for stream in ("stdout", "stderr"):
        size = bodies.line(body.get(f"{stream}_bytes"))
        cut = ", truncated" if body.get(f"{stream}_truncated") is True else ""
        facts.append(Fact(stream, "" if size is None else f"{size} bytes{cut}"))
    if isinstance(digests, Mapping):
        facts += [Fact(f"digest of {name}", "", str(value)) for name, value in digests.items()]
    return tuple(fact for fact in facts if fact.value or fact.digest)


def quantity(name: str, value: object) -> str:
    """A limit, or what was used of it, with its unit; what is no number as it is."""
    try:
        number = float(str(value))
    except ValueError:
        return str(value)
    if name in _SECONDS:
        return f"{number:.6g} s"
    return str(value) if name in _COUNTS or not 0 <= number < 2**53 else show_size(int(number))


def _calls(records: Sequence[Record]) -> Iterator[Call]:
    ends = {
        bodies.line(one.entry.body.get("sequence")): one
        for one in records
        if one.entry.kind == "tool_call" and one.entry.phase == "after"
    }
    for one in records:
        body = one.entry.body
        if one.entry.kind != "tool_call" or one.entry.phase == "after":
            continue
        number = bodies.line(body.get("sequence"))
        end, verdict = ends.get(number), body.get("verdict")
        yield Call(
            seq=one.seq,
            number=number,
            tool=bodies.text(body, "tool") or "?",
            effect=words.effect(bodies.text(body, "effect")),
            outcome=None if end is None else bodies.text(end.entry.body, "outcome"),
            reason=(bodies.text(verdict, "reason") or "") if isinstance(verdict, Mapping) else "",
            digest=bodies.text(body, "call_digest") or "",
            took=None if end is None or (took := since(one, end)) is None else show_time(took),
            rules=deciding.rules(body),
        )


def _access(record: Record) -> Access:
    body = record.entry.body
    allowed = body.get("allowed")
    return Access(
        record.seq,
        bodies.text(body, "action") or "?",
        bodies.text(body, "target") or "?",
        allowed if isinstance(allowed, bool) else None,
    )


def _number(value: object) -> str:
    return str(value) if type(value) is int else ""
