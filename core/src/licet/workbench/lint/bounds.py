"""Bounds that the other ones make superfluous.

Rules this module keeps:

- a bound is superfluous where other bounds are as strict in all, whatever the root: what a root does not do
  yet is no reason to call its bound superfluous;
- of two that say the same, the later is told; a bound that brings others in is never told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from licet.errors import Position
from licet.policy import PolicyDocument, PolicyStack
from licet.request import ACTIONS, Intent
from licet.rules import SEVERITY, Rules
from licet.workbench.lint.findings import Finding
from licet.workbench.samples import EVERYTHING, samples
from licet.workbench.words import STAND_IN


def superfluous(stack: PolicyStack) -> Iterator[Finding]:
    """Bounds that change nothing beside those that are left, or that say nothing at all."""
    left = list(stack.bounds)
    for bound in reversed(stack.bounds):
        others = [other for other in left if other is not bound]
        cover = _cover(bound, others)
        if cover is not None:
            left = others
            yield Finding(
                "warning",
                "superfluous-bound",
                Position(bound.file),
                f"the bound `{bound.name or bound.file}` can never change anything, {cover}",
                "take it out of `within`, or write what it should restrict",
            )


def _cover(bound: PolicyDocument, others: Sequence[PolicyDocument]) -> str | None:
    """What makes a bound superfluous, in words; None if it is not."""
    if subsumed(bound, ()):
        return "since it says nothing that could restrict"
    for other in others:
        if subsumed(bound, (other,)):
            return f"beside `{other.name or other.file}`"
    return "beside the other bounds together" if len(others) > 1 and subsumed(bound, others) else None


def subsumed(bound: PolicyDocument, others: Sequence[PolicyDocument]) -> bool:
    """Whether `others` together are as strict as `bound`, whatever the root."""
    return (
        _lists_subsumed(bound, others) and _rules_subsumed(bound, others) and _votes_subsumed(bound, others)
    )


def _lists_subsumed(bound: PolicyDocument, others: Sequence[PolicyDocument]) -> bool:
    if bound.within:
        return False  # it brings further bounds in
    combined = PolicyStack(others[0], tuple(others[1:])) if others else None
    for name, value in bound.limits.stated().items():
        if not any(other.limits.stated().get(name, value + 1) <= value for other in others):
            return False
    if not all(_lists_as_few(key, bound, others) for key in ("env", "tools")):
        return False
    modules = set(bound.screen.modules.deny) - {m for o in others for m in o.screen.modules.deny}
    words = (
        (bound.screen.mode == "refuse", any(o.screen.mode == "refuse" for o in others)),
        (bound.audit.mode == "required", any(o.audit.mode == "required" for o in others)),
        (bound.audit.content == "digest", any(o.audit.content == "digest" for o in others)),
        (bound.sandbox.warm is False, any(o.sandbox.warm is False for o in others)),
        (bound.learn is False, any(o.learn is False for o in others)),
        (_evidence(bound) > 0, any(_evidence(o) >= _evidence(bound) for o in others)),
    )
    only = combined.only if combined else None
    narrow = bound.sandbox.only is None or (only is not None and only <= set(bound.sandbox.only))
    required = combined.requirements if combined else {}
    held = all(c in required and required[c].rank >= v.rank for c, v in bound.sandbox.require.items())
    return not modules and narrow and held and all(theirs for asked, theirs in words if asked)


def _evidence(document: PolicyDocument) -> int:
    return document.sandbox.evidence.rank if document.sandbox.evidence else 0


def _lists_as_few(
    key: Literal["env", "tools"], bound: PolicyDocument, others: Iterable[PolicyDocument]
) -> bool:
    """Whether some other bound admits no name under `key` that this one does not."""
    admitted: Mapping[str, object] | None = getattr(bound, key)
    theirs = (getattr(other, key) for other in others)
    return admitted is None or any(one is not None and set(one) <= set(admitted) for one in theirs)


def _rules_subsumed(bound: PolicyDocument, others: Sequence[PolicyDocument]) -> bool:
    known = [rule.content() | {"id": ""} for other in others for rule in other.rules]
    return all(rule.content() | {"id": ""} in known for rule in bound.rules)


def _votes_subsumed(bound: PolicyDocument, others: Sequence[PolicyDocument]) -> bool:
    """Whether the others answer as severely at every sample, beside a root that allows everything."""
    mine = Rules.of(PolicyStack(EVERYTHING, (bound,)), STAND_IN)
    theirs = Rules.of(PolicyStack(EVERYTHING, tuple(others)), STAND_IN)
    for action in ACTIONS:
        for sample in samples((EVERYTHING, bound, *others), action):
            ours, other = (rules.vote(Intent(action, sample)) for rules in (mine, theirs))
            if SEVERITY[ours.effect] > SEVERITY[other.effect]:
                return False
            if ours.effect == other.effect == "ask" and not set(ours.demands) <= set(other.demands):
                return False
    return True
