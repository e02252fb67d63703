"""What one record says, in words: for people who review a run and don't know how records are built.

Rules this module keeps:

- it tells what the record says and concludes nothing; what it does not say is called unknown;
- a body may hold anything: what is missing or of another type is left out or told as `?`, never a crash;
- text is as it was recorded: whoever shows it escapes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from licet import units
from licet.cli import because
from licet.output import bounded
from licet.result import UNCERTAIN
from licet.workbench.history.bodies import line, mappings, text, texts

from licet_audit.event_words import event_words

Tone = Literal["good", "bad", "warn", "plain", "faint"]
"""`faint` is what most readers skip: digests, versions, what was not asked for."""

_MOST = 2000  # characters of one line
_MOST_CHANGES = 100  # files of one commit that are named
_WIDEST = 40  # characters of a label
SAID_BY = {
    "caller": "the caller says so",
    "os": "the operating system says so",
    "token": "a token says so",
    "mcp": "an MCP client says so",
}
"""Who vouches for a person, by `asserted_by`."""
_DECIDED: dict[str, tuple[str, Tone]] = {
    "allow": ("allowed", "good"),
    "ask": ("needs an approval", "warn"),
    "deny": ("denied", "bad"),
}
_SEEN = {"inferred": "seen in the code", "declared": "asked for", "granted": "offered by the policy"}


@dataclass(frozen=True, slots=True)
class Told:
    """One line: a label, what is said, and how it should strike the reader."""

    what: str
    text: str
    tone: Tone = "plain"


def told(what: str, said: str, tone: Tone = "plain") -> Told:
    """A line of bounded length; a label that is too long for one is said whole."""
    if len(what) > _WIDEST:
        what, said = bounded(what, _WIDEST), f"{what.strip()}: {said}"
    return Told(what, bounded(said, _MOST), tone)


def show_time(seconds: float) -> str:
    """A time between steps, with enough digits to tell them apart: `0.8 ms`, `12 ms`, `1.5 s`."""
    if abs(seconds) < 0.01:
        return f"{seconds * 1000:.1f} ms"
    return units.show_duration(seconds) if seconds >= 0 else f"{seconds:.1f} s"


def request(body: Mapping[str, Any]) -> Iterator[Told]:
    """Who asks for whom, and what exactly."""
    subject = body.get("subject")
    yield told("asked by", _subject(subject) if isinstance(subject, dict) else "? (the record does not say)")
    if (of := text(body, "rerun_of")) is not None:
        yield told("repeats", f"run {of}")
    yield told("to run", _code(body))
    intents = body.get("intents")
    if isinstance(intents, list):
        yield told("and to", ", ".join(texts(intents)) or "do nothing beside running")
    elif "intents" in body:
        yield told("and to", "do whatever the policy allows: the request lists no intents")
    for name, label in (("inputs", "with inputs"), ("tools", "with tools"), ("environment", "environment")):
        if given := texts(body.get(name)):
            yield told(label, ", ".join(given))
    if isinstance(size := body.get("stdin_bytes"), int) and size:
        yield told("with stdin", units.show_size(size))
    yield from _pairs("metadata", body.get("metadata"))
    yield told("in", text(body, "workdir") or "?")
    yield from _limits(body)
    for change in mappings(body.get("changes")):
        changed = f"{change.get('field')}: {change.get('requested')} → {change.get('effective')}"
        yield told("changed", f"{changed}, {change.get('reason')}", "warn")
    if body.get("learn") is True:
        yield told("learning", "goes on where the policy says nothing, to collect all intents", "warn")
    yield from _digests(body.get("digests"))
    yield told("versions", f"licet {body.get('licet')}, screen {body.get('screen')}", "faint")


def _subject(subject: Mapping[str, Any]) -> str:
    parts = [f"{text(subject, 'id') or '?'} ({text(subject, 'type') or '?'})"]
    if behalf := text(subject, "on_behalf_of"):
        parts.append(f"on behalf of {behalf}")
    parts += [f"{name} {value}" for name in ("tenant", "session") if (value := text(subject, name))]
    if groups := texts(subject.get("groups")):
        parts.append(f"in {', '.join(groups)}")
    properties = subject.get("properties")
    if isinstance(properties, dict):
        parts += [f"{name} {value}" for name, value in properties.items()]
    return ", ".join((*parts, SAID_BY.get(str(subject.get("asserted_by")), "nobody vouches for that")))


def _code(body: Mapping[str, Any]) -> str:
    size = body.get("code_bytes")
    imports = texts(body.get("imports"))
    imported = f", which imports {', '.join(imports)}" if imports else ", which imports nothing"
    digests = body.get("digests")
    digest = text(digests, "code") if isinstance(digests, dict) else None
    named = f" ({digest})" if digest else ""
    return f"{units.show_size(size) if isinstance(size, int) else '?'} of Python{named}{imported}"


def _limits(body: Mapping[str, Any]) -> Iterator[Told]:
    limits, asked = body.get("limits"), body.get("asked_limits")
    if isinstance(limits, dict):
        yield told("within", ", ".join(f"{name} {_limit(name, value)}" for name, value in limits.items()))
    if isinstance(asked, dict) and asked:
        yield told("asked for", ", ".join(f"{name} {_limit(name, value)}" for name, value in asked.items()))


def _limit(name: str, value: object) -> str:
    try:
        return units.show_limit(name, value if isinstance(value, int) else float(str(value)))
    except (ValueError, OverflowError):
        return str(value)


def _digests(digests: object) -> Iterator[Told]:
    if isinstance(digests, dict):
        for name, digest in digests.items():
            yield told(f"digest of {name}", str(digest), "faint")


def _pairs(what: str, values: object) -> Iterator[Told]:
    if isinstance(values, dict) and values:
        yield told(what, ", ".join(f"{name} {value}" for name, value in values.items()))


def decision(body: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[Told]:
    """What was decided and by whom; `found` is the decision as `recounted` tells it."""
    said, tone = _DECIDED.get(str(found["effect"]), (f"? ({found['effect']})", "warn"))
    yield told("decision", f"{said} by {found['policy'] or '?'}", tone)
    for violation in found["violations"]:
        at = f"line {violation['line']}: " if line(violation.get("line")) else ""
        code = f"{at}{str(violation.get('code')).replace('_', ' ')}"
        yield (
            told("refused", code, "bad")
            if violation.get("refused") is True
            else told("noticed", code, "faint")
        )
    for verdict in found["verdicts"]:
        yield _verdict(verdict)
    for what, said in because.rows(found, everything=True):
        yield told(what, said.strip(), "warn" if what == "approval" else "plain")
    if body.get("policy_stale") is not None:
        yield told("policy", f"newer text of it is not in force: {body['policy_stale']}", "warn")
    for document in found["documents"]:
        yield told("policy", f"{document['role']} {document['file']}", "faint")
    yield told("policy", f"digest {found['policy_digest']}", "faint")


def _verdict(verdict: Mapping[str, Any]) -> Told:
    said, tone = _DECIDED.get(str(verdict["effect"]), ("?", "warn"))
    intent = verdict["intent"]
    at = f"line {intent['line']}, " if intent["line"] else ""
    seen = _SEEN.get(str(intent["source"]), "?")
    target = f" {intent['target'] if intent['target'] is not None else '(unknown)'}"
    name = f"{intent['action']}{'' if intent['action'] in ('run', 'shell') else target}"
    by = " and ".join(_by(one) for one in verdict["by"])
    grounds = f"{verdict['reason']}{f' [{by}]' if by else ''}"
    faint = verdict["effect"] == "allow" and (name == "run" or intent["source"] == "granted")
    return told(f"  {name}", f"{said} ({at}{seen}): {grounds}", "faint" if faint else tone)


def _by(one: Mapping[str, Any]) -> str:
    place = f"{one['document']}:{one['line']}" if one["line"] else str(one["document"])
    return f"{place} {one['rule']}"


def probe(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None, took: str) -> Iterator[Told]:
    """Attacks on a backend, and what came of them."""
    body = after or before or {}
    name = f"{text(body, 'backend') or '?'} ({text(body, 'version') or '?'})"
    if after is None:
        planned = len(texts(body.get("attacks")))
        yield told("attacked", f"{name} with {planned} attacks; no outcome is recorded", "warn")
        return
    counts = [f"{after.get(one)} {one}" for one in ("held", "leaked", "inconclusive", "unclaimed")]
    tone: Tone = "good" if after.get("leaked") == after.get("inconclusive") == 0 else "warn"
    if isinstance(after.get("leaked"), int) and after["leaked"]:
        tone = "bad"
    yield told("attacked", f"{name}: {', '.join(counts)}{took}", tone)
    for result in mappings(after.get("results")):
        if result.get("outcome") != "held":
            observed = f"{result.get('outcome')}: {result.get('observed')}"
            yield told(
                f"  {result.get('attack')}", observed, "bad" if result.get("claimed") is True else "faint"
            )


def selection(body: Mapping[str, Any]) -> Iterator[Told]:
    """Which sandbox was chosen, and what the others fell short of."""
    chosen = text(body, "backend")
    required = body.get("required")
    if isinstance(required, dict) and required:
        yield told("required", ", ".join(f"{name} {level}" for name, level in required.items()))
    if chosen is None:
        yield told("sandbox", "none: no backend offers what is required", "bad")
    else:
        proof = text(body, "evidence")
        grounds = f"on evidence {proof}" if proof else "on its word: no receipt of an attack was relied on"
        yield told("sandbox", f"{chosen} was chosen, {grounds}", "plain" if proof else "warn")
    for candidate in mappings(body.get("candidates")):
        name, lacks = text(candidate, "name") or "?", texts(candidate.get("blockers"))
        if lacks:
            yield told(f"  not {name}", "; ".join(lacks), "plain" if chosen is None else "faint")
        for refuted in texts(candidate.get("refuted")):
            yield told("  refuted", f"{name}: {refuted}", "bad")
    if plan := text(body, "plan_digest"):
        yield told("plan", plan, "faint")


def authorization(body: Mapping[str, Any]) -> Iterator[Told]:
    """Whether the run may go on, and who said so."""
    state = str(body.get("state"))
    tones: dict[str, Tone] = {"not_needed": "faint", "granted": "good", "pending": "warn"}
    tone = tones.get(state, "bad")
    yield told("approval", f"{state.replace('_', ' ')}: {body.get('reason')}", tone)
    for name, value in body.items():
        if name not in ("state", "reason") and value not in (None, [], {}, ""):
            yield told(f"  {name.replace('_', ' ')}", str(value))


def execution(body: Mapping[str, Any]) -> Iterator[Told]:
    """What is about to run, where, and what it can reach."""
    isolation = str(body.get("isolation")).replace("_", " ")
    walls = "no" if isolation == "none" else isolation
    yield told("starts", f"in {text(body, 'backend') or '?'} ({text(body, 'version') or '?'}), {walls} walls")
    opened = body.get("opened")
    if isinstance(opened, dict):
        reach = [f"{name} {', '.join(texts(value))}" for name, value in opened.items() if texts(value)]
        if opened.get("shell") is True:
            reach.append("shell")
        yield told("opened", "; ".join(reach) or "nothing", "plain" if reach else "faint")
    yield told("contract", str(body.get("contract")), "faint")


def tool_call(before: Mapping[str, Any], after: Mapping[str, Any] | None, took: str) -> Iterator[Told]:
    """One call of a host function: the answer, and what came of it."""
    said, tone = _DECIDED.get(str(before.get("effect")), ("?", "warn"))
    verdict = before.get("verdict")
    reason = f": {verdict.get('reason')}" if isinstance(verdict, dict) else ""
    came = f"{after.get('outcome')}{took}" if after else "no outcome is recorded"
    if (after is None and before.get("effect") == "allow") or (after and after.get("outcome") in UNCERTAIN):
        tone, came = "warn", f"{came}: it may have taken effect"
    yield told("tool", f"{before.get('tool')} (call {before.get('sequence')}) {said}{reason}; {came}", tone)
    for objection in mappings(before.get("objections")):
        yield told("  but", f"`{objection.get('intent')}`: {objection.get('reason')}", tone)
    for hit in mappings(before.get("rules")):
        yield told("  rule", f"`{hit.get('rule')}` ({hit.get('where')}): {hit.get('truth')}")
    if touched := texts(before.get("touches")):
        yield told("  touches", ", ".join(touched), "faint")
    yield told("  digest", str(before.get("call_digest")), "faint")
    if after and after.get("result_digest") is not None:
        yield told("  returned", str(after["result_digest"]), "faint")


def call_not_made(body: Mapping[str, Any]) -> Iterator[Told]:
    """A call that nobody decided, since it could not be made."""
    named = f"{body.get('tool')} (call {body.get('sequence')})"
    yield told("tool", f"{named} {body.get('outcome')}: its arguments don't fit", "warn")


def access(body: Mapping[str, Any]) -> Iterator[Told]:
    """A file access or a connection, and the answer; or readings of the clock."""
    if body.get("action") == "clock":
        count = len(texts(body.get("readings")))
        yield told("clock", f"read by {body.get('target')}" + (f", {count} times" if count != 1 else ""))
        return
    allowed = body.get("allowed") is True
    said = f"{body.get('target')}: {'allowed' if allowed else 'refused'}"
    yield told(str(body.get("action")), said, "good" if allowed else "bad")


def asked_connection(body: Mapping[str, Any]) -> Iterator[Told]:
    """A connection that people are to be asked about, and why."""
    found = body.get("verdict")
    reason = text(found, "reason") if isinstance(found, Mapping) else None
    effect = text(body, "effect") or "?"
    said = f"{body.get('target')}: {effect}{f', {reason}' if reason else ''}"
    yield told("network", said, "warn" if effect == "ask" else "bad")


def connection(body: Mapping[str, Any]) -> Iterator[Told]:
    """What came of a connection, and by which addresses."""
    outcome = text(body, "outcome") or "?"
    addresses = ", ".join(texts(body.get("addresses")))
    said = f"{body.get('target')}: {outcome}{f' by {addresses}' if addresses else ''}"
    yield told("network", said, "good" if outcome == "connected" else "bad")


def commit(body: Mapping[str, Any]) -> Iterator[Told]:
    """What is about to be written to the host."""
    changes = mappings(body.get("changes"))
    for change in changes[:_MOST_CHANGES]:
        size = change.get("bytes")
        shown = f", {units.show_size(size)}" if isinstance(size, int) and 0 <= size < 2**53 else ""
        yield told((text(change, "change") or "?").replace("_", " "), f"{text(change, 'path') or '?'}{shown}")
    if len(changes) > _MOST_CHANGES:
        yield told("", f"and {len(changes) - _MOST_CHANGES} more")


def result(body: Mapping[str, Any], took: str) -> Iterator[Told]:
    """How it ended, what it used, and what it wrote."""
    end = (text(body, "termination") or "?").replace("_", " ")
    code = body.get("exit_code")
    ended = f"{end}{f' with {code}' if code is not None else ''}{took}"
    tone: Tone = "good" if body.get("success") is True else "warn" if end == "unknown" else "bad"
    yield told("ended", ended, tone)
    if detail := text(body, "detail"):
        yield told("because", detail)
    error = body.get("error")
    if isinstance(error, dict):
        yield told("error", f"{error.get('type')} in line {error.get('line')}", "bad")
    if body.get("executed") is False:
        yield told("", "nothing ran")
    if usage := _usage(body.get("usage")):
        yield told("used", usage)
    if (writes := text(body, "writes")) not in (None, "none"):
        refused = text(body, "writes_refused")
        yield told("wrote", f"{writes}: {refused}" if refused else str(writes), "bad" if refused else "plain")
    yield from _output(body)
    if body.get("recovered") is True:
        yield told(
            "closed", f"at the next start: the process that ran it (`{body.get('instance')}`) died", "warn"
        )
    for effect in mappings(body.get("unknown_effects")):
        called = f"{effect.get('tool')} (call {effect.get('sequence')}, record #{effect.get('seq')})"
        yield told("  unknown", f"{called} may or may not have taken effect", "warn")
    yield from _digests(body.get("digests"))


def _usage(usage: object) -> str:
    if not isinstance(usage, dict):
        return ""
    shown = []
    for name, value in usage.items():
        if value is None:
            continue
        try:
            timed = name.endswith("time")
            amount = show_time(float(value)) if timed else units.show_size(int(value))
        except (ValueError, TypeError, OverflowError):
            amount = str(value)
        shown.append(f"{name.replace('_', ' ')} {amount}")
    return ", ".join(shown)


def _output(body: Mapping[str, Any]) -> Iterator[Told]:
    for stream in ("stdout", "stderr"):
        size = body.get(f"{stream}_bytes")
        if isinstance(size, int) and size:
            cut = ", shortened" if body.get(f"{stream}_truncated") is True else ""
            yield told("wrote", f"{units.show_size(size)} to {stream}{cut}")


def of_the_log(body: Mapping[str, Any]) -> Iterator[Told]:
    """What the log says of itself."""
    said = event_words(body)
    event = str(body.get("event"))
    tone: Tone = "faint" if event in ("opened", "sealed", "anchored") else "warn"
    yield told("the log", f"{event.replace('_', ' ')}{f': {said}' if said else ''}", tone)


def anything(kind: str, body: Mapping[str, Any]) -> Iterator[Told]:
    """A kind of record that this version has no words for."""
    yield told(kind, ", ".join(f"{name} {value}" for name, value in body.items()), "warn")


def commitments(kept: Mapping[str, Any]) -> Iterator[Told]:
    """Content that was kept beside the log."""
    for name, commitment in kept.items():
        yield told("kept", f"{name} under {commitment}", "faint")
