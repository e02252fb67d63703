"""Entries found by target: what a linear walk over them would find, in the order they were given.

Rules this module keeps:

- an index answers exactly as the methods of `Pattern` do for each entry, one after the other;
- a look-up costs what the target is deep (names of a path, labels of a host, letters of a tool) and what it
  finds, however many entries there are;
- places are positions: two entries for one target are two places.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property

from licet import paths
from licet.hosts import Endpoint, Extent, depths_of
from licet.policy.patterns import Pattern, network
from licet.request import ACTIONS, TARGETLESS, Action

_NESTED = ("read", "write", "network")
"""Actions of which any two targets are nested or disjoint."""


class PathIndex:
    """Canonical paths, found by what contains what."""

    def __init__(self, targets: Iterable[str]) -> None:
        self._places: defaultdict[str, list[int]] = defaultdict(list)
        for place, target in enumerate(targets):
            self._places[paths.place(target)].append(place)
        self._sorted = sorted(self._places)

    def around(self, target: str) -> list[int]:
        """The places of all paths that contain `target`, or are it."""
        key, found = paths.place(target), []
        while True:
            if key in self._places:
                found += self._places[key]
            if not key:
                return found
            key = key.rpartition("/")[0]

    def inside(self, target: str) -> list[int]:
        """The places of all paths that lie inside `target`, and are not it."""
        key, found = paths.place(target), []
        within = f"{key}/" if key else ""
        for at in range(bisect_left(self._sorted, within), len(self._sorted)):
            if not self._sorted[at].startswith(within):
                break
            if self._sorted[at] != key:
                found += self._places[self._sorted[at]]
        return found


class HostIndex:
    """Hosts and patterns with ports, found by what covers what."""

    def __init__(self, targets: Iterable[Endpoint]) -> None:
        self._targets = tuple(targets)
        self._places: defaultdict[Extent, list[int]] = defaultdict(list)
        for place, target in enumerate(self._targets):
            self._places[target.extent].append(place)
        self._depths = depths_of(self._places)
        self._sorted = sorted(self._places, key=_order)
        self._keys = [_order(one) for one in self._sorted]

    def around(self, target: Endpoint) -> list[int]:
        """The places of all that cover `target`."""
        return [place for place in self._wider(target) if self._targets[place].port in (None, target.port)]

    def touching(self, target: Endpoint) -> Iterator[int]:
        """The places of all that share anything with `target`."""
        for place in (*self._wider(target), *self._narrower(target.extent)):
            if target.port is None or self._targets[place].port in (None, target.port):
                yield place

    def _wider(self, target: Endpoint) -> list[int]:
        """The places of all that hold every host of `target`, whatever the port."""
        mine = target.extent
        found = list(self._places.get(mine, ())) if not mine.open_end else []
        for wider in mine.around(self._depths):
            found += self._places.get(wider, ())
        return found

    def _narrower(self, outer: Extent) -> Iterator[int]:
        """The places of all hosts that `outer` holds besides itself."""
        if not outer.open_end:
            return
        key = _order(outer)
        for at in range(bisect_left(self._keys, key), len(self._keys)):
            if self._keys[at][: len(key)] != key:
                return
            if self._sorted[at] != outer and outer.holds(self._sorted[at]):
                yield from self._places[self._sorted[at]]


class ToolIndex:
    """Names of tools and patterns with `*`, found by what matches what."""

    def __init__(self, targets: Iterable[str]) -> None:
        self._targets = tuple(targets)
        self._by_head: defaultdict[str, list[int]] = defaultdict(list)
        self._by_name: defaultdict[str, list[int]] = defaultdict(list)
        for place, target in enumerate(self._targets):
            head, star, _ = target.partition("*")
            (self._by_head if star else self._by_name)[head].append(place)

    def candidates(self, target: str) -> Iterator[int]:
        """The places of all that may match a name, or may cover a pattern."""
        yield from self._by_name.get(target, ())
        for length in range(len(target) + 1):
            yield from self._by_head.get(target[:length], ())


class EntryIndex:
    """Entries of one action and any effects, found by target."""

    def __init__(self, action: Action, entries: Sequence[Pattern]) -> None:
        self._action = action
        self._entries = tuple(entry for entry in entries if entry.action == action)

    @property
    def entries(self) -> tuple[Pattern, ...]:
        """All of them, in the order they were given."""
        return self._entries

    def covering(self, target: str | None) -> list[int]:
        """The places of the entries that match all of `target`."""
        if target is None or self._action not in _NESTED:
            return [place for place in self._around(target) if self._entries[place].covers(target)]
        found = self._around(target)  # what contains a path or a host is found, and nothing else
        if self._gaps.isdisjoint(found):
            return found
        return [place for place in found if not self._entries[place].takes_out(target)]

    def candidates(self, target: str | None) -> int:
        """How many targets and exceptions have to be looked at to say what covers `target`."""
        return sum(1 + len(self._entries[place].excepts) for place in self._around(target))

    def touching(self, target: str) -> list[int]:
        """The places of the entries that share anything with `target`."""
        return [place for place in self._near(target) if self._entries[place].touches(target)]

    def first_cover(self, other: Pattern) -> Pattern | None:
        """The first entry that shadows `other`, which then can never matter."""
        if other.action != self._action:
            return None
        around = (self._entries[place] for place in self._around(other.target))
        return next((entry for entry in around if entry.shadows(other)), None)

    @cached_property
    def _gaps(self) -> frozenset[int]:
        return frozenset(place for place, entry in enumerate(self._entries) if entry.excepts)

    @cached_property
    def _paths(self) -> PathIndex:
        return PathIndex(entry.target or "" for entry in self._entries)

    @cached_property
    def _hosts(self) -> HostIndex:
        return HostIndex(network(entry.target or "") for entry in self._entries)

    @cached_property
    def _tools(self) -> ToolIndex:
        return ToolIndex(entry.target or "" for entry in self._entries)

    def _around(self, target: str | None) -> list[int]:
        """The places of all that may cover `target`, in order."""
        if target is None or self._action in TARGETLESS:
            return list(range(len(self._entries)))
        if self._action == "network":
            found = self._hosts.around(network(target))
        elif self._action == "tool":
            found = list(self._tools.candidates(target))
        else:
            found = self._paths.around(target)
        return sorted(found) if len(found) > 1 else found

    def _near(self, target: str) -> list[int]:
        """The places of all that may share anything with `target`, in order."""
        if self._action == "network":
            return sorted(self._hosts.touching(network(target)))
        if self._action == "tool" and "*" in target:
            return list(range(len(self._entries)))
        if self._action in ("read", "write"):
            return sorted((*self._paths.around(target), *self._paths.inside(target)))
        return self._around(target)


def dead_entries(*groups: Sequence[Pattern]) -> Iterator[tuple[Pattern, Pattern]]:
    """Each entry that one of a stronger group wholly covers, with the first that does.

    The groups come strongest first: `deny`, `ask`, `allow`.
    """
    stronger: list[Pattern] = []
    for group in groups:
        actions = {entry.action for entry in group}
        indexes = {action: EntryIndex(action, stronger) for action in actions} if stronger else {}
        for entry in group:
            cover = indexes[entry.action].first_cover(entry) if indexes else None
            if cover is not None:
                yield entry, cover
        stronger += group


def crowded(entries: Sequence[Pattern], most: int) -> Pattern | None:
    """The entry with which the entries overlap more than `most` times, counted for every target they name."""
    weight = sum(1 + len(entry.excepts) for entry in entries)
    if weight * weight <= most:
        return None
    indexes = {action: EntryIndex(action, entries) for action in {entry.action for entry in entries}}
    found = 0
    for entry in entries:
        for target in (entry.target, *entry.excepts):
            found += indexes[entry.action].candidates(target)
            if found > most:
                return entry
    return None


def closing(deny: Sequence[Pattern], open_ones: Sequence[Pattern]) -> Callable[[Pattern], bool]:
    """Whether a bound that denies and opens this leaves nothing of an entry of another document."""
    denied = {action: EntryIndex(action, deny) for action in ACTIONS}
    mentioned = {action: EntryIndex(action, open_ones) for action in ACTIONS}

    def closes(entry: Pattern) -> bool:
        if denied[entry.action].first_cover(entry) is not None:
            return True
        mine = mentioned[entry.action]
        return bool(mine.entries) and entry.target is not None and not mine.touching(entry.target)

    return closes


def _order(one: Extent) -> tuple[str, ...]:
    """Sorts extents so that all that one holds follows it."""
    return tuple(map(str, one.path))
