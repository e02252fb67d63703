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
from collections.abc import Iterable, Iterator, Sequence

from licet import paths
from licet.hosts import Endpoint, Extent, depths_of
from licet.policy.patterns import Pattern, network
from licet.request import TARGETLESS, Action


class PathIndex:
    """Canonical paths, found by what contains what."""

    def __init__(self, targets: Iterable[str]) -> None:
        self._places: defaultdict[str, list[int]] = defaultdict(list)
        for place, target in enumerate(targets):
            self._places[paths.place(target)].append(place)
        self._sorted = sorted(self._places)

    def around(self, target: str) -> Iterator[int]:
        """The places of all paths that contain `target`, or are it."""
        key = paths.place(target)
        while True:
            yield from self._places.get(key, ())
            if not key:
                return
            key = key.rpartition("/")[0]

    def inside(self, target: str) -> Iterator[int]:
        """The places of all paths that lie inside `target`, and are not it."""
        key = paths.place(target)
        first, after = (
            (f"{key}/", f"{key}0") if key else ("\0", "\U0010ffff")
        )  # `0` is what follows the slash
        for found in self._sorted[bisect_left(self._sorted, first) : bisect_left(self._sorted, after)]:
            yield from self._places[found]


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

    def around(self, target: Endpoint) -> Iterator[int]:
        """The places of all that cover `target`."""
        return (place for place in self._wider(target) if self._targets[place].port in (None, target.port))

    def touching(self, target: Endpoint) -> Iterator[int]:
        """The places of all that share anything with `target`."""
        for place in (*self._wider(target), *self._narrower(target.extent)):
            if target.port is None or self._targets[place].port in (None, target.port):
                yield place

    def _wider(self, target: Endpoint) -> Iterator[int]:
        """The places of all that hold every host of `target`, whatever the port."""
        mine = target.extent
        if not mine.open_end:
            yield from self._places.get(mine, ())
        for wider in mine.around(self._depths):
            yield from self._places.get(wider, ())

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

    def everything(self) -> Iterator[int]:
        """Every place, for questions that begin with a pattern and reach further than what covers it."""
        return iter(range(len(self._targets)))


class EntryIndex:
    """Entries of one action and any effects, found by target."""

    def __init__(self, action: Action, entries: Sequence[Pattern]) -> None:
        self._action = action
        self._entries = tuple(entry for entry in entries if entry.action == action)
        targets = [entry.target or "" for entry in self._entries]
        self._paths = PathIndex(targets if action in ("read", "write") else ())
        self._hosts = HostIndex(map(network, targets) if action == "network" else ())
        self._tools = ToolIndex(targets if action == "tool" else ())

    @property
    def entries(self) -> tuple[Pattern, ...]:
        """All of them, in the order they were given."""
        return self._entries

    def covering(self, target: str | None) -> tuple[Pattern, ...]:
        """The entries that match all of `target`."""
        return tuple(entry for entry in self._around(target) if entry.covers(target))

    def touching(self, target: str) -> tuple[Pattern, ...]:
        """The entries that share anything with `target`."""
        return tuple(entry for entry in self._near(target) if entry.touches(target))

    def first_cover(self, other: Pattern) -> Pattern | None:
        """The first entry that shadows `other`, which then can never matter."""
        if other.action != self._action:
            return None
        return next((entry for entry in self._around(other.target) if entry.shadows(other)), None)

    def _around(self, target: str | None) -> Iterator[Pattern]:
        if target is None or self._action in TARGETLESS:
            return iter(self._entries)
        if self._action == "network":
            return self._in_order(self._hosts.around(network(target)))
        if self._action == "tool":
            return self._in_order(self._tools.candidates(target))
        return self._in_order(self._paths.around(target))

    def _near(self, target: str) -> Iterator[Pattern]:
        if self._action in TARGETLESS:
            return iter(self._entries)
        if self._action == "network":
            return self._in_order(self._hosts.touching(network(target)))
        if self._action == "tool":
            wide = "*" in target
            return self._in_order(self._tools.everything() if wide else self._tools.candidates(target))
        return self._in_order((*self._paths.around(target), *self._paths.inside(target)))

    def _in_order(self, places: Iterable[int]) -> Iterator[Pattern]:
        return (self._entries[place] for place in sorted(places))


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


def _order(one: Extent) -> tuple[str, ...]:
    """Sorts extents so that all that one holds follows it."""
    return tuple(map(str, one.path))
