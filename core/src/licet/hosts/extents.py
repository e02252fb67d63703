"""What a host, or a pattern of hosts, spans: the geometry behind `covers`, `meet` and every index of hosts.

Rules this module keeps:

- any two extents are nested or disjoint, so that every target has one innermost pattern;
- `any` holds what is public and `private` all the rest; only the extent of everything holds both.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from licet.hosts.addresses import is_public, side
from licet.hosts.names import is_address, leads_inside

ANY = "any"
PRIVATE = "private"
BOTH = "any or private"
WORDS = frozenset({ANY, PRIVATE, BOTH})

Key = tuple[str | int, ...]


class Extent(NamedTuple):
    """The hosts that one canonical text stands for.

    `path` leads from the widest extent down to this one: a host lies inside an extent exactly if the path of
    the extent is where its own begins. Names go by labels from the right, addresses by bits from the left.
    `open_end` is whether more than the one host is meant.
    """

    path: Key
    open_end: bool

    def holds(self, other: Extent) -> bool:
        """Whether every host of `other` is one of this."""
        depth = len(self.path)
        if not self.open_end:
            return self == other
        return other.path[:depth] == self.path and (len(other.path) > depth or other.open_end)

    def around(self, depths: Iterable[int]) -> Iterator[Extent]:
        """Every extent with an open end at one of `depths`, narrowest first, that holds this one."""
        deepest = len(self.path) if self.open_end else len(self.path) - 1
        for depth in depths:
            if depth <= deepest:
                yield Extent(self.path[:depth], open_end=True)


def depths_of(extents: Iterable[Extent]) -> list[int]:
    """The depths at which extents with an open end stand, the deepest first."""
    return sorted({len(one.path) for one in extents if one.open_end}, reverse=True)


@lru_cache(maxsize=16384)
def extent(host: str) -> Extent:
    """The extent of a canonical host, wildcard, range or word."""
    if host in WORDS:
        return Extent(() if host == BOTH else (host,), open_end=True)
    if "/" in host or is_address(host):
        return _of_addresses(host)
    name = host.removeprefix("*.")
    world = PRIVATE if leads_inside(name) else ANY
    return Extent((world, "name", *reversed(name.split("."))), open_end=name != host)


def _of_addresses(host: str) -> Extent:
    network = ipaddress.ip_network(host)
    bits = f"{int(network.network_address):0{network.max_prefixlen}b}"[: network.prefixlen]
    if network.prefixlen < network.max_prefixlen:
        world = PRIVATE if side(network) == "private" else ANY
    else:
        world = ANY if is_public(network.network_address) else PRIVATE
    return Extent((world, network.version, *bits), open_end="/" in host)
