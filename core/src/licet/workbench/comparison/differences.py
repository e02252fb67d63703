"""What changes from one policy to another, in words, each change marked tighter, looser or other.

Rules this module keeps:

- what is compared is what both come to: the stack, not the text, and not how it is spread over documents;
- two policies that say the same have no differences; every tightening is told as one, and none as looser.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from licet.contract import Control, Level
from licet.errors import Position
from licet.policy import PolicyDocument, PolicyStack
from licet.policy.rule import Rule
from licet.policy.stack import digest_of
from licet.request import Limits
from licet.units import show_limit
from licet.workbench import words
from licet.workbench.comparison.access import access
from licet.workbench.comparison.changes import Change, Direction, demands, direction
from licet.workbench.effective import Setting, settings
from licet.workbench.lint.covering import applies_with, as_strict


def differences(old: PolicyStack, new: PolicyStack, base: str | None = None) -> tuple[Change, ...]:
    """Every change from `old` to `new`; paths below `base` are shown relative to it."""
    if old.digest == new.digest:
        return ()
    places = _Places(old, new)
    return (
        *access(old, new, base),
        *_limits(old, new, places),
        *_sandbox(old, new, places),
        *_environment(old, new, places),
        *_words(old, new, places),
        *_surroundings(old, new, places),
        *_modules(old, new, places),
        *_tools(old, new, places),
        *_rules(old, new),
        *_bounds(old, new),
    )


class _Places:
    """Where the settings of both policies stand."""

    def __init__(self, old: PolicyStack, new: PolicyStack) -> None:
        self._settings: list[Mapping[str, Setting]] = [
            {one.key: one for one in settings(stack)} for stack in (new, old)
        ]

    def __call__(self, key: str) -> Position | None:
        for known in self._settings:
            if key in known and known[key].stated:
                return known[key].stated[0]
        return None


def _limits(old: PolicyStack, new: PolicyStack, places: _Places) -> Iterator[Change]:
    before, after = old.limits.stated(), new.limits.stated()
    for name in Limits.model_fields:
        was, now = before.get(name), after.get(name)
        if was == now:
            continue
        which = direction(
            now is not None and (was is None or now < was), was is not None and (now is None or now > was)
        )
        shown = [show_limit(name, value) if value is not None else "none" for value in (was, now)]
        text = f"{name} {shown[0]} → {shown[1]}"
        yield Change(f"limits.{name}", which, text, places(f"limits.{name}"), was, now)


def _sandbox(old: PolicyStack, new: PolicyStack, places: _Places) -> Iterator[Change]:
    for control in Control:
        was, now = (stack.requirements.get(control) for stack in (old, new))
        if was != now:
            which = direction(_rank(now) > _rank(was), _rank(now) < _rank(was))
            text = f"{control} {_asked(was)} → {_asked(now)}"
            key = f"sandbox.require.{control}"
            yield Change(key, which, text, places(key), was, now)
    if old.evidence is not new.evidence:
        which = direction(new.evidence.rank > old.evidence.rank, new.evidence.rank < old.evidence.rank)
        text = f"evidence {old.evidence} → {new.evidence}"
        where = places("sandbox.evidence")
        yield Change("sandbox.evidence", which, text, where, old.evidence, new.evidence)
    if old.only != new.only:
        which = direction(
            new.only is not None and (old.only is None or new.only < old.only),
            old.only is not None and (new.only is None or new.only > old.only),
        )
        was_only, now_only = (None if s.only is None else sorted(s.only) for s in (old, new))
        text = f"backends: {_admitted(was_only)} → {_admitted(now_only)}"
        yield Change("sandbox.only", which, text, places("sandbox.only"), was_only, now_only)
    if old.warm is not new.warm:
        text = "workers that were started before a run: " + ("not any more" if old.warm else "admitted")
        where = places("sandbox.warm")
        yield Change("sandbox.warm", direction(old.warm, new.warm), text, where, old.warm, new.warm)
    if old.prefer != new.prefer:
        text = f"prefers {words.listed(new.prefer)} instead of {words.listed(old.prefer)}"
        where = places("sandbox.prefer")
        yield Change("sandbox.prefer", "other", text, where, list(old.prefer), list(new.prefer))


def _rank(level: Level | None) -> int:
    return -1 if level is None else level.rank


def _asked(level: Level | None) -> str:
    return "not required" if level is None else f"required {level}"


def _admitted(names: list[str] | None) -> str:
    return "every one" if names is None else words.listed(names)


def _environment(old: PolicyStack, new: PolicyStack, places: _Places) -> Iterator[Change]:
    for name in sorted({*old.environment, *new.environment}):
        was, now = old.environment.get(name), new.environment.get(name)
        where = places(f"env.{name}")
        if was is None:
            yield Change(f"env.{name}", "looser", f"the code now sees {name}={now}", where, was, now)
        elif now is None:
            yield Change(f"env.{name}", "tighter", f"the code no longer sees {name}", where, was, now)
        elif was != now:
            yield Change(f"env.{name}", "other", f"{name}={was} → {name}={now}", where, was, now)


_Read = Callable[[PolicyStack], Any]
_STRICT: Mapping[str, tuple[_Read, object]] = {
    "screen.mode": (lambda stack: stack.screen_mode, "refuse"),
    "audit.mode": (lambda stack: stack.audit_mode, "required"),
    "audit.content": (lambda stack: stack.content_mode, "digest"),
    "learn": (lambda stack: stack.may_learn, False),
}
"""Settings of two words, with the stricter one."""


def _words(old: PolicyStack, new: PolicyStack, places: _Places) -> Iterator[Change]:
    for key, (read, strict) in _STRICT.items():
        was, now = read(old), read(new)
        if was != now:
            which: Direction = "tighter" if now == strict else "looser"
            text = f"{key} {str(was).lower()} → {str(now).lower()}"
            yield Change(key, which, text, places(key), was, now)


def _surroundings(old: PolicyStack, new: PolicyStack, places: _Places) -> Iterator[Change]:
    """What code sees of the world: neither word is stricter."""
    for key, was, now in (("clock", old.clock, new.clock), ("random", old.random, new.random)):
        if was != now:
            yield Change(key, "other", f"{key} {was} → {now}", places(key), was, now)
    before, after = (dict(one.content()) if one else None for one in (old.python, new.python))
    if before != after:
        shown = " → ".join(str(one or "the default") for one in (old.python, new.python))
        yield Change("python", "other", f"python {shown}", places("python"), before, after)


def _modules(old: PolicyStack, new: PolicyStack, places: _Places) -> Iterator[Change]:
    for name in sorted(old.denied_modules ^ new.denied_modules):
        key = f"screen.modules.deny.{name}"
        if name in new.denied_modules:
            text = f"the screen no longer lets code import {name}"
            yield Change(key, "tighter", text, places(key), False, True)
        else:
            yield Change(key, "looser", f"the screen lets code import {name}", places(key), True, False)


def _tools(old: PolicyStack, new: PolicyStack, places: _Places) -> Iterator[Change]:
    """Signatures; which tools may be called is told by `access`."""
    for name in {**old.tools, **new.tools}:
        was, now = old.tools.get(name), new.tools.get(name)
        if was == now:
            continue
        shown = [None if one is None else {k: str(t) for k, t in one.types.items()} for one in (was, now)]
        what = "is declared now" if was is None else "is declared no more" if now is None else "changed"
        key = f"tools.{name}"
        yield Change(key, "other", f"the signature of the tool {name} {what}", places(key), *shown)


def _rules(old: PolicyStack, new: PolicyStack) -> Iterator[Change]:
    before, after = _by_id(old), _by_id(new)
    for name in {**before, **after}:
        was_told, is_told = (_contents(found.get(name, [])) for found in (before, after))
        olds = [rule for rule in before.get(name, []) if _content(rule) not in is_told]
        news = [rule for rule in after.get(name, []) if _content(rule) not in was_told]
        for was, now in zip(olds, news, strict=False):
            yield _rule(was, now)
        for gone in olds[len(news) :]:
            text = f"the rule `{name}` is gone: it {words.sentence(gone)}"
            yield Change(f"rule.{name}", "looser", text, gone.where, words.sentence(gone), None)
        for fresh in news[len(olds) :]:
            text = f"the new rule `{name}` {words.sentence(fresh)}"
            yield Change(f"rule.{name}", "tighter", text, fresh.where, None, words.sentence(fresh))


def _by_id(stack: PolicyStack) -> dict[str, list[Rule]]:
    found: dict[str, list[Rule]] = defaultdict(list)
    for rule in stack.rulebook.rules:
        found[rule.id].append(rule)
    return found


def _contents(rules: list[Rule]) -> set[str]:
    return {_content(rule) for rule in rules}


def _content(rule: Rule) -> str:
    return json.dumps(rule.content(), sort_keys=True)  # where `1` and `true` are two


def _rule(was: Rule, now: Rule) -> Change:
    which = direction(
        applies_with(now.condition, was.condition) and as_strict(now, was, demands),
        applies_with(was.condition, now.condition) and as_strict(was, now, demands),
    )
    before, after = words.sentence(was), words.sentence(now)
    same = words.effects(was) == words.effects(now)
    text = f"the rule `{now.id}` {after}; before, {words.condition(was) if same else f'it {before}'}"
    return Change(f"rule.{now.id}", which, text, now.where, before, after)


def _bounds(old: PolicyStack, new: PolicyStack) -> Iterator[Change]:
    """Bounds that came or went; what they change is told beside."""
    yield from _came_and_went(old.bounds, new.bounds, "bound by", ("tighter", "looser"))
    yield from _came_and_went(old.rehearsed, new.rehearsed, "rehearsing", ("other", "other"))
    texts = {digest_of(bound): bound for bound in old.rehearsed}
    for bound in new.rehearsed:
        if digest_of(bound) not in texts and _named(bound) in map(_named, old.rehearsed):
            text = f"rehearses another `{_named(bound)}`"
            yield Change("within", "other", text, Position(bound.file), None, digest_of(bound))


def _came_and_went(
    old: tuple[PolicyDocument, ...],
    new: tuple[PolicyDocument, ...],
    what: str,
    directions: tuple[Direction, Direction],
) -> Iterator[Change]:
    before, after = ({_named(bound): bound for bound in bounds} for bounds in (old, new))
    same = set(map(digest_of, old)) & set(map(digest_of, new))
    for name, bound in after.items():
        if name not in before and digest_of(bound) not in same:
            where = Position(bound.file)
            yield Change("within", directions[0], f"now {what} `{name}`", where, None, digest_of(bound))
    for name, bound in before.items():
        if name not in after and digest_of(bound) not in same:
            where = Position(bound.file)
            yield Change("within", directions[1], f"no longer {what} `{name}`", where, digest_of(bound), None)


def _named(bound: PolicyDocument) -> str:
    return bound.name or bound.file.rpartition("/")[2]
