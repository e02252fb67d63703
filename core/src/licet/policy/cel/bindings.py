"""The variables of one request, or of one tool call, for all texts that are asked about it.

Rules this module keeps:

- what is not known is not bound, and reading it is unknown; `has` is always bound, except where nobody knows;
- only variables that some compiled text reads are made.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from licet import hosts
from licet.policy.cel.schema import LIMITS, REQUEST, SUBJECT
from licet.policy.cel.values import MAX_ITEMS, Unreadable, text, typed
from licet.policy.facts import Facts, RequestFacts
from licet.policy.signatures import Signature, Type
from licet.request import Action


@dataclass(frozen=True, slots=True)
class Bound:
    """Variables by name, and for what could not be bound, why."""

    variables: Mapping[str, Any]
    unreadable: Mapping[str, str] = field(default_factory=dict)


def bind(facts: Facts, signature: Signature | None, wanted: Collection[str]) -> Bound:
    """Make the variables of `wanted` that are known; `signature` is that of the tool that is called."""
    variables: dict[str, Any] = {}
    unreadable: dict[str, str] = {}
    for name in wanted:
        path = name.removeprefix("has ")
        root, _, rest = path.partition(".")
        found = _ROOTS[root](facts, signature, rest)
        if found is None:
            continue
        there, value, kind = found
        if name != path:
            variables[name] = there
        elif value is not _ABSENT:
            try:
                variables[name] = _intents(facts.request) if name == "request.intents" else typed(value, kind)
            except Unreadable as problem:
                unreadable[name] = str(problem)
            except Exception:  # a value may be an object of any class, and do anything when it is read
                unreadable[name] = "it fails when it is read"
    return Bound(variables, unreadable)


_ABSENT: Any = object()
_Found = tuple[bool, Any, Type] | None
"""Whether it is there, its value, its type; None for what belongs to a call, before there is one."""


def _subject(facts: Facts, _: Signature | None, name: str) -> _Found:
    value = getattr(facts.subject, name)
    hidden = value is None or value == "" or (facts.anonymous and name in ("id", "type", "groups"))
    return not hidden and _is_something(value), _ABSENT if hidden else value, SUBJECT[name]


def _request(facts: Facts, _: Signature | None, name: str) -> _Found:
    if name.startswith("limits."):
        limit = name.removeprefix("limits.")
        value = getattr(facts.request.limits, limit)
        return value is not None, _ABSENT if value is None else value, LIMITS[limit]
    value = getattr(facts.request, name)
    return _is_something(value), value, REQUEST[name]


def _is_something(value: object) -> bool:
    return bool(value) or not isinstance(value, (tuple, Mapping))


def _argument(facts: Facts, signature: Signature | None, name: str) -> _Found:
    if facts.call is None or signature is None:
        return None
    kind, value = signature.types.get(name), facts.call.args.get(name, _ABSENT)
    if kind is None or value is _ABSENT or (value is None and kind.kind != "any"):
        return False, _ABSENT, Type("any")
    return True, value, kind


_ROOTS: Mapping[str, Callable[[Facts, Signature | None, str], _Found]] = {
    "subject": _subject,
    "request": _request,
    "args": _argument,
    "now": lambda facts, _, __: (True, facts.at, Type("datetime")),
    "language": lambda facts, _, __: (True, facts.language, Type("string")),
    "tool": lambda facts, _, __: None if facts.call is None else (True, facts.call.tool, Type("string")),
}


def _intents(request: RequestFacts) -> list[dict[str, Any]]:
    if not request.complete:
        raise Unreadable("the request lists none, so it wants all that the policy opens")
    if len(request.intents) > MAX_ITEMS:
        raise Unreadable(f"it holds more than {MAX_ITEMS} items")
    return [_intent(one.action, one.target, one.source, one.when, one.line) for one in request.intents]


@lru_cache(maxsize=4096)
def _intent(action: Action, target: str | None, source: str, when: str, line: int | None) -> dict[str, Any]:
    """One intent as a map, without what is not known; shared, and read by the library alone."""
    known: dict[str, Any] = {"action": action, "source": source, "when": when}
    if line is not None:
        known["line"] = line
    if target is not None:
        known["target"] = text(target)
        known |= _parts(action, target)
    return known


def _parts(action: Action, target: str) -> dict[str, Any]:
    if action in ("read", "write"):
        return {"path": target}
    if action != "network":
        return {}
    try:
        found = hosts.read_back(target)
    except ValueError:
        return {}
    return {"host": found.host} if found.port is None else {"host": found.host, "port": found.port}
