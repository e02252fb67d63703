"""The entries of one document or rule, found by action and target, and the points where an answer can change.

Rules this module keeps:

- what is found comes in the order in which the entries were given;
- an entry that names the directory of the run is found only where it was bound to one: links can change
  between two runs, so what was bound for one of them is never found for another;
- an index is made when it is first asked for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from functools import cached_property
from operator import itemgetter

from licet.policy.index import EntryIndex, PathIndex
from licet.policy.patterns import Pattern
from licet.request import Action

Numbered = tuple[tuple[int, Pattern], ...]
"""Entries, each with its number among all that were given."""


class Entries:
    """The entries of one document or rule, by number; `moving` are those that wait to be bound."""

    def __init__(self, entries: Iterable[Pattern]) -> None:
        numbered = tuple(enumerate(entries))
        self._count = len(numbered)
        self._named = frozenset(entry.action for _, entry in numbered)
        self._mentioned = frozenset(entry.action for _, entry in numbered if entry.effect != "deny")
        still = (one for one in numbered if not one[1].names_workdir)
        self._layers: tuple[Mapping[Action, _Group], ...] = (_by_action(still),)
        self.moving: Numbered = tuple(one for one in numbered if one[1].names_workdir)

    def bind(self, workdir: str) -> Numbered:
        """What becomes of those of `moving` in the directory of a run; their links are looked at now.

        Raises:
            InvalidPolicy: in that directory, one of them names no path that can be used.
        """
        return tuple([(number, entry.bind(workdir)) for number, entry in self.moving])

    def bound(self, moved: Numbered) -> Entries:
        """These entries, with those of `moving` where they were bound to."""
        here = copy(self)
        here._layers, here.moving = (*self._layers, _by_action(moved)), ()
        return here

    def __len__(self) -> int:
        return self._count

    def name(self, action: Action) -> bool:
        """Whether any of them is about `action`."""
        return action in self._named

    def mentions(self, action: Action) -> bool:
        """Whether anything of `action` is allowed or asked about."""
        return action in self._mentioned

    def covering(self, action: Action, target: str | None) -> list[Pattern]:
        """The entries that match all of `target`."""
        return _in_order([one for group in self._of(action) for one in group.covering(target)])

    def touching(self, action: Action, target: str) -> list[Pattern]:
        """The entries that share anything with `target`."""
        return _in_order([one for group in self._of(action) for one in group.touching(target)])

    def points(self, action: Action) -> set[str]:
        """Every target that an entry names or excepts."""
        return {point for group in self._of(action) for point in group.points}

    def points_inside(self, action: Action, path: str) -> set[str]:
        """Those of `points` that lie inside `path`, and are not it."""
        return {point for group in self._of(action) for point in group.points_inside(path)}

    def _of(self, action: Action) -> list[_Group]:
        return [layer[action] for layer in self._layers if action in layer]


class _Group:
    """Entries of one action whose targets are known."""

    def __init__(self, action: Action, numbered: Numbered) -> None:
        self._numbered = numbered
        self._index = EntryIndex(action, [entry for _, entry in numbered])

    def covering(self, target: str | None) -> Iterator[tuple[int, Pattern]]:
        return map(self._numbered.__getitem__, self._index.covering(target))

    def touching(self, target: str) -> Iterator[tuple[int, Pattern]]:
        return map(self._numbered.__getitem__, self._index.touching(target))

    @cached_property
    def points(self) -> tuple[str, ...]:
        named = (target for entry in self._index.entries for target in (entry.target, *entry.excepts))
        return tuple(dict.fromkeys(target for target in named if target is not None))

    def points_inside(self, path: str) -> set[str]:
        return {self.points[place] for place in self._paths.inside(path)}

    @cached_property
    def _paths(self) -> PathIndex:
        return PathIndex(self.points)


def _in_order(numbered: list[tuple[int, Pattern]]) -> list[Pattern]:
    if len(numbered) > 1:
        numbered.sort(key=itemgetter(0))
    return [entry for _, entry in numbered]


def _by_action(numbered: Iterable[tuple[int, Pattern]]) -> Mapping[Action, _Group]:
    found: defaultdict[Action, list[tuple[int, Pattern]]] = defaultdict(list)
    for one in numbered:
        found[one[1].action].append(one)
    return {action: _Group(action, tuple(group)) for action, group in found.items()}
