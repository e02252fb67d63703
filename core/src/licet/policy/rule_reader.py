"""Reading the rules of a document.

Rules this module keeps:

- a rule that could do nothing is an error, and so is a condition that reads arguments of what is no tool;
- every problem is told at its place, with what to write instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from pydantic import ValidationError

from licet.contract import Evidence
from licet.errors import InvalidPolicy, Position
from licet.policy.cases import Case, parse_cases
from licet.policy.conditions import build as build_condition
from licet.policy.engine import ConditionEngine
from licet.policy.parts import Approval, AuditPolicy, SandboxPolicy, Strict
from licet.policy.patterns import Effect, Pattern
from licet.policy.problems import explain, unknown
from licet.policy.rule import Rule, refuse_repetition
from licet.policy.yaml import Fields, Items
from licet.request import Limits

KEYS = ("id", "deny", "ask", "if", "unless", "during", "limits", "sandbox", "approval", "audit", "tests")
CONDITIONS = ("if", "unless", "during")
_SETTINGS = ("limits", "sandbox", "approval", "audit")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", re.ASCII)

ReadEntries = Callable[[object, Effect], tuple[Pattern, ...]]


class _Settings(Strict):
    limits: Limits = Limits()
    sandbox: SandboxPolicy = SandboxPolicy()
    approval: Approval | None = None
    audit: AuditPolicy = AuditPolicy()


def parse_rules(value: object, file: str, entries: ReadEntries) -> tuple[Rule, ...]:
    """Read the list `rules`; `entries` reads a list of entries of one effect.

    Raises:
        InvalidPolicy: with the place of the first problem and what to write instead.
    """
    if not isinstance(value, Items):
        raise ValueError("expected a list of rules, each a mapping that begins with `id`")
    found: dict[str, Rule] = {}
    for item, place in zip(value, value.places, strict=True):
        rule = _rule(item, Position(file, *place), entries)
        refuse_repetition(found.get(rule.id), rule)
        _refuse_late_settings(item, rule)
        found[rule.id] = rule
    return tuple(found.values())


def _refuse_late_settings(item: Fields, rule: Rule) -> None:
    """Settings of a run are settled before it starts, so a rule that waits for a call has no say in them."""
    if not rule.condition.reads_call:
        return
    for key in ("limits", "sandbox", "audit", *(() if rule.ask else ("approval",))):
        if key in item:
            raise InvalidPolicy(
                f"`{key}` of the rule `{rule.id}` would come too late: its condition waits for a call",
                where=_at(item, key, rule.where),
                advice="put it into a rule of its own, whose condition reads no `args` and no `tool`",
            )


def _rule(item: object, where: Position, entries: ReadEntries) -> Rule:
    if not isinstance(item, Fields):
        raise InvalidPolicy(f"expected a rule, a mapping that begins with `id`, found `{item}`", where=where)
    for key in item:
        if key == "allow":
            raise InvalidPolicy(
                "a rule has no `allow`: rules only tighten",
                where=_at(item, key, where),
                advice="allow it at the top of the document, and deny or ask in the rule",
            )
        if key not in KEYS:
            raise unknown(f"unknown key `{key}` in a rule", key, KEYS, _at(item, key, where))
    name = item.get("id")
    if not isinstance(name, str) or not _ID.fullmatch(name):
        raise InvalidPolicy(
            f"a rule needs an `id` of letters, digits, `-`, `_` and `.`, found `{name}`"
            if "id" in item
            else "a rule needs an `id`",
            where=_at(item, "id", where),
            advice="name it after its reason, as in `id: weekend-freeze`; records and tests use that name",
        )
    deny, ask = (_entries(item, effect, where, entries) for effect in ("deny", "ask"))
    settings = _settings(item, name, where)
    if not (deny or ask or _asks_something(settings)):
        raise InvalidPolicy(
            f"the rule `{name}` does nothing",
            where=where,
            advice=f"give it one of `deny`, `ask`, {', '.join(f'`{key}`' for key in _SETTINGS)}",
        )
    return Rule(
        id=name,
        where=where,
        deny=deny,
        ask=ask,
        condition=build_condition(item, file=where.file, engine=_engine, calls=_only_tools((*deny, *ask))),
        limits=settings.limits,
        sandbox=settings.sandbox,
        approval=settings.approval,
        audit=settings.audit,
        source={key: item[key] for key in CONDITIONS if key in item},
        tests=_tests(item, name, where),
    )


def _tests(item: Fields, name: str, where: Position) -> tuple[Case, ...]:
    if "tests" not in item:
        return ()
    return parse_cases(item["tests"], _at(item, "tests", where), rule=name)


def _entries(item: Fields, effect: Effect, where: Position, entries: ReadEntries) -> tuple[Pattern, ...]:
    if effect not in item:
        return ()
    written, place = item[effect], _at(item, effect, where)
    try:
        return entries(_one(written, place) if isinstance(written, str) else written, effect)
    except ValueError as problem:
        raise InvalidPolicy(f"`{effect}`: {problem}", where=place) from None


def _one(text: str, where: Position) -> Items:
    alone = Items()
    alone.append(text)
    alone.places.append((where.line, where.column))
    return alone


def _settings(item: Fields, name: str, where: Position) -> _Settings:
    stated = {key: item[key] for key in _SETTINGS if key in item}
    try:
        settings = _Settings.model_validate(stated)
    except ValidationError as problem:
        raise explain(problem, item, where.file, _Settings, path=(f"rule {name}",)) from None
    for path, why in _useless(settings):
        place = _at(item, path.partition(".")[0], where)
        raise InvalidPolicy(f"`{path}` in a rule tightens nothing", where=place, advice=why)
    return settings


def _asks_something(settings: _Settings) -> bool:
    """Whether any setting says more than its name; an empty `approval` still demands the document's."""
    sandbox, audit = settings.sandbox, settings.audit
    stated = (sandbox.evidence, sandbox.only, sandbox.warm, settings.approval, audit.mode, audit.content)
    return bool(settings.limits.stated() or sandbox.require) or any(one is not None for one in stated)


def _useless(settings: _Settings) -> Iterator[tuple[str, str]]:
    """Settings that could only loosen, or choose."""
    if settings.sandbox.evidence is Evidence.declared:
        yield "sandbox.evidence", "a rule can demand `read_back` or `probed`"
    if settings.sandbox.prefer:
        yield "sandbox.prefer", "rank backends at the top of the document; a rule can narrow them by `only`"
    if settings.sandbox.warm:
        yield "sandbox.warm", "a rule can demand `false`"
    if settings.audit.mode == "best_effort":
        yield "audit.mode", "a rule can demand `required`"
    if settings.audit.content == "kept":
        yield "audit.content", "a rule can demand `digest`"


def _only_tools(entries: tuple[Pattern, ...]) -> bool:
    """Whether a rule is about tools and nothing else, so that it can read a call."""
    return bool(entries) and all(entry.action == "tool" for entry in entries)


def _engine() -> ConditionEngine:
    from licet.policy.cel import engine

    return engine()


def _at(item: Fields, key: str, where: Position) -> Position:
    return Position(where.file, *item.places[key]) if key in item else where
