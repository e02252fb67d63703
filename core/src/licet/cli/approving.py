"""What people see of an approval before they answer: its document, laid out, and what became of it.

Rules this module keeps:

- everything of the document that says what would run is there, suspicious characters first; a card may leave
  long parts for later, says how much of what, and is then not enough to approve by;
- all is taken from the document that the answer has to name, but for the state and the answers; of one whose
  content is gone the rest is told;
- who vouches for a name stands beside it.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TextIO

from licet import units
from licet.approvals.clocks import Moment, now
from licet.approvals.forms import ApprovalRequest, Given, Person, State, StoredApproval
from licet.cli import because
from licet.cli.sheets import Row, Sheet, split
from licet.cli.terminal import Tone

HEADINGS: dict[State, tuple[Tone, str]] = {
    "pending": ("warn", "waits for an approval"),
    "granted": ("good", "is approved, and not used up"),
    "denied": ("bad", "was denied"),
    "expired": ("bad", "has expired"),
    "withdrawn": ("bad", "was withdrawn"),
    "revoked": ("bad", "was revoked"),
    "consumed": ("good", "was approved, and used"),
}
"""How each state is told, after what it is about."""

_MOST_LINES = 60
_MOST_CHARACTERS = 600
_ENDINGS = {
    "executed": "it ran",
    "failed_to_start": "it did not start",
    "unknown": "its process died: it may have run",
}


class Paper:
    """The document of one request on a sheet for `stream`.

    With `whole`, no part is shortened; else `left_out` says which are longer than a card. `details` are
    limits, environment, digests, and how each control is held.
    """

    def __init__(self, request: ApprovalRequest, stream: TextIO, *, whole: bool, details: bool) -> None:
        self.sheet = Sheet(stream)
        self.left_out: list[str] = []
        self._request = request
        self._document = request.document
        self._whole = whole
        self._details = details

    def write(self, stored: StoredApproval | None = None) -> None:
        """Write heading, rows and texts; of a `stored` one also its state and the answers."""
        tone, heading = HEADINGS[stored.state if stored else "pending"]
        self.sheet.heading(tone, f"{what_of(self._request)} {heading}", f"approval {self._request.id}")
        if "code" in self._document:
            self._content()
        else:
            gone = "content goes when nothing can come of an approval any more, or is erased"
            self.sheet.rows([("content", gone), ("run", self._request.run_id)])
        if stored is not None:
            self.sheet.rows(became(stored))
        self.sheet.rows([("digest", self._request.shown)])

    def _content(self) -> None:
        self.sheet.rows(_suspicious(self._document["suspicious"]))
        self.sheet.rows(self._asked())
        self._values()
        self.sheet.rows(_sandbox(self._document["sandbox"], details=self._details))
        if self._details:
            self.sheet.rows(self._more())
        self._compared()
        self._text("code", _spelled(self._document["code"]))

    def _asked(self) -> Iterator[Row]:
        document, request = self._document, self._request
        yield "for", requester_of(document["requester"])
        for one in document["asks"]:
            yield "asks", because.spelled(one["intent"]) + _line_of(one["intent"])
            yield "because", because.reason(one["reason"], "ask", one["by"])
        for one in document["also"]:
            yield "also allowed", because.spelled(one["intent"])
        if document["tools"]:
            yield "may call", ", ".join(document["tools"])
        if document["learn"]:
            yield "learns", "goes on where policy says nothing of an intent, and opens none of it"
        yield from because.of_ballots(document["ballots"])
        yield from because.of_approvals([one.model_dump(by_alias=True) for one in request.requirements])
        yield "until", until(request)
        yield "run", request.run_id
        yield "in", str(document["workdir"])
        yield "policy", str(document["policy"]["name"])

    def _values(self) -> None:
        """The arguments of a call, whom a connection reaches, and what the code is given."""
        if (connection := self._document["connection"]) is not None:
            self.sheet.rows([("host", connection["host"]), ("port", str(connection["port"]))])
        if (call := self._document["call"]) is not None:
            self.sheet.rows([("call", str(call["signature"]))])
            for name, value in _arguments(call):
                self._value(name, value)
            self.sheet.rows(("touches", one) for one in call["touches"])
        for name, value in self._document["inputs"].items():
            self._value(f"input {name}", value)
        if stdin := self._document["stdin"]:
            self._text("stdin", _spelled(stdin))
        for one in self._document["files"]:
            self._value("file", f"{one['path']} is {one['host']}")
        for name, value in self._document["metadata"].items():
            self._value(f"says {name}", value)

    def _value(self, label: str, value: Any) -> None:
        text = _spelled(value)
        shown = text if self._whole else text[:_MOST_CHARACTERS]
        self.sheet.rows([(label, shown)])
        self._leave_out(f"`{label}`", len(text) - len(shown), "characters")

    def _text(self, label: str, text: str) -> None:
        """A text with numbered lines."""
        lines = split(text)
        long = sum(map(len, lines)) > _MOST_LINES * _MOST_CHARACTERS
        most = 0 if long else _MOST_LINES
        shown = lines if self._whole or len(lines) <= most else lines[:most]
        self.sheet.rows([(label, _counted(len(lines), "line"))])
        if shown:
            self.sheet.numbered(shown)
        self._leave_out(f"the {label}", len(lines) - len(shown), "lines")

    def _leave_out(self, part: str, count: int, of_what: str) -> None:
        if count:
            self.left_out.append(part)
            self.sheet.rows([("left out", f"{count:,} more {of_what} of {part}")])

    def _compared(self) -> None:
        previous = self._document["previous"]
        if previous is None:
            return
        by = " and ".join(map(_spelled, previous["by"]))
        text = f"since {previous['approval']}, which {by} approved at {previous['answered_at']}"
        lines = previous["diff"].split("\n") if previous["diff"] else []
        shown = lines if self._whole or len(lines) <= _MOST_LINES else []
        self.sheet.rows([("changed", text if lines else f"nothing {text}")])
        self.sheet.changes(shown)
        self._leave_out("what changed", len(lines) - len(shown), "lines")

    def _more(self) -> Iterator[Row]:
        """What seldom decides."""
        document = self._document
        for one in document["later"]:
            yield "when it happens", f"{because.spelled(one['intent'])}: {one['effect']}"
        for name, tool in document["tools"].items():
            yield f"tool {name}", str(tool["signature"])
            yield from (("", f"touches {one}") for one in tool["touches"])
        limits = (f"{name} {_limit(name, one)}" for name, one in document["limits"].items())
        yield "limits", ", ".join(limits)
        for label in ("environment", "surroundings"):
            said = (f"{name} {_spelled(one)}" for name, one in document[label].items())
            yield label, ", ".join(said) or "none"
        yield "asked at", str(document["asked_at"])
        yield "policy digest", str(document["policy"]["digest"])
        yield "binds", self._request.digest


def what_of(request: ApprovalRequest) -> str:
    """What an approval is about, in a few words."""
    if call := request.document.get("call"):
        return f"a call of `{call['tool']}`{_line_of(call)}"
    connection = request.document.get("connection")
    return f"a connection to `{connection['target']}`" if connection else "a run"


def until(request: ApprovalRequest, at: Moment | None = None) -> str:
    """By when the answers have to be there and used, and how far that is from `at` (None: from now)."""
    end = units.show_moment(request.asked.wall + request.expires)
    return f"{end}, {left(request, at)}"


def left(request: ApprovalRequest, at: Moment | None = None) -> str:
    """How long an approval is still good for."""
    rest = seconds_left(request, at)
    return f"{units.show_duration(rest)} left" if rest > 0 else "which is over"


def seconds_left(request: ApprovalRequest, at: Moment | None = None) -> float:
    """The seconds until an approval expires; not more than 0 where it has."""
    return request.expires - (at or now()).passed_since(request.asked)


def became(stored: StoredApproval) -> Iterator[Row]:
    """The answers so far, what they come to, and what came of it."""
    label = "answers"
    for given in stored.given:
        yield label, _answer(given)
        label = ""
    reach = stored.reach
    if stored.state in ("granted", "consumed", "revoked") and stored.given:
        often = "without number" if reach.uses is None else _counted(reach.uses, "time")
        varying = f", varying {', '.join(sorted(reach.vary))}" if reach.vary else ""
        good_for = "once" if reach.scope == "once" else f"for its {reach.scope}{varying}, {often}"
        yield "good", f"{good_for}; used {_counted(stored.used, 'time')}"
    if stored.state == "pending" and stored.given:
        yield from _missing(stored)
    if stored.ending is not None:
        yield "came of it", _ENDINGS[stored.ending]
    if stored.reason:
        yield "ended", stored.reason


def _missing(stored: StoredApproval) -> Iterator[Row]:
    from licet.approvals.counting import standing

    for one in standing(stored.request, stored.given, now()).missing:
        yield "still needs", f"{one.persons} more of: {one.requirement}"


def resuming(run_id: str, policy: str | None) -> str:
    """The command by which a run goes on, as it can be typed in the current directory."""
    named = f" --policy {shlex.quote(policy)}" if policy else ""
    return f"licet run --resume {run_id}{named}"


def person_of(person: Person) -> str:
    """A person, and how it is known who that is."""
    groups = f" of {', '.join(person.groups)}" if person.groups else ""
    tenant = f", tenant {person.tenant}" if person.tenant else ""
    seen = "seen to act" if person.reviewer == "human" else "not seen to act"
    return f"{person.id}{groups}{tenant} ({_vouched(person.asserted_by)}, {seen})"


def requester_of(subject: Mapping[str, Any]) -> str:
    """For whom something runs, and who says so."""
    behalf = f" on behalf of {subject['on_behalf_of']}" if subject.get("on_behalf_of") else ""
    parts = [f"{name} {subject[name]}" for name in ("type", "tenant", "session") if subject.get(name)]
    groups = f", groups {', '.join(subject['groups'])}" if subject.get("groups") else ""
    said = _vouched(subject["asserted_by"])
    return f"{subject['id']}{behalf} ({said}; {', '.join(parts)}{groups})"


def _vouched(asserted_by: str) -> str:
    said = {"os": "the operating system", "token": "a signed token", "mcp": "the MCP client"}
    return f"says {said.get(asserted_by, 'the program that asks')}"


def _answer(given: Given) -> str:
    answer = given.answer
    word = "approved" if answer.approve else "denied"
    said = f": {answer.reason}" if answer.reason else ""
    age = units.show_age(max(now().wall - given.at.wall, 0))
    return f"{person_of(answer.person)} {word} by {answer.service}, {age}{said}"


def _suspicious(found: Sequence[Mapping[str, Any]]) -> Iterator[Row]:
    label = "suspicious"
    for one in found:
        line = f", line {one['line']}" if one.get("line") else ""
        character = f", {one['character']}" if one.get("character") else ""
        yield label, f"{one['where']}{line}: {str(one['kind']).replace('-', ' ')}{character}"
        label = ""


def _sandbox(sandbox: Mapping[str, Any], *, details: bool) -> Iterator[Row]:
    walls = str(sandbox["isolation"]).replace("_", " ")
    yield "sandbox", f"{sandbox['backend']} {sandbox['version']}, {walls} walls"
    for name, value in sandbox["opened"].items():
        if value:
            yield "opened", f"{name}: {_spelled(value)}"
    enforced: Mapping[str, Any] = sandbox["enforces"]
    if details:
        yield from (("enforces", f"{name}: {_spelled(how)}") for name, how in enforced.items())
        yield from (("but", f"{name}: {_spelled(gaps)}") for name, gaps in sandbox["gaps"].items())
    elif enforced:
        yield "enforces", ", ".join(enforced)
    if not_held := sandbox["not_enforced"]:
        yield "does not hold", ", ".join(map(str, not_held))


def _arguments(call: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What a call passes, by parameter where they are known."""
    if call["bound"] is not None:
        yield from ((f"{name} =", value) for name, value in call["bound"].items())
        return
    arguments = call["arguments"]
    yield from ((f"argument {number}", value) for number, value in enumerate(arguments["args"], 1))
    yield from ((f"{name} =", value) for name, value in arguments["kwargs"].items())


def _limit(name: str, said: Any) -> str:
    number = float(said)  # one with a fraction stands in a document as text
    return units.show_limit(name, int(number) if number.is_integer() else number)


def _counted(count: int, of_what: str) -> str:
    return f"{count:,} {of_what}{'' if count == 1 else 's'}"


def _line_of(one: Mapping[str, Any]) -> str:
    return f" in line {one['line']}" if one.get("line") else ""


def _spelled(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def paper(
    request: ApprovalRequest,
    stored: StoredApproval | None = None,
    *,
    whole: bool,
    details: bool = False,
    stream: TextIO | None = None,
) -> Paper:
    """The document of a request, laid out for `stream` (None: stderr)."""
    made = Paper(request, stream or sys.stderr, whole=whole, details=details)
    made.write(stored)
    return made
