"""IP addresses: which lead out to the internet, and which of them stand for another one.

Rules this module keeps:

- public is what the registries of IANA call reachable for everybody, by tables of this module, so that the
  answer is the same under every version of Python; what is not sure to be public is not;
- an IPv6 address that wraps an IPv4 one (mapped, compatible, translated, 6to4, Teredo, NAT64) is as public as
  what it wraps;
- a range is public or private as a whole, or it is mixed and nobody may use it.
"""

from __future__ import annotations

import ipaddress
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Literal

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
Side = Literal["public", "private", "mixed"]

Span = tuple[int, int]
"""The first and the last of a run of addresses, as numbers."""


def _spans(*ranges: str) -> tuple[Span, ...]:
    return tuple(map(_span, map(ipaddress.ip_network, ranges)))


def _span(network: Network) -> Span:
    return int(network.network_address), int(network.broadcast_address)


_PRIVATE_4 = _spans(
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "168.63.129.16/32",  # the wire server of Azure, which hands out the secrets of a machine
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/3",
)
_GLOBAL_6 = _spans("2000::/3")
_PRIVATE_6 = _spans("2001::/23", "2001:db8::/32", "3fff::/20")
_COMPATIBLE = _spans("::/96")
_ENDS_IN_IPV4 = _spans("::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48")
_WRAPS = (*_COMPATIBLE, *_ENDS_IN_IPV4, *_spans("2001::/32", "2002::/16"))

METADATA = (
    "169.254.169.254",
    "169.254.170.2",
    "169.254.170.23",
    "168.63.129.16",
    "100.100.100.200",
    "192.0.0.192",
    "fd00:ec2::254",
    "fd00:ec2::23",
    "fd20:ce::254",
)
"""Where clouds hand out the credentials of a machine to whatever runs on it."""


def is_public(address: Address) -> bool:
    """Whether an address leads out to the internet, seen through every way to wrap an IPv4 one into IPv6."""
    one = (int(address), int(address))
    if isinstance(address, IPv4Address):
        return not _inside(one, _PRIVATE_4)
    inner = wrapped(address)
    if inner is not None:
        return is_public(inner)
    return _inside(one, _GLOBAL_6) and not _inside(one, _PRIVATE_6)


def wrapped(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address inside: mapped, 6to4, Teredo, compatible, or behind a translator (NAT64)."""
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    number = int(address)
    compatible = (
        _inside((number, number), _COMPATIBLE) and number >= 1 << 24
    )  # below are `::`, `::1` and no other
    if compatible or _inside((number, number), _ENDS_IN_IPV4):
        return IPv4Address(number & 0xFFFF_FFFF)
    return None


def innermost(address: Address) -> Address:
    """Where a connection to an address ends: the IPv4 address that it wraps, or itself."""
    inner = wrapped(address) if isinstance(address, IPv6Address) else None
    return address if inner is None else inner


def side(network: Network) -> Side:
    """Whether all addresses of a range are public, none is, or that differs or depends on what they wrap."""
    span = _span(network)
    if isinstance(network, IPv4Network):
        return "private" if _inside(span, _PRIVATE_4) else "mixed" if _meets(span, _PRIVATE_4) else "public"
    if _meets(span, _WRAPS):
        return "mixed"
    if _inside(span, _PRIVATE_6) or not _meets(span, _GLOBAL_6):
        return "private"
    return "public" if _inside(span, _GLOBAL_6) and not _meets(span, _PRIVATE_6) else "mixed"


def _inside(span: Span, known: tuple[Span, ...]) -> bool:
    return any(first <= span[0] and span[1] <= last for first, last in known)


def _meets(span: Span, known: tuple[Span, ...]) -> bool:
    return any(first <= span[1] and span[0] <= last for first, last in known)
