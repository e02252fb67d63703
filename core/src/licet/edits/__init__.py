"""Changes of a request, as values that can be shown, stored and applied.

Rules this module keeps:

- an edit changes what the caller may change: code, intents, limits, requirements, tools, inputs, and when to
  ask; never the subject, and never labels that say what a request is for;
- applying edits makes a new request; the lines of its code stay where they were;
- two edits of one `slot` exclude each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from licet.edits.statements import without
from licet.request import Action, ExecutionRequest, Intent, Limits

EditKind = Literal[
    "remove_line",
    "drop_intent",
    "narrow_intent",
    "add_intent",
    "declare_intents",
    "drop_requirement",
    "drop_limit",
    "lower_limit",
    "drop_tool",
    "drop_input",
    "drop_stdin",
    "wait",
]

LOSS: Mapping[EditKind, int] = {
    "add_intent": 1,
    "declare_intents": 2,
    "lower_limit": 3,
    "narrow_intent": 3,
    "drop_limit": 4,
    "drop_requirement": 4,
    "wait": 5,
    "drop_intent": 6,
    "drop_tool": 6,
    "drop_input": 6,
    "drop_stdin": 6,
    "remove_line": 8,
}
"""How much each gives up, to tell apart changes that are equally many."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, and the instant at which it is made."""

    request: ExecutionRequest
    at: datetime


@dataclass(frozen=True, slots=True)
class Edit:
    """One change of a request.

    `what` names the part that changes: an intent, a limit, a tool; for lines of code, `1` or `3-5`. `to` is
    what it becomes where it does not just go: intents, a value, an instant in RFC 3339. `said` tells a person
    to do it.
    """

    kind: EditKind
    what: str
    said: str
    to: tuple[str, ...] = ()

    @property
    def slot(self) -> tuple[str, str]:
        """The part of the request that it changes."""
        return _SLOTS.get(self.kind, self.kind), self.what

    @property
    def loss(self) -> int:
        """How much it gives up."""
        return LOSS[self.kind]

    @property
    def lines(self) -> range:
        """The lines of code that it takes out."""
        if self.kind != "remove_line":
            return range(0)
        first, _, last = self.what.partition("-")
        return range(int(first), int(last or first) + 1)


_SLOTS = {"drop_intent": "intent", "narrow_intent": "intent", "drop_limit": "limit", "lower_limit": "limit"}


def intent_of(text: str) -> Intent:
    """The declared intent that `str` spells so."""
    action, _, target = text.partition(" ")
    kind: Action = action  # type: ignore[assignment]
    return Intent(kind, target or None, when="call" if action == "tool" else "start")


def applied(asked: Asked, edits: Sequence[Edit]) -> Asked:
    """`asked` after all `edits`. Its intents have to be canonical, as in a `NormalizedRequest`."""
    request, at = asked.request, asked.at
    removed = [edit for edit in edits if edit.kind == "remove_line"]
    if removed:
        code = request.code if isinstance(request.code, str) else request.code.decode()
        lines = (line for edit in removed for line in edit.lines)
        request = request.model_copy(update={"code": without(code, lines)})
    for edit in edits:
        if edit.kind == "wait":
            at = datetime.fromisoformat(edit.to[0])
        else:
            request = request.model_copy(update=_update(request, edit))
    return Asked(request, at)


def told(edits: Sequence[Edit]) -> str:
    """The sentence that tells a person to make all of `edits`; what is alike shares its words."""
    lines = sorted({line for edit in edits for line in edit.lines})
    dropped = [edit.said.removeprefix(_WITHOUT) for edit in edits if edit.said.startswith(_WITHOUT)]
    parts = [f"remove {_spelled(lines)}"] if lines else []
    parts += [f"{_WITHOUT}{_listed(dropped)}"] if dropped else []
    parts += [edit.said for edit in edits if not edit.lines and not edit.said.startswith(_WITHOUT)]
    return ", and ".join(parts)


_WITHOUT = "do without "


def _spelled(lines: Sequence[int]) -> str:
    """`line 1`, `lines 1 to 3`, `lines 1, 2 and 4 to 6`."""
    runs: list[list[int]] = []
    for line in lines:
        if runs and line == runs[-1][-1] + 1:
            runs[-1].append(line)
        else:
            runs.append([line])
    spelled = [f"{run[0]} to {run[-1]}" if len(run) > 1 else str(run[0]) for run in runs]
    return f"line{'s' if len(lines) > 1 else ''} {_listed(spelled)}"


def _listed(items: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(items[:-1]), items[-1])))


def _update(request: ExecutionRequest, edit: Edit) -> dict[str, object]:
    what = edit.what
    match edit.kind:
        case "drop_intent" | "narrow_intent" | "add_intent":
            kept = tuple(intent for intent in request.intents or () if str(intent) != what)
            instead = (what,) if edit.kind == "add_intent" else edit.to
            return {"intents": (*kept, *map(intent_of, instead))}
        case "declare_intents":
            return {"intents": tuple(map(intent_of, edit.to))}
        case "drop_requirement":
            return {"requirements": {c: level for c, level in request.requirements.items() if c != what}}
        case "drop_limit" | "lower_limit":
            stated = request.limits.stated()
            stated.pop(what, None)
            lowered = {what: _number(edit.to[0])} if edit.to else {}
            return {"limits": Limits(**{**stated, **lowered})}
        case "drop_tool":
            return {"tools": {name: one for name, one in request.tools.items() if name != what}}
        case "drop_input":
            return {"inputs": {name: one for name, one in request.inputs.items() if name != what}}
        case "drop_stdin":
            return {"stdin": b""}
    return {}


def _number(text: str) -> float | int:
    return float(text) if "." in text else int(text)
