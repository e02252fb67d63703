"""When one decision is at least as strict as another, in everything that a policy can tighten."""

from __future__ import annotations

from collections.abc import Iterator

from generated import Decided, points_of
from licet.rules import SEVERITY


def at_least_as_strict(narrow: Decided, wide: Decided) -> list[str]:
    """In what `narrow` is looser than `wide`; an empty list if in nothing."""
    return [*_of_permission(narrow, wide), *_of_settings(narrow, wide)]


def _of_permission(narrow: Decided, wide: Decided) -> Iterator[str]:
    mine, theirs = narrow.decision, wide.decision
    if SEVERITY[mine.effect] < SEVERITY[theirs.effect]:
        yield f"effect: {theirs.effect} became {mine.effect}"
    for before, after in zip(theirs.verdicts, mine.verdicts, strict=False):
        if after.intent.source != "granted" and SEVERITY[after.effect] < SEVERITY[before.effect]:
            yield f"{after.intent}: {before.effect} became {after.effect}"
    for action in ("read", "write", "network", "shell"):
        if more := points_of(mine.opened, action) - points_of(theirs.opened, action):
            yield f"{action} opens {sorted(more)} more"
    if mine.effect == "ask" and (fewer := set(theirs.demands) - set(mine.demands)):
        yield f"nobody demands {sorted(map(str, fewer))} any more"


def _of_settings(narrow: Decided, wide: Decided) -> Iterator[str]:
    limits = narrow.request.limits.stated()
    for name, value in wide.request.limits.stated().items():
        if name not in limits or limits[name] > value:
            yield f"limits.{name}: {value} became {limits.get(name)}"
    required = narrow.decision.required
    for control, level in wide.decision.required.items():
        if control not in required or required[control].rank < level.rank:
            yield f"{control}: {level} became {required.get(control)}"
    if narrow.decision.evidence.rank < wide.decision.evidence.rank:
        yield "evidence"
    if wide.stack.only is not None and not (narrow.stack.only or frozenset()) <= wide.stack.only:
        yield f"only: {wide.stack.only} became {narrow.stack.only}"
    if wide.stack.only is not None and narrow.stack.only is None:
        yield "only: all backends"
    lax = ("best_effort", "kept", True)
    loose = [
        tuple(found == word for found, word in zip(stack, lax, strict=True))
        for stack in (
            (one.stack.audit_mode, one.stack.content_mode, one.stack.may_learn) for one in (narrow, wide)
        )
    ]
    if any(now and not before for now, before in zip(*loose, strict=True)):
        yield f"audit or learn: {loose}"
