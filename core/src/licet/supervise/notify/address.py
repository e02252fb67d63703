"""Addresses as programs give them to `connect`, read as what they ask for. Pure.

Rules this module keeps:

- only TCP over IPv4 and IPv6 leads anywhere; an IPv4 address inside IPv6 is that address, as it is for the
  kernel;
- an address that means something on one machine alone (a zone) is refused.
"""

from __future__ import annotations

import errno
import ipaddress
import socket
import struct
from typing import NamedTuple

_SHORTEST = {socket.AF_INET: 16, socket.AF_INET6: 24}


class Place(NamedTuple):
    """A host, by name or address, and a port."""

    host: str
    port: int


def place(data: bytes, family: int) -> Place:
    """What an address asks for, that is given to a socket of `family`.

    Raises:
        OSError: with the number that the caller is to see; EACCES for what is never opened.
    """
    if len(data) < 2:
        raise OSError(errno.EINVAL, "this is no address")
    kind = struct.unpack_from("=H", data)[0]
    if family not in _SHORTEST or (kind not in _SHORTEST and kind != socket.AF_UNSPEC):
        raise OSError(errno.EACCES, "only TCP is connected")
    if kind != family:
        raise OSError(errno.EAFNOSUPPORT, "the address is of another family than the socket")
    if len(data) < _SHORTEST[socket.AddressFamily(family)]:
        raise OSError(errno.EINVAL, "the address is too short")
    port = struct.unpack_from("!H", data, 2)[0]
    if family == socket.AF_INET:
        return Place(str(ipaddress.IPv4Address(data[4:8])), port)
    inside = ipaddress.IPv6Address(data[8:24])
    if len(data) >= 28 and struct.unpack_from("=I", data, 24)[0]:
        raise OSError(errno.EACCES, "a zone means something else on every machine")
    return Place(str(inside.ipv4_mapped or inside), port)
