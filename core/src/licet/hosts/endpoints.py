"""Network targets as `HOST:PORT`, and patterns over them.

Rules this module keeps:

- a pattern is an exact host, a range of addresses, a word that stands alone, or `*.` and a suffix of at least
  two labels, which matches whole labels, at least one, and never an address;
- `any` is every public target and `private` every other one: an address or a name that leads inside is never
  reached through a pattern that does not say so;
- a URL is no target.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from licet.hosts.addresses import METADATA, side
from licet.hosts.extents import ANY, BOTH, PRIVATE, WORDS, Extent, depths_of, extent
from licet.hosts.names import canonical_host, is_address
from licet.hosts.urls import from_url

_REGISTRY = re.compile(r"(?:[^.]+|(?:ac|co|com|edu|go|gob|gov|gouv|ne|net|nom|or|org|sch)\.[a-z]{2})")
"""Suffixes under which strangers register names: every single label, and the usual ones of countries."""
_PORT = re.compile(r"[0-9]{1,5}", re.ASCII)
_PREFIX = re.compile(r"0|[1-9][0-9]{0,2}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A host, or a pattern of hosts, and a port; None as port stands for all ports."""

    host: str
    port: int | None

    def __str__(self) -> str:
        if self.host in WORDS:
            return self.host
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port is None else f"{host}:{self.port}"

    @property
    def extent(self) -> Extent:
        """The hosts that this stands for."""
        return extent(self.host)

    @property
    def many(self) -> bool:
        """Whether it stands for more than one host at one port."""
        return self.port is None or self.extent.open_end

    def covers(self, other: Endpoint) -> bool:
        """Whether every target of `other` is one of this."""
        if self.port is not None and self.port != other.port:
            return False
        return self.host == other.host or self.extent.holds(other.extent)

    def meet(self, other: Endpoint) -> Endpoint | None:
        """The targets that both have, or None if there are none."""
        if self.covers(other):
            return other
        if other.covers(self):
            return self
        if self.port is None or other.port is None:
            port = self.port if other.port is None else other.port
            mine, theirs = Endpoint(self.host, port), Endpoint(other.host, port)
            if mine.covers(theirs):
                return theirs
            return mine if theirs.covers(mine) else None
        return None

    @property
    def names(self) -> bool:
        """Whether it says something of names, and not of addresses alone."""
        return self.host != PRIVATE and "/" not in self.host and not is_address(self.host)


EVERYWHERE = Endpoint(ANY, None)
INSIDE = Endpoint(PRIVATE, None)
EVERYTHING = Endpoint(BOTH, None)
"""What `any` means where it closes: in `deny` and after `except`."""


def with_meets(patterns: Iterable[Endpoint]) -> set[Endpoint]:
    """`patterns` and all that several of them share, so that every target has one innermost pattern."""
    known = set(patterns)
    ports: dict[Extent, set[int]] = {}
    for pattern in known:
        if pattern.port is not None and pattern.extent.open_end:
            ports.setdefault(pattern.extent, set()).add(pattern.port)
    depths = depths_of(ports)
    return known | {
        Endpoint(pattern.host, port)
        for pattern in known
        if pattern.port is None
        for wider in pattern.extent.around(depths)
        for port in ports.get(wider, ())
    }


def endpoint(text: str, *, patterns: bool = False, port_optional: bool = False) -> Endpoint:
    """Read `HOST:PORT`.

    With `patterns`, `*.` may stand before the host, a range for the host, and `any` or `private` for many.

    Raises:
        ValueError: the text is no such target; the message says what is wrong with it.
    """
    if patterns and text in (ANY, PRIVATE):
        return EVERYWHERE if text == ANY else INSIDE
    if "://" in text:
        raise ValueError(f"`{text}` is a URL{_instead_of(text)}")
    name, port = _split(text)
    if port is None and not port_optional:
        raise ValueError(f"`{text}` names no port; write `{text}:443`")
    if patterns and "/" in name:
        return Endpoint(_range(name), port)
    wildcard = name.startswith("*.")
    if "*" in name and not (patterns and wildcard and "*" not in name[2:]):
        raise ValueError(f"`{text}` has a `*` that is not a whole first label, as in `*.example.com:443`")
    host = canonical_host(name.removeprefix("*."))
    if wildcard and (is_address(host) or _REGISTRY.fullmatch(host)):
        raise ValueError(f"`{text}` would cover a whole top-level domain; name at least one label more")
    return Endpoint("*." + host if wildcard else host, port)


@lru_cache(maxsize=16384)
def read_back(canonical: str) -> Endpoint:
    """Read a target that stands in its canonical spelling already."""
    if canonical == BOTH:
        return EVERYTHING
    return endpoint(canonical, patterns=True, port_optional=True)


def metadata_in(pattern: Endpoint) -> tuple[Endpoint, ...]:
    """The services of clouds that hand out credentials and lie inside a range, with its port."""
    if "/" not in pattern.host:
        return ()
    mine = pattern.extent
    return tuple(Endpoint(service, pattern.port) for service in METADATA if mine.holds(extent(service)))


def _instead_of(url: str) -> str:
    try:
        host, port = from_url(url)
    except ValueError:
        return "; write the host and the port that it leads to"
    return f"; write `{Endpoint(host, port)}`"


def _range(text: str) -> str:
    """The canonical spelling of `ADDRESS/LENGTH`."""
    address, _, length = text.partition("/")
    host = canonical_host(address)
    if not is_address(host) or not _PREFIX.fullmatch(length):
        raise ValueError(f"`{text}` is no range of addresses, as in `10.0.0.0/8:5432`")
    try:
        network = ipaddress.ip_network(f"{host}/{length}")
    except ValueError:
        raise ValueError(_why_no_range(host, length, text)) from None
    if network.prefixlen == network.max_prefixlen:
        return canonical_host(str(network.network_address))
    if side(network) == "mixed":
        raise ValueError(
            f"`{text}` holds public addresses and others, or some that stand for an IPv4 address; "
            "name narrower ranges, `any` or `private`"
        )
    return str(network)


def _why_no_range(host: str, length: str, text: str) -> str:
    try:
        whole = ipaddress.ip_network(f"{host}/{length}", strict=False)
    except ValueError:
        return f"`{text}` is no range of addresses: `/{length}` is longer than the address"
    return f"`{text}` has bits set beyond its first {length}; write `{whole}`, or `{host}` alone"


def _split(text: str) -> tuple[str, int | None]:
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if not bracket or ":" not in host or (rest and not rest.startswith(":")):
            raise ValueError(f"`{text}` is no `[IPv6]:PORT`")
        return host, _port(rest[1:], text) if rest else None
    host, colon, port = text.partition(":")
    if ":" in port:
        raise ValueError(f"`{text}` is no `HOST:PORT`; an IPv6 address stands in brackets")
    return host, _port(port, text) if colon else None


def _port(digits: str, text: str) -> int:
    if not _PORT.fullmatch(digits) or not 0 < int(digits) < 65536:
        raise ValueError(f"`{text}` has no port between 1 and 65535")
    return int(digits)
