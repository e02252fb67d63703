"""Rules that another rule of the same document makes superfluous.

Rules this module keeps:

- a rule is shadowed where another one applies whenever it does, and is as strict in all it does;
- of two that say the same, the later is told;
- only rules that could cover one another are compared, so that thousands of them can be checked.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Iterator

from licet import paths
from licet.policy import Pattern, PolicyDocument
from licet.policy.conditions import Condition, Leaf
from licet.policy.leaves import KeyTest, Test
from licet.policy.parts import Approval
from licet.policy.rule import Rule
from licet.workbench.lint.findings import Finding

Demanding = Callable[[Approval | None, Approval | None], bool]
_Leaf = tuple[Leaf, Test]
_ANYTHING = ""
"""The name of every rule without a condition, whatever it does."""


def shadowed(document: PolicyDocument) -> Iterator[Finding]:
    """Rules that another rule of the same document covers."""
    by_name: dict[str, list[tuple[int, Rule]]] = defaultdict(list)
    for number, rule in enumerate(document.rules):
        for name in dict.fromkeys(_as_cover(rule)):
            by_name[name].append((number, rule))
    for number, rule in enumerate(document.rules):
        others = (pair for name in dict.fromkeys(_as_covered(rule)) for pair in by_name.get(name, ()))
        cover = next((o for n, o in others if n != number and _covers(o, rule, later=n > number)), None)
        if cover is not None:
            yield Finding(
                "error",
                "shadowed-rule",
                rule.where,
                f"the rule `{rule.id}` can never matter: `{cover.id}` in {cover.where} applies whenever it "
                "does, and is as strict in all it does",
                f"take `{rule.id}` out, or narrow `{cover.id}`",
            )


def _covers(cover: Rule, rule: Rule, *, later: bool) -> bool:
    """Whether `cover` makes `rule` superfluous; if each does so for the other, only the first of them."""
    covers = applies_with(cover.condition, rule.condition) and as_strict(cover, rule)
    mutual = covers and later and applies_with(rule.condition, cover.condition) and as_strict(rule, cover)
    return covers and not mutual


def _of(condition: Condition, *clauses: str) -> list[_Leaf]:
    pairs = zip(condition.leaves, condition.tests, strict=True)
    return [(leaf, test) for leaf, test in pairs if leaf.clause in clauses]


def _as_cover(rule: Rule) -> Iterator[str]:
    """Under which names a rule is kept that may cover others."""
    positive, negative = _of(rule.condition, "if", "during"), _of(rule.condition, "unless")
    if positive:
        yield from _names(positive[0])
    elif negative:
        yield from (_names(leaf)[0] for leaf in negative)
    else:
        yield from (_place(entry) for entry in rule.entries)
        yield _ANYTHING


def _as_covered(rule: Rule) -> Iterator[str]:
    """Under which names all rules are found that cover this one.

    What covers it has all the words that it has under a key, so any one of them finds it; all that is excused
    by it is excused here; and without a condition it does all that this does, so the first of that will do.
    """
    yield from (_names(leaf)[0] for leaf in _of(rule.condition, "if", "during"))
    for leaf in _of(rule.condition, "unless")[:1]:
        yield from _names(leaf)
    entry = next(iter(rule.entries), None)
    yield from (_ANYTHING,) if entry is None else _places_around(entry)


def _place(entry: Pattern) -> str:
    if entry.action not in ("read", "write") or entry.target is None:
        return entry.action
    return f"{entry.action} {paths.place(entry.target)}"


def _places_around(entry: Pattern) -> Iterator[str]:
    """The places of all entries that could shadow this one, or say the same."""
    if entry.action not in ("read", "write") or entry.target is None:
        yield entry.action
        return
    place = paths.place(entry.target)
    yield f"{entry.action} "
    yield from (f"{entry.action} {place[:end]}" for end, mark in enumerate(place) if mark == "/" and end)
    yield f"{entry.action} {place}"


def _names(one: _Leaf) -> list[str]:
    """Names by which a leaf is found: one for each word, or its text."""
    leaf, test = one
    if isinstance(test, KeyTest):
        return [f"{leaf.clause} {test.key} {word!r}" for word in test.words]
    return [f"{leaf.clause} {leaf.text}"]


def applies_with(cover: Condition, condition: Condition) -> bool:
    """Whether `cover` is met, or unknown, whenever `condition` is; from the leaves as they were written."""
    positive, theirs = _of(cover, "if", "during"), _of(condition, "if", "during")
    if not all(any(_implies(other, one) for other in theirs) for one in positive):
        return False
    negative, excused = _of(cover, "unless"), _of(condition, "unless")
    return not negative or (bool(excused) and all(any(_implies(n, e) for n in negative) for e in excused))


def _implies(one: _Leaf, other: _Leaf) -> bool:
    """Whether `other` is true where `one` is, and unknown at most where `one` is unknown."""
    if one[0].clause != other[0].clause:
        return False
    mine, theirs = one[1], other[1]
    if isinstance(mine, KeyTest) and isinstance(theirs, KeyTest):
        texts = all(isinstance(word, str) for word in (*mine.words, *theirs.words))
        return mine == theirs or (mine.key == theirs.key and texts and set(mine.words) <= set(theirs.words))
    return one[0].text == other[0].text


def as_strict(cover: Rule, rule: Rule, at_least: Demanding = operator.eq) -> bool:
    """Whether `cover`, while it applies, tightens all that `rule` does; `at_least` compares approvals."""
    asks = rule.approval is not None and not rule.ask
    return (
        all(any(one.shadows(entry) for one in cover.deny) for entry in rule.deny)
        and all(_asks_as_strictly(cover, rule, entry, at_least) for entry in rule.ask)
        and (not asks or at_least(cover.approval, rule.approval))
        and _settings_as_strict(cover, rule)
    )


def _asks_as_strictly(cover: Rule, rule: Rule, entry: Pattern, at_least: Demanding) -> bool:
    if any(one.shadows(entry) for one in cover.deny):
        return True
    return at_least(cover.approval, rule.approval) and any(one.spelled == entry.spelled for one in cover.ask)


def _settings_as_strict(cover: Rule, rule: Rule) -> bool:
    limits, require = cover.limits.stated(), cover.sandbox.require
    lower = all(limits.get(name, float("inf")) <= value for name, value in rule.limits.stated().items())
    held = all(c in require and require[c].rank >= level.rank for c, level in rule.sandbox.require.items())
    asked, ours = rule.sandbox.evidence, cover.sandbox.evidence
    proved = asked is None or (ours is not None and ours.rank >= asked.rank)
    only, admitted = rule.sandbox.only, cover.sandbox.only
    narrow = only is None or (admitted is not None and set(admitted) <= set(only))
    fresh = rule.sandbox.warm in (None, cover.sandbox.warm)
    mode, content = rule.audit.mode, rule.audit.content
    kept = mode in (None, cover.audit.mode) and content in (None, cover.audit.content)
    return lower and held and proved and narrow and fresh and kept
