"""Entries that no enabled backend could open, however narrow the request.

Rules this module keeps:

- the answer is that of selection, asked for every choice of what else is opened beside the entry;
- evidence that can still be made on this host is no reason to say that nobody opens it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

from licet.hosts import ANY, PRIVATE
from licet.plan import Opened
from licet.policy import Pattern, PolicyStack
from licet.prepare import Prepared
from licet.request import Action
from licet.requirements import openable
from licet.select import Offer, Selection, select
from licet.workbench.lint.findings import Finding
from licet.workbench.words import STAND_IN, listed

_OPENABLE: tuple[Action, ...] = ("read", "write", "network", "shell", "tool")


def unreachable(stack: PolicyStack, plain: Prepared, offers: Sequence[Offer]) -> Iterator[Finding]:
    """The entries of the root that none of `offers` opens; `plain` is a request for what is allowed."""
    known: dict[tuple[Action, str | None], Selection | None] = {}
    for entry in (*stack.root.ask, *stack.root.allow):
        if entry.action not in _OPENABLE:
            continue
        wide = entry.target if entry.target in ("/", ANY, PRIVATE) else None
        key = (entry.action, wide)
        if key not in known:
            known[key] = _refusal(entry, plain, offers)
        if (selection := known[key]) is not None:
            yield Finding(
                "warning",
                "nobody-opens",
                entry.where,
                f"no enabled backend can open `{entry.effect}: {entry.text}`",
                "enable or install a backend that can (`licet backends list`), or take it out",
                "; ".join(_short(selection)) or "no backend is enabled",
            )


def _refusal(entry: Pattern, plain: Prepared, offers: Sequence[Offer]) -> Selection | None:
    """None if some backend opens the entry, alone or beside others; else what selection says of it alone."""
    others = [action for action in _OPENABLE if action != entry.action]
    alone: Selection | None = None
    for size in range(len(_OPENABLE) + 1):
        for beside in itertools.combinations((*others, entry.action), size):
            opened = _opened(entry, plain.decision.opened, beside)
            decision = replace(plain.decision, opened=opened, wanted=frozenset({entry.action}))
            selection = select(plain.request, decision, plain.needs, plain.stack, offers)
            if selection.chosen is not None:
                return None
            alone = alone or selection
    return alone


def _opened(entry: Pattern, allowed: Opened, beside: Sequence[Action]) -> Opened:
    """The entry, and all that is allowed of the actions `beside`."""
    rest = openable(allowed, frozenset(beside))
    own = entry.bind(STAND_IN).target or ""
    if entry.action == "read":
        return replace(rest, read=tuple(dict.fromkeys((own, *rest.read))))
    if entry.action == "write":
        return replace(rest, write=tuple(dict.fromkeys((own, *rest.write))))
    if entry.action == "network":
        return replace(rest, network=tuple(dict.fromkeys((own, *rest.network))))
    return replace(rest, tools=(own,)) if entry.action == "tool" else replace(rest, shell=True)


def _short(selection: Selection) -> Iterator[str]:
    for candidate in selection.candidates:
        whats = list(dict.fromkeys(blocker.what for blocker in candidate.blockers))
        closed = [what.removeprefix("opens ") for what in whats if what.startswith("opens ")]
        lacking = [what for what in whats if not what.startswith("opens ")]
        shown = lacking[:3] + ([f"{len(lacking) - 3} more"] if len(lacking) > 3 else [])
        told = f"can't open {listed(closed)}" if closed else f"lacks {listed(shown)}"
        yield f"{candidate.name} {told}"
