"""Runs as a log has them, and the requests that they were, as far as the log says.

Rules this module keeps:

- a request is restored whole or not at all: what a record lacks is never guessed, the reason is told;
- what follows from policy (limits in force, modules that are denied, sizes) is worked out anew, what followed
  from the code (intents, needs, violations of the screen) is taken as it was seen then;
- memory holds the runs that have begun and not ended, whatever the size of the log.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NoReturn, cast

from pydantic import ValidationError

from licet.contract import Control, Level
from licet.decide import Ballot
from licet.hosts import Endpoint, canonical_host
from licet.normalize import forbidden_learning, limited, oversized
from licet.policy import PolicyStack
from licet.record import Record
from licet.request import (
    ACTIONS,
    TARGETLESS,
    CodeNeeds,
    FieldDigests,
    Intent,
    Limits,
    NormalizedRequest,
    ScreenReport,
    Source,
    Subject,
    Tool,
    Violation,
)
from licet.screen import VIOLATIONS
from licet.screen.judge import is_denied
from licet.workbench.history import bodies

_ESCAPED = re.compile(r"\\(?:x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})")
_OF_FORM = frozenset({"nul_byte", "lone_surrogate", "encoding_cookie"})
_ANEW = frozenset({"code_too_large", "stdin_too_large", "learning_forbidden", "module_denied"})
_NO_DIGESTS = FieldDigests("", "", "", "", "", "")


class NotReplayable(Exception):
    """Why a recorded run can't be decided again."""


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One call of a tool, as it was decided; its arguments are in no record.

    `touches` is what the tool itself reaches, as it was recorded.
    """

    tool: str
    effect: str
    at: str
    line: int | None
    touches: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordedAccess:
    """One access of running code that its sandbox surfaced."""

    action: str
    target: str
    allowed: bool

    @property
    def intent(self) -> Intent | None:
        """The file or the endpoint, in canonical form; None for any other access, and where that has none."""
        match self.action:
            case "read" | "write":
                is_path = self.target.startswith("/") or self.target[1:2] == ":"
                return Intent(self.action, self.target) if is_path else None
            case "network":
                host, _, port = self.target.rpartition(":")
                try:
                    return Intent("network", str(Endpoint(canonical_host(host.strip("[]")), int(port))))
                except ValueError:
                    return None
        return None


@dataclass(slots=True)
class RecordedRun:
    """What a log says of one run; a body is None where there is none. `time` is that of its first record."""

    log: str
    run_id: str
    time: str
    request: Mapping[str, Any] | None = None
    decision: Mapping[str, Any] | None = None
    selection: Mapping[str, Any] | None = None
    calls: list[RecordedCall] = field(default_factory=list)
    accesses: list[RecordedAccess] = field(default_factory=list)

    @property
    def effect(self) -> str | None:
        """What was decided."""
        return bodies.text(self.decision or {}, "effect")

    @property
    def backend(self) -> str | None:
        """The backend that was chosen."""
        return bodies.text(self.selection or {}, "backend")

    @property
    def policy_digest(self) -> str | None:
        """Under which policy it was decided."""
        return bodies.text(self.decision or {}, "policy_digest")

    @property
    def screen(self) -> str | None:
        """The version of the screen that looked at the code."""
        return bodies.text(self.request or {}, "screen") or bodies.text(self.decision or {}, "screen")

    @property
    def subject(self) -> Mapping[str, Any]:
        """For whom it was; empty where the record says nothing."""
        found = (self.request or {}).get("subject")
        return found if isinstance(found, dict) else {}


def runs(log: str, records: Iterable[Record]) -> Iterator[RecordedRun]:
    """The runs of a log, each as soon as it has ended, and last those that have not; attacks are left out."""
    begun: dict[str, RecordedRun] = {}
    for record in records:
        entry = record.entry
        if not entry.run_id or entry.kind not in _KINDS:
            continue
        if entry.kind == "request" and entry.run_id not in begun:
            begun[entry.run_id] = RecordedRun(log, entry.run_id, entry.time)
        if (run := begun.get(entry.run_id)) is None:
            continue
        _note(run, entry.kind, entry.phase, entry.time, entry.body)
        if entry.kind == "result" and entry.phase == "after":
            yield begun.pop(entry.run_id)
    yield from begun.values()


_KINDS = frozenset({"request", "decision", "selection", "tool_call", "access", "result"})


def _note(run: RecordedRun, kind: str, phase: str | None, time: str, body: Mapping[str, Any]) -> None:
    if kind == "request":
        run.request = body
    elif kind == "decision":
        run.decision = body
    elif kind == "selection":
        run.selection = body
    elif kind == "access" and phase is None:
        action, target = bodies.text(body, "action") or "", bodies.text(body, "target") or ""
        run.accesses.append(RecordedAccess(action, target, body.get("allowed") is True))
    elif kind == "tool_call" and phase == "before":
        verdict = body.get("verdict")
        line = bodies.line(verdict.get("line")) if isinstance(verdict, dict) else None
        tool, effect = bodies.text(body, "tool") or "", bodies.text(body, "effect") or ""
        touches = body.get("touches")
        touched = tuple(map(str, touches)) if isinstance(touches, (list, tuple)) else ()
        run.calls.append(RecordedCall(tool, effect, time, line, touched))


@dataclass(frozen=True, slots=True)
class Restored:
    """A recorded request as the stages see one, when it was decided, and how other deciders voted on it."""

    request: NormalizedRequest
    report: ScreenReport
    at: datetime
    ballots: tuple[Ballot, ...]


def restore(run: RecordedRun, stack: PolicyStack) -> Restored:
    """The request of `run` under `stack`, and what the screen saw.

    Raises:
        NotReplayable: the record lacks something that a decision needs, or is no record of a request.
    """
    if run.request is None or run.decision is None:
        raise NotReplayable("the log has no request, or no decision, of it")
    body, decision = run.request, run.decision
    _refuse_escapes(body, decision)
    try:
        request = _request(body, decision, stack)
        report = _report(body, decision, stack)
        at = datetime.fromisoformat(_need(body, "at", str))
        ballots = tuple(_ballot(one) for one in _need(decision, "ballots", list))
    except (ValidationError, ValueError, TypeError, KeyError, AttributeError):
        raise NotReplayable("its record can't be understood") from None
    if at.tzinfo is None:
        raise NotReplayable("its record can't be understood")
    return Restored(request, report, at, ballots)


def _request(body: Mapping[str, Any], decision: Mapping[str, Any], stack: PolicyStack) -> NormalizedRequest:
    asked = _limits(_need(body, "asked_limits", dict))
    limits = limited(asked, stack.limits, [])
    declared = _need(body, "intents", (list, type(None)))
    found = tuple(v for v in _violations(decision) if v.code in _OF_FORM)
    request = NormalizedRequest(
        code="",
        code_bytes=_need(body, "code_bytes", int),
        inputs=dict.fromkeys(_names(body, "inputs")),
        stdin=b"",
        stdin_bytes=_need(body, "stdin_bytes", int),
        workdir=_need(body, "workdir", str),
        asked=asked,
        limits=limits,
        environment={},
        intents=None if declared is None else tuple(intent_of(text, "declared") for text in declared),
        tools={name: Tool(name, _unavailable) for name in _names(body, "tools")},
        subject=_subject(body),
        requirements={Control(c): Level(level) for c, level in _need(body, "requirements", dict).items()},
        metadata=_texts(_need(body, "metadata", dict)),
        changes=(),
        violations=found,
        digests=_NO_DIGESTS,
        learn=_need(body, "learn", bool),
    )
    too_large = tuple(oversized(request, limits))
    unseen = {v.code for v in _violations(decision)} - {v.code for v in too_large}
    if "code_too_large" in unseen:
        raise NotReplayable("its code was refused for its size, so that nobody looked at what it does")
    forbidden = forbidden_learning(stack) if request.learn else []
    return replace(request, violations=(*found, *too_large, *forbidden))


def _report(body: Mapping[str, Any], decision: Mapping[str, Any], stack: PolicyStack) -> ScreenReport:
    imports = _names(body, "imports")
    denied = [path for path in imports if is_denied(path, stack.denied_modules)]
    modules = [_violation("module_denied", None, f"`{path}`: ") for path in denied]
    seen = [v for v in _violations(decision) if v.code not in _OF_FORM | _ANEW]
    needs = _need(body, "needs", dict)
    return ScreenReport(
        violations=(*seen, *modules),
        intents=tuple(_inferred(_need(decision, "verdicts", list))),
        needs=CodeNeeds(
            syntax=dict.fromkeys(_names(needs, "syntax"), 0),
            modules=dict.fromkeys(_names(needs, "modules"), 0),
            builtins=dict.fromkeys(_names(needs, "builtins"), 0),
            members=dict.fromkeys(_names(needs, "members"), 0) if "members" in needs else {},
            stdin=_need(needs, "stdin", bool),
        ),
        imports=imports,
        canonical=True,
    )


def _inferred(verdicts: Iterable[Mapping[str, Any]]) -> Iterator[Intent]:
    for verdict in verdicts:
        if verdict["source"] == "inferred":
            yield replace(intent_of(verdict["intent"], "inferred"), line=bodies.line(verdict.get("line")))


def intent_of(text: str, source: str) -> Intent:
    """Read back how records spell an intent.

    Raises:
        ValueError: this is no intent.
    """
    word, known = bodies.action_and_target(text)
    if word not in ACTIONS or (word in TARGETLESS) != (text == word):
        raise ValueError(f"`{text}` is no intent")
    if source == "declared" and known is None and word not in TARGETLESS:
        raise ValueError(f"`{text}` declares nothing")
    at_call = word == "tool" and source == "declared"
    return Intent(word, known, cast("Source", source), when="call" if at_call else "start")


def _subject(body: Mapping[str, Any]) -> Subject:
    content = dict(_need(body, "subject", dict))
    properties = dict(content.get("properties", {}))
    for name in _need(body, "numbers", list):
        properties[name] = _number(properties[name])
    return Subject.model_validate(content | {"properties": properties})


def _limits(content: Mapping[str, Any]) -> Limits:
    return Limits(**{name: _number(v) if isinstance(v, str) else v for name, v in content.items()})


def _number(text: str) -> int | float:
    """A number that a record holds as text: a huge one in hexadecimal, or one with a fraction."""
    return int(text, 16) if text.lstrip("-").startswith("0x") else float(text)


def _violations(decision: Mapping[str, Any]) -> list[Violation]:
    found = _need(decision, "violations", list)
    return [_violation(_need(one, "code", str), bodies.line(one.get("line"))) for one in found]


def _violation(code: str, line: int | None, subject: str = "") -> Violation:
    return Violation(
        code, line, f"{subject}{VIOLATIONS.get(code, code.replace('_', ' '))}", "change the code"
    )


def _ballot(content: Mapping[str, Any]) -> Ballot:
    effect = content["effect"]
    if effect not in (None, "ask", "deny"):
        raise ValueError("no ballot")
    return Ballot(content["decider"], effect, content["reason"], content.get("policy_digest"))


def _refuse_escapes(body: Mapping[str, Any], decision: Mapping[str, Any]) -> None:
    """A name that a record could only hold escaped can't be told from one that is spelled so."""
    deciding = [body.get(name) for name in ("subject", "workdir", "intents", "inputs", "metadata", "imports")]
    deciding += [verdict.get("intent") for verdict in bodies.mappings(decision.get("verdicts"))]
    if any(_has_escape(one) for one in deciding):
        raise NotReplayable("a name in it holds characters that records escape")


def _has_escape(value: Any) -> bool:
    if isinstance(value, str):
        return "\\" in value and _ESCAPED.search(value) is not None
    if isinstance(value, dict):
        return any(_has_escape(key) or _has_escape(inner) for key, inner in value.items())
    return isinstance(value, list) and any(map(_has_escape, value))


def _need(body: Mapping[str, Any], name: str, kind: type | tuple[type, ...]) -> Any:
    if name not in body:
        raise NotReplayable(f"its record does not say `{name}`: an older licet wrote it")
    value = body[name]
    if not isinstance(value, kind):
        raise NotReplayable("its record can't be understood")
    return value


def _names(body: Mapping[str, Any], name: str) -> tuple[str, ...]:
    found = _need(body, name, list)
    if not all(isinstance(one, str) for one in found):
        raise TypeError(name)
    return tuple(found)


def _texts(content: Mapping[str, Any]) -> Mapping[str, str]:
    if not all(isinstance(value, str) for value in content.values()):
        raise TypeError("no texts")
    return content


def _unavailable(*_: Any, **__: Any) -> NoReturn:
    raise RuntimeError("a recorded tool can't be called")
