"""Network targets in one canonical spelling, and patterns over them.

Rules this module keeps:

- a host is a lower-case ASCII name without trailing dot, or an IP address in its one canonical form;
  every other spelling of an address (short, octal, decimal, hexadecimal, with a trailing dot, mapped into
  IPv6, with a zone) is refused, never guessed at: `deny` must not depend on how an address is written;
- a pattern is an exact host, or `*.` and a suffix of two labels or more, which matches whole labels, at
  least one, and never an address;
- `any` is every target there is; it stands alone, and is no host.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass

ANY = "any"

_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)", re.ASCII)
_NUMERIC = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)", re.ASCII)
_ENDS_IN_IPV4 = tuple(
    map(ipaddress.IPv6Network, ("::/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48"))
)

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A host, or a pattern of hosts, and a port; None as port stands for all ports."""

    host: str
    port: int | None

    def __str__(self) -> str:
        if self.host == ANY:
            return ANY
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port is None else f"{host}:{self.port}"

    def covers(self, other: Endpoint) -> bool:
        """Whether every target of `other` is one of this."""
        if self.host == ANY:
            return True
        if self.port is not None and self.port != other.port:
            return False
        return self._host_covers(other.host)

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

    def _host_covers(self, host: str) -> bool:
        if not self.host.startswith("*."):
            return self.host == host
        if host == ANY or _is_address(host):
            return False
        return host == self.host or host.removeprefix("*.").endswith(self.host[1:])

    @property
    def is_wide(self) -> bool:
        """Whether it stands for more than one target; one that does not shares nothing but itself."""
        return self.port is None or self.host == ANY or self.host.startswith("*.")


EVERYWHERE = Endpoint(ANY, None)


def with_meets(patterns: Iterable[Endpoint]) -> set[Endpoint]:
    """`patterns` and all that several of them share, so that every target has one innermost pattern."""
    known = set(patterns)
    fresh = {pattern for pattern in known if pattern.is_wide}
    while fresh:
        wide = [pattern for pattern in known if pattern.is_wide]
        shared = {meet for a in wide for b in fresh if (meet := a.meet(b)) is not None} - known
        known |= shared
        fresh = {pattern for pattern in shared if pattern.is_wide}
    return known


def is_public(address: Address) -> bool:
    """Whether an address leads out to the internet, seen through every way to wrap an IPv4 one into IPv6."""
    if isinstance(address, ipaddress.IPv6Address) and (inner := _unwrapped(address)) is not None:
        return is_public(inner)
    return address.is_global and not address.is_multicast


def _unwrapped(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address inside: mapped, 6to4, Teredo, compatible, or behind a translator (NAT64)."""
    if address.ipv4_mapped or address.sixtofour:
        return address.ipv4_mapped or address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if any(address in network for network in _ENDS_IN_IPV4):
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return None


def endpoint(text: str, *, patterns: bool = False, port_optional: bool = False) -> Endpoint:
    """Read `HOST:PORT`.

    With `patterns`, `*.` may stand before the host, and `any` for everything.

    Raises:
        ValueError: the text is no such target; the message says what is wrong with it.
    """
    if patterns and text == ANY:
        return EVERYWHERE
    name, port = _split(text)
    if port is None and not port_optional:
        raise ValueError(f"`{text}` names no port; write `{text}:443`")
    wildcard = name.startswith("*.")
    if "*" in name and not (patterns and wildcard and "*" not in name[2:]):
        raise ValueError(f"`{text}` has a `*` that is not a whole first label, as in `*.example.com:443`")
    host = canonical_host(name.removeprefix("*."))
    if wildcard and (_is_address(host) or "." not in host):
        raise ValueError(f"`{text}` would cover a whole top-level domain; name at least two labels")
    return Endpoint("*." + host if wildcard else host, port)


def canonical_host(text: str) -> str:
    """Return the one spelling of a host name or address.

    Raises:
        ValueError: the text is no host, or a host in a spelling that programs read differently.
    """
    if not text.isascii():
        raise ValueError(f"`{text}` is not ASCII; write its `xn--` form")
    if ":" in text:
        return _ipv6(text)
    name = text.lower().removesuffix(".")
    labels = name.split(".")
    if not name or len(name) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise ValueError(f"`{text}` is no host name")
    if name == ANY:
        raise ValueError(f"`{text}` is no host name; every target there is reads `any`, without a port")
    if _NUMERIC.fullmatch(labels[-1]):
        try:
            return str(ipaddress.IPv4Address(text))
        except ValueError:
            raise ValueError(f"`{text}` is no address of four plain decimal numbers") from None
    return name


def _ipv6(text: str) -> str:
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        raise ValueError(f"`{text}` is no IPv6 address") from None
    if address.scope_id is not None:
        raise ValueError(f"`{text}` names a zone, which means something else on every machine")
    if address.ipv4_mapped is not None:
        raise ValueError(f"`{text}` is an IPv4 address in disguise; write `{address.ipv4_mapped}`")
    return str(address)


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
    if not re.fullmatch(r"[0-9]{1,5}", digits, re.ASCII) or not 0 < int(digits) < 65536:
        raise ValueError(f"`{text}` has no port between 1 and 65535")
    return int(digits)


def _is_address(host: str) -> bool:
    return ":" in host or bool(_NUMERIC.fullmatch(host.rpartition(".")[2]))
