"""What a decision opens to a sandbox: what all documents together permit, and the gaps inside it.

Rules this module keeps:

- `intents: None` opens all that is allowed; a list opens exactly what it names and policy permits;
- an `ask` target opens only inside an intent that names it, so that whoever approves was asked about it;
  hosts that ask and that no list of intents leaves out are kept apart, to be asked about when code connects;
- whatever is opened, `rules.vote` permits, at every point of it: between two paths that documents or
  intents name, no answer can change, so it is asked at each of these points and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Literal

from licet.hosts import Endpoint
from licet.plan import Opened
from licet.policy.index import HostIndex, PathIndex
from licet.policy.patterns import network
from licet.request import Action, Intent
from licet.rules import Rules, Vote, contains

FileAction = Literal["read", "write"]


def opened(rules: Rules, permitted: Sequence[Intent], *, everything: bool, tools: Iterable[str]) -> Opened:
    """What to open: the `permitted` intents, and with `everything` all that is allowed besides."""
    if everything and not any(rules.vote(intent).effect == "ask" for intent in permitted):
        return replace(_opened_to_all(rules), tools=tuple(tools))  # what is allowed opens without a name
    return _opened(rules, _Wanted(rules, permitted, everything=everything), tuple(tools))


@lru_cache(maxsize=64)
def _opened_to_all(rules: Rules) -> Opened:
    return _opened(rules, _Wanted(rules, (), everything=True), ())


def _opened(rules: Rules, wanted: _Wanted, tools: tuple[str, ...]) -> Opened:
    read, read_masked = _region(wanted, "read")
    write, write_masked = _region(wanted, "write")
    hosts, hosts_masked = _hosts(wanted)
    return Opened(
        read=read,
        write=write,
        read_masked=read_masked,
        write_masked=write_masked,
        sealed=_inside(rules.stack.sealed, (*read, *write)),
        network=hosts,
        network_masked=hosts_masked,
        network_asked=_asked(wanted),
        shell=wanted.opens("shell"),
        tools=tools,
    )


class _Wanted:
    """Which targets open, one by one: what policy answers, against what was named."""

    def __init__(self, rules: Rules, permitted: Sequence[Intent], *, everything: bool) -> None:
        self._rules = rules
        self._everything = everything
        self._named: dict[Action, set[str]] = {}
        for intent in permitted:
            if intent.target is not None or intent.action == "shell":
                self._named.setdefault(intent.action, set()).add(intent.target or "")

    def paths(self, action: FileAction) -> set[str]:
        """Every path at which what is open can change: what is named, and what policy names inside it."""
        points = set(self._named.get(action, ()))
        if self._everything:
            return points | self._rules.points(action)
        for path in tuple(points):
            points |= self._rules.points_inside(action, path)
        return points

    def hosts(self) -> set[str]:
        """Every host, or pattern of hosts, at which what is open can change."""
        points = set(self._named.get("network", ()))
        if self._everything or any(network(target).many for target in points):
            return points | self._rules.points("network")
        return points

    def asks(self, target: str) -> bool:
        """Whether a host that does not open may be asked about later: no list of intents leaves it out."""
        return self._everything and self._rules.vote_on("network", target).effect == "ask"

    def opens(self, action: Action, target: str | None = None) -> bool:
        """Whether exactly this opens, apart from narrower targets with an answer of their own."""
        named = self._named.get(action, ())
        if not (named or self._everything):
            return False
        vote = self._rules.vote_on(action, target)
        if vote.effect == "deny" or (target or "") in named:
            return vote.effect != "deny"
        if vote.effect == "allow" and self._everything:
            return True
        around = [outer for outer in named if contains(action, outer, target or "")]
        if vote.effect == "allow":
            return bool(around)
        return any(_asks_the_same(self._rules.vote_on(action, outer), vote) for outer in around)


def _asks_the_same(named: Vote, vote: Vote) -> bool:
    """Whether an approval of what was named answers every entry that asks here."""
    return named.effect == "ask" and set(vote.by) <= set(named.by)


def _region(wanted: _Wanted, action: FileAction) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The paths where an opened region begins, and those where one ends."""
    points = wanted.paths(action)
    if not points:
        return (), ()
    state = {point: wanted.opens(action, point) for point in sorted(points)}
    changes = [point for point in state if state[point] != _around(point, state)]
    return tuple(p for p in changes if state[p]), tuple(p for p in changes if not state[p])


def _around(path: str, state: Mapping[str, bool]) -> bool:
    """The state of the innermost point that contains `path` and is not `path` itself."""
    while path != "/":
        path = path.rpartition("/")[0] or "/"
        if path in state:
            return state[path]
    return False


def _inside(sealed: tuple[str, ...], roots: tuple[str, ...]) -> tuple[str, ...]:
    """Those of `sealed` that lie inside a root."""
    if not (sealed and roots):
        return ()
    around = PathIndex(roots).around
    return tuple(seal for seal in sealed if any(True for _ in around(seal)))


def _hosts(wanted: _Wanted) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The patterns that open, and the narrower ones inside them that do not."""
    state = {network(target): wanted.opens("network", target) for target in wanted.hosts()}
    open_ones = [point for point, opens in state.items() if opens]
    if not any(point.many for point in open_ones):
        return tuple(sorted(map(str, open_ones))), ()
    opening = HostIndex(open_ones)
    masked = [p for p, opens in state.items() if not opens and _others(p, opening.around(p), open_ones)]
    masking = HostIndex(masked)
    needed = [
        point
        for point in open_ones
        if not _others(point, opening.around(point), open_ones)
        or _others(point, masking.around(point), masked)
    ]
    return tuple(sorted(map(str, needed))), tuple(sorted(map(str, masked)))


def _asked(wanted: _Wanted) -> tuple[str, ...]:
    """The widest patterns of hosts that ask, and that nothing opens."""
    asking = [network(p) for p in wanted.hosts() if not wanted.opens("network", p) and wanted.asks(p)]
    around = HostIndex(asking).around
    return tuple(sorted(str(point) for point in asking if not _others(point, around(point), asking)))


def _others(point: Endpoint, places: Iterable[int], points: Sequence[Endpoint]) -> bool:
    return any(points[place] != point for place in places)
