"""What a decision opens to a sandbox: the meet of what all documents allow, without what any keeps back.

Rules this module keeps:

- `intents: None` opens all that is allowed; a list opens exactly what it names and policy permits;
- `ask` targets open only where an intent names them; elsewhere they are masked like denied ones;
- nothing is opened that a document denies, and what lies inside is listed as masked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Literal

from licet import paths
from licet.plan import Opened
from licet.policy import Pattern
from licet.policy.patterns import network
from licet.request import Intent
from licet.rules import Rules

FileAction = Literal["read", "write"]


def opened(rules: Rules, permitted: Sequence[Intent], *, everything: bool, tools: Iterable[str]) -> Opened:
    """What to open: the `permitted` intents, and with `everything` all that is allowed besides."""
    read, write = (_roots(rules, action, permitted, everything) for action in ("read", "write"))
    masks = {mask for action in ("read", "write") for mask in _masks(rules, action, permitted)}
    roots = (*read, *write)
    return Opened(
        read=read,
        write=write,
        masked=tuple(sorted(mask for mask in masks if _inside_any(mask, roots))),
        sealed=tuple(seal for seal in rules.sealed if _inside_any(seal, roots)),
        network=_hosts(rules, permitted, everything),
        shell=any(i.action == "shell" for i in permitted)
        or (everything and rules.vote(Intent("shell")).effect == "allow"),
        tools=tuple(tools),
    )


def _roots(
    rules: Rules, action: FileAction, permitted: Sequence[Intent], everything: bool
) -> tuple[str, ...]:
    named = [i.target for i in permitted if i.action == action and i.target is not None]
    granted: tuple[str, ...] = ()
    if everything:
        mentioning = (rules.root, *(bound for bound in rules.bounds if bound.mentions(action)))
        allowed = [tuple(_targets(document.allow, action)) for document in mentioning]
        granted = reduce(paths.meet, allowed)
    kept_back = [t for document in rules.documents for t in _targets(document.deny, action)]
    shut = (*kept_back, *rules.sealed)
    roots = (root for root in (*named, *granted) if not any(paths.contains(out, root) for out in shut))
    return paths.outermost(roots)


def _masks(rules: Rules, action: FileAction, permitted: Sequence[Intent]) -> Iterable[str]:
    named = [i.target for i in permitted if i.action == action and i.target is not None]
    for document in rules.documents:
        yield from _targets(document.deny, action)
        for asked in _targets(document.ask, action):
            if not any(paths.contains(asked, name) for name in named):
                yield asked
        for entry in (*document.allow, *document.ask):
            if entry.action == action:
                yield from (gap for gap in entry.excepts if not _reopened(gap, named))


def _reopened(gap: str, named: Iterable[str]) -> bool:
    return any(paths.contains(gap, name) for name in named)


def _hosts(rules: Rules, permitted: Sequence[Intent], everything: bool) -> tuple[str, ...]:
    named = {i.target for i in permitted if i.action == "network" and i.target is not None}
    if everything:
        mentioning = (rules.root, *(bound for bound in rules.bounds if bound.mentions("network")))
        sets = [[network(t) for t in _targets(document.allow, "network")] for document in mentioning]
        meets = reduce(
            lambda left, right: [m for a in left for b in right if (m := a.meet(b)) is not None], sets
        )
        denied = [network(t) for document in rules.documents for t in _targets(document.deny, "network")]
        named |= {str(host) for host in meets if not any(out.covers(host) for out in denied)}
    return tuple(sorted(named))


def _targets(entries: Iterable[Pattern], action: str) -> list[str]:
    return [entry.target for entry in entries if entry.action == action and entry.target is not None]


def _inside_any(path: str, roots: Iterable[str]) -> bool:
    return any(paths.contains(root, path) for root in roots)
