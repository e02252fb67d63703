"""The approvals of a run: what was asked and shown, who answered, who vouches for them, what came of it.

Rules this module keeps:

- a card is made of the records of the run alone; what another run asked for is told by the uses alone;
- what was shown is content: it is there only where it is kept, and the reader asked for it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from licet.record import Record
from licet.workbench.history import bodies

from licet_audit import telling_approvals as words
from licet_audit.report.acting import Fact
from licet_audit.report.safe import Content, Part, part
from licet_audit.report.words import Label
from licet_audit.timeline import show_time, since

_MOST = 50
_STATES = {
    "granted": Label("granted", "", "good"),
    "denied": Label("denied", "", "bad"),
    "expired": Label("expired", "", "bad"),
    "withdrawn": Label("withdrawn", "", "warn"),
    "revoked": Label("revoked", "", "bad"),
    "consumed": Label("granted and spent", "", "good"),
    "executed": Label("granted, spent, and it ran", "", "good"),
    "failed_to_start": Label("granted and spent, but it did not start", "", "warn"),
    "unknown": Label("granted and spent; its process died, so it may have run", "", "warn"),
}
_PENDING = Label("nobody has decided", "", "warn")
_ELSEWHERE = Label("another run asked for it", "", "quiet")

ReadContent = Callable[[str], bytes | None]


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer; `took` is since the asking."""

    seq: int
    approves: bool
    who: str
    said: str
    service: str
    reach: str
    objection: str | None
    took: str | None


@dataclass(frozen=True, slots=True)
class Approval:
    """One approval; `shown` is what people were shown, `why_not` why it is not here."""

    name: str
    state: Label
    facts: tuple[Fact, ...]
    answers: Part[Answer]
    steps: Part[str]
    shown: Content | None
    why_not: str | None


def approvals(records: Sequence[Record], read: ReadContent | None) -> tuple[Approval, ...]:
    """The approvals that these records of one run tell of, in order."""
    found: dict[str, list[Record]] = {}
    for one in records:
        if one.entry.kind == "approval":
            found.setdefault(bodies.text(one.entry.body, "approval") or "?", []).append(one)
    return tuple(_approval(name, told, read) for name, told in found.items())


def _approval(name: str, told: Sequence[Record], read: ReadContent | None) -> Approval:
    asked = next((one for one in told if one.entry.body.get("event") == "asked"), None)
    state = _PENDING if asked is not None else _ELSEWHERE
    for one in told:
        state = _STATES.get(str(one.entry.body.get("event")), state)
    shown, why_not = _shown(asked, read)
    answers = (_answer(one, asked) for one in told if one.entry.body.get("event") == "answered")
    steps = (
        f"#{one.seq} {line.what.strip()}: {line.text}"
        for one in told
        if one.entry.body.get("event") not in ("asked", "answered")
        for line in words.approval(one.entry.body)
    )
    facts = tuple(_facts(asked.entry.body)) if asked is not None else ()
    return Approval(name, state, facts, part(answers, _MOST), part(steps, _MOST), shown, why_not)


def _facts(asked: Mapping[str, Any]) -> Iterator[Fact]:
    number = bodies.line(asked.get("sequence"))
    what = "the run" if asked.get("of") != "call" else f"call {'?' if number is None else number}"
    yield Fact("of", what, bodies.text(asked, "digest") or "")
    needed = "; ".join(words.requirement(one) for one in bodies.mappings(asked.get("requirements")))
    yield Fact("needed", needed or "?")
    requester = asked.get("requester")
    if isinstance(requester, Mapping):
        behalf = bodies.text(requester, "on_behalf_of")
        yield Fact("asked for", (bodies.text(requester, "id") or "?") + (f", for {behalf}" if behalf else ""))
    yield Fact("within", words.seconds(asked.get("expires")))
    yield Fact("through", ", ".join(bodies.texts(asked.get("services"))) or "nobody")
    yield Fact("shown", "", bodies.text(asked, "shown") or "")


def _answer(record: Record, asked: Record | None) -> Answer:
    body = record.entry.body
    took = since(asked, record) if asked is not None else None
    counts = body.get("counts") is True
    return Answer(
        seq=record.seq,
        approves=body.get("answer") == "approve",
        who=words.answerer(body.get("person")) + (" (who asked)" if body.get("self") is True else ""),
        said=bodies.text(body, "reason") or "",
        service=bodies.text(body, "service") or "?",
        reach=words.reach(body),
        objection=None if counts else bodies.text(body, "objection") or "?",
        took=None if took is None else show_time(max(took, 0.0)),
    )


def _shown(asked: Record | None, read: ReadContent | None) -> tuple[Content | None, str | None]:
    """What people were shown, a line a field, as far as it is kept."""
    commitment = asked.kept.get("shown") if asked is not None else None
    if commitment is None:
        return None, None
    if read is None:
        return None, "kept, not shown in this report"
    try:
        data = read(str(commitment))
    except ValueError:
        data = None
    if data is None:
        return None, "erased, or not what was committed to"
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return Content(data.decode("utf-8", "replace")), None
    return Content("\n".join(_lines(document))), None


def _lines(document: Any) -> Iterator[str]:
    if not isinstance(document, dict):
        yield json.dumps(document, ensure_ascii=False)
        return
    for name, value in document.items():
        if isinstance(value, str) and "\n" in value:
            yield f"{name}:"
            yield from (f"    {line}" for line in value.split("\n"))
        else:
            yield f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
