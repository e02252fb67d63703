"""What a decision opens to a sandbox: what all documents together permit, and the gaps inside it.

Rules this module keeps:

- `intents: None` opens all that is allowed; a list opens exactly what it names and policy permits;
- an `ask` target opens only inside an intent that names it, so that whoever approves was asked about it;
- whatever is opened, `rules.vote` permits, at every point of it: between two paths that documents or
  intents name, no answer can change, so it is asked at each of these points and nowhere else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from licet.hosts import Endpoint
from licet.plan import Opened
from licet.policy.index import HostIndex, PathIndex
from licet.policy.patterns import network
from licet.request import Action, Intent
from licet.rules import Rules, Vote, includes

FileAction = Literal["read", "write"]


def opened(rules: Rules, permitted: Sequence[Intent], *, everything: bool, tools: Iterable[str]) -> Opened:
    """What to open: the `permitted` intents, and with `everything` all that is allowed besides."""
    wanted = _Wanted(rules, permitted, everything=everything)
    read, read_masked = _region(wanted, "read")
    write, write_masked = _region(wanted, "write")
    hosts, hosts_masked = _hosts(wanted)
    return Opened(
        read=read,
        write=write,
        read_masked=read_masked,
        write_masked=write_masked,
        sealed=_inside(rules.sealed, (*read, *write)),
        network=hosts,
        network_masked=hosts_masked,
        shell=wanted.opens(Intent("shell")),
        tools=tuple(tools),
    )


class _Wanted:
    """Which targets open, one by one: what policy answers, against what was named."""

    def __init__(self, rules: Rules, permitted: Sequence[Intent], *, everything: bool) -> None:
        self._rules = rules
        self._everything = everything
        self._named: defaultdict[Action, list[Intent]] = defaultdict(list)
        for intent in permitted:
            if intent.action == "shell" or intent.target is not None:
                self._named[intent.action].append(intent)

    def paths(self, action: FileAction) -> set[str]:
        """Every path at which what is open can change: what is named, and what policy names around it."""
        named = {intent.target for intent in self._named[action] if intent.target is not None}
        if self._everything:
            return named | self._rules.points(action)
        return named.union(*(self._rules.points_inside(action, path) for path in named))

    def hosts(self) -> set[Endpoint]:
        """Every host, or pattern of hosts, at which what is open can change."""
        named = {network(intent.target) for intent in self._named["network"] if intent.target is not None}
        if self._everything or any(host.port is None or host.extent.open_end for host in named):
            named.update(map(network, self._rules.points("network")))
        return named

    def opens(self, intent: Intent) -> bool:
        """Whether exactly this opens, apart from narrower targets with an answer of their own."""
        around = [outer for outer in self._named[intent.action] if includes(outer, intent)]
        if not (around or self._everything):
            return False
        vote = self._rules.vote(intent)
        if vote.effect != "ask":
            return vote.effect == "allow"
        return any(_asks_the_same(self._rules.vote(outer), vote) for outer in around)


def _asks_the_same(named: Vote, vote: Vote) -> bool:
    """Whether an approval of what was named answers every entry that asks here."""
    return named.effect == "ask" and set(vote.by) <= set(named.by)


def _region(wanted: _Wanted, action: FileAction) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The paths where an opened region begins, and those where one ends."""
    state = {point: wanted.opens(Intent(action, point)) for point in sorted(wanted.paths(action))}
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
    state = {point: wanted.opens(Intent("network", str(point))) for point in wanted.hosts()}
    open_ones = [point for point, opens in state.items() if opens]
    if len(state) <= 1:
        return tuple(map(str, open_ones)), ()
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


def _others(point: Endpoint, places: Iterable[int], points: Sequence[Endpoint]) -> bool:
    return any(points[place] != point for place in places)
