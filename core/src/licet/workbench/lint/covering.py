"""Rules that another rule of the same document makes superfluous.

Rules this module keeps:

- a rule is shadowed where another one applies whenever it does, and is as strict in all it does;
- of two that say the same, the later is told.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Iterator

from licet.policy import Pattern, PolicyDocument
from licet.policy.conditions import Condition, Leaf
from licet.policy.leaves import KeyTest, Test
from licet.policy.parts import Approval
from licet.policy.rule import Rule
from licet.workbench.lint.findings import Finding

Demanding = Callable[[Approval | None, Approval | None], bool]
_Leaf = tuple[Leaf, Test]


def shadowed(document: PolicyDocument) -> Iterator[Finding]:
    """Rules that another rule of the same document covers."""
    by_leaf: dict[str, list[tuple[int, Rule]]] = defaultdict(list)
    for number, rule in enumerate(document.rules):
        positive = _of(rule.condition, "if", "during")
        for name in _names(positive[0]) if positive else ("",):
            by_leaf[name].append((number, rule))
    for number, rule in enumerate(document.rules):
        # what covers a rule has all the words that the rule has under a key, so any one of them finds it
        names = ("", *(_names(leaf)[0] for leaf in _of(rule.condition, "if", "during")))
        others = (pair for name in dict.fromkeys(names) for pair in by_leaf.get(name, ()))
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
    mode, content = rule.audit.mode, rule.audit.content
    kept = mode in (None, cover.audit.mode) and content in (None, cover.audit.content)
    return lower and held and proved and narrow and kept
