"""What the records of one run say, ordered for a reader.

Rules this module keeps:

- a card is made from the records alone, never from the index that found them;
- a body may hold anything; what is missing or of another type is left out, or shown as `?`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from licet.record import Record
from licet.workbench.history import bodies

from licet_audit import timeline
from licet_audit.index.rows import DENIED, WAITING
from licet_audit.report import acting, approving, deciding, protecting, words
from licet_audit.report.acting import Fact
from licet_audit.report.safe import Content, Part, part, worded

_MOST = 200
_MOST_REASONS = 6


@dataclass(frozen=True, slots=True)
class Proof:
    """One record of a run: when it was written, what it tells, and what names it in the tree."""

    seq: int
    kind: str
    after: str
    told: str
    leaf: str


@dataclass(frozen=True, slots=True)
class KeptContent:
    """Content that is committed to: its text, or why it is not shown."""

    name: str
    commitment: str
    text: Content | None
    why_not: str | None


@dataclass(frozen=True, slots=True)
class RunCard:
    """All that a report shows of one run."""

    run_id: str
    first_seq: int
    last_seq: int
    began: str
    effect: words.Label
    end: words.Label
    who: str
    behalf: str | None
    whom: tuple[Fact, ...]
    what: tuple[Fact, ...]
    why: Part[str]
    deciding: deciding.Deciding | None
    authorization: tuple[Fact, ...]
    approvals: tuple[approving.Approval, ...]
    protecting: protecting.Protecting
    calls: Part[acting.Call]
    accesses: Part[acting.Access]
    ending: tuple[Fact, ...]
    contents: tuple[KeptContent, ...]
    proofs: Part[Proof]
    writer: str
    executed: bool
    denials: int

    @property
    def tone(self) -> str:
        """The colour of a card: of a denial, of its end where that is no good one, or of its decision."""
        if self.denials:
            return "bad"
        return self.effect.tone if self.end.tone == "good" else self.end.tone


ReadContent = Callable[[str], bytes | None]
"""Reads kept content by its commitment; None if it is gone."""


def card(records: Sequence[Record], read: ReadContent | None = None) -> RunCard:
    """Order what the records of one run say; `read` lets kept content be shown."""
    request, decision, result = (_body(records, kind) for kind in ("request", "decision", "result"))
    authorization = _body(records, "authorization") or {}
    is_probe = request is None and any(one.entry.kind == "probe" for one in records)
    effect = "probe" if is_probe else bodies.text(decision or {}, "effect")
    ended = bodies.text(result or {}, "termination")
    attacks = next((one.entry.body for one in reversed(records) if "results" in one.entry.body), None)
    if is_probe and attacks is not None:
        ended = f"{attacks.get('leaked')} refuted"
    if timeline.waits(records):
        ended = WAITING
    elif timeline.was_denied(records):
        ended = DENIED
    subject = (request or {}).get("subject")
    return RunCard(
        run_id=records[0].entry.run_id,
        first_seq=records[0].seq,
        last_seq=records[-1].seq,
        began=records[0].entry.time,
        effect=words.effect(effect),
        end=words.end(ended),
        who=(bodies.text(subject, "id") if isinstance(subject, Mapping) else None) or "?",
        behalf=bodies.text(subject, "on_behalf_of") if isinstance(subject, Mapping) else None,
        whom=tuple(_whom(subject)),
        what=tuple(_what(request or {})),
        why=part(_why(decision or {}, result or {}, records), _MOST_REASONS),
        deciding=None if decision is None else deciding.deciding(decision),
        authorization=tuple(_named(authorization, ("state", "reason"))),
        approvals=approving.approvals(records, read),
        protecting=protecting.protecting(records),
        calls=acting.calls(records),
        accesses=acting.accesses(records),
        ending=acting.ending(result or {}),
        contents=tuple(_contents(records, read)),
        proofs=part(_proofs(records), _MOST),
        writer=_writer(records[-1].writer),
        denials=sum(map(_is_denial, records)),
        executed=any(one.entry.kind == "execution" for one in records),
    )


def _whom(subject: object) -> Iterator[Fact]:
    if not isinstance(subject, Mapping):
        return
    yield from _named(
        subject, ("id", "type", "tenant", "on_behalf_of", "asserted_by", "session", "groups", "properties")
    )


def _what(request: Mapping[str, Any]) -> Iterator[Fact]:
    digests = request.get("digests")
    size = bodies.line(request.get("code_bytes"))
    code = digests.get("code") if isinstance(digests, Mapping) else None
    yield Fact("code", f"{'?' if size is None else f'{size:,}'} bytes", str(code or ""))
    intents = request.get("intents")
    listed = ", ".join(bodies.texts(intents)) if intents is not None else "all that the policy allows"
    yield Fact("intents", listed or "run alone")
    yield from _named(
        request, ("tools", "inputs", "imports", "environment", "requirements", "metadata"), rest=False
    )
    for name in ("asked_limits", "limits"):
        if value := _limits(request.get(name)):
            yield Fact(name.replace("_", " "), value)
    if workdir := bodies.text(request, "workdir"):
        yield Fact("workdir", workdir)
    versions = ((name, bodies.text(request, name)) for name in ("licet", "screen"))
    yield Fact("decided by", ", ".join(f"{name} {value}" for name, value in versions if value) or "?")


def _why(decision: Mapping[str, Any], result: Mapping[str, Any], records: Sequence[Record]) -> Iterator[str]:
    ended = bodies.text(result, "termination")
    known = list(deciding.reasons(decision))
    yield from known
    for one in acting.calls(records).items:
        if one.effect.text != "allowed":
            yield f"call of {one.tool} {one.effect.text}: {one.reason}"
    for access in acting.accesses(records).items:
        if access.allowed is False:
            yield f"{access.action} {access.target} denied while it ran"
    if (detail := bodies.text(result, "detail")) and not (known and ended == "policy_denied"):
        yield detail
    elif isinstance(error := result.get("error"), Mapping):
        yield f"the code raised {bodies.text(error, 'type') or '?'}"
    if timeline.waits(records):
        yield "it waits for an approval"
    elif timeline.was_denied(records):
        yield "it waited for an approval that it did not get"
    elif not result and any(one.entry.kind == "execution" for one in records):
        yield "it began, and no record says how it ended"


def _contents(records: Sequence[Record], read: ReadContent | None) -> Iterator[KeptContent]:
    for record in records:
        for name, commitment in record.kept.items() if record.entry.kind != "approval" else ():
            if read is None:
                yield KeptContent(str(name), str(commitment), None, "kept, not shown in this report")
                continue
            try:
                data = read(str(commitment))
            except ValueError:
                data = None
            if data is None:
                yield KeptContent(str(name), str(commitment), None, "erased, or not what was committed to")
            else:
                yield KeptContent(str(name), str(commitment), Content(data.decode("utf-8", "replace")), None)


def _is_denial(record: Record) -> bool:
    entry = record.entry
    if entry.kind == "access" and entry.phase is None:
        return entry.body.get("allowed") is not True
    return entry.kind == "tool_call" and entry.phase == "before" and entry.body.get("effect") == "deny"


def _proofs(records: Sequence[Record]) -> Iterator[Proof]:
    told = {row.seq: f"{row.what.strip()}: {row.text}" for row in timeline.rows(records) if row.first}
    for record in records:
        entry, after = record.entry, timeline.since(records[0], record)
        kind = f"{entry.kind}, {entry.phase}" if entry.phase else entry.kind
        since = "?" if after is None else timeline.show_time(after)
        yield Proof(record.seq, kind.replace("_", " "), since, told.get(record.seq, ""), record.leaf)


def _body(records: Sequence[Record], kind: str) -> Mapping[str, Any] | None:
    return next((one.entry.body for one in reversed(records) if one.entry.kind == kind), None)


def _named(body: Mapping[str, Any], first: Sequence[str], *, rest: bool = True) -> Iterator[Fact]:
    """What a body says under some names, and then, with `rest`, under all others."""
    for name in (*first, *(sorted(body.keys() - set(first)) if rest else ())):
        if value := worded(body.get(name)):
            yield Fact(name.replace("_", " "), value.replace("_", " ") if name == "state" else value)


def _limits(limits: object) -> str:
    if not isinstance(limits, Mapping):
        return ""
    return ", ".join(
        f"{str(name).replace('_', ' ')} {acting.quantity(str(name), value)}" for name, value in limits.items()
    )


def _writer(writer: Mapping[str, Any]) -> str:
    """Who wrote a record, in a sentence; what the writer does not say is left out."""
    told = (
        ("", "user"),
        ("on ", "host"),
        ("as process ", "pid"),
        ("with licet ", "version"),
        ("clock ", "clock"),
        ("boot ", "boot"),
        ("writer ", "instance"),
    )
    return ", ".join(f"{word}{worded(writer[name])}" for word, name in told if writer.get(name) is not None)
