"""What a decision opens to a sandbox: what all documents together permit, and the gaps inside it.

Rules this module keeps:

- `intents: None` opens all that is allowed; a list opens exactly what it names and policy permits;
- an `ask` target opens only inside an intent that names it, so that whoever approves was asked about it;
- whatever is opened, `rules.vote` permits, at every point of it: between two paths that documents or
  intents name, no answer can change, so it is asked at each of these points and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from licet import paths
from licet.hosts import Endpoint
from licet.plan import Opened
from licet.policy.patterns import network
from licet.request import Action, Intent
from licet.rules import Rules, Vote, includes

FileAction = Literal["read", "write"]


def opened(rules: Rules, permitted: Sequence[Intent], *, everything: bool, tools: Iterable[str]) -> Opened:
    """What to open: the `permitted` intents, and with `everything` all that is allowed besides."""
    wanted = _Wanted(rules, permitted, everything=everything)
    read, read_masked = _region(rules, wanted, "read")
    write, write_masked = _region(rules, wanted, "write")
    hosts, hosts_masked = _hosts(rules, wanted)
    return Opened(
        read=read,
        write=write,
        read_masked=read_masked,
        write_masked=write_masked,
        sealed=tuple(seal for seal in rules.sealed if _inside_any(seal, (*read, *write))),
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
        known = (i for i in permitted if i.action == "shell" or i.target is not None)
        self._votes = [(intent, rules.vote(intent)) for intent in known]

    def targets(self, action: Action) -> list[str]:
        """The targets that intents of `action` name."""
        return [i.target for i, _ in self._votes if i.action == action and i.target is not None]

    def opens(self, intent: Intent) -> bool:
        """Whether exactly this opens, apart from narrower targets with an answer of their own."""
        vote = self._rules.vote(intent)
        around = [named for outer, named in self._votes if includes(outer, intent)]
        if vote.effect == "allow":
            return self._everything or bool(around)
        return vote.effect == "ask" and any(_asks_the_same(named, vote) for named in around)


def _asks_the_same(named: Vote, vote: Vote) -> bool:
    """Whether an approval of what was named answers every entry that asks here."""
    return named.effect == "ask" and set(vote.by) <= set(named.by)


def _region(rules: Rules, wanted: _Wanted, action: FileAction) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The paths where an opened region begins, and those where one ends."""
    points = {*wanted.targets(action), *rules.points(action)}
    state: dict[str, bool] = {}
    for point in sorted(points, key=len):  # whatever contains a path is shorter
        state[point] = wanted.opens(Intent(action, point))
    changes = [point for point in sorted(points) if state[point] != _around(point, state)]
    return tuple(p for p in changes if state[p]), tuple(p for p in changes if not state[p])


def _around(path: str, state: Mapping[str, bool]) -> bool:
    """The state of the innermost point that contains `path` and is not `path` itself."""
    while path != "/":
        path = path.rpartition("/")[0] or "/"
        if path in state:
            return state[path]
    return False


def _hosts(rules: Rules, wanted: _Wanted) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The patterns that open, and the narrower ones inside them that do not."""
    points = {network(target) for target in (*wanted.targets("network"), *rules.points("network"))}
    state = {point: wanted.opens(Intent("network", str(point))) for point in points}
    open_ones = [point for point in points if state[point]]
    masked = [p for p in points if not state[p] and any(o.covers(p) for o in open_ones)]
    needed = (p for p in open_ones if not _inside_another(p, open_ones) or _inside_another(p, masked))
    return tuple(sorted(map(str, needed))), tuple(sorted(map(str, masked)))


def _inside_another(point: Endpoint, others: Iterable[Endpoint]) -> bool:
    return any(other != point and other.covers(point) for other in others)


def _inside_any(path: str, roots: Iterable[str]) -> bool:
    return any(paths.contains(root, path) for root in roots)
