"""A connection to a host that policy opens, by addresses that were looked up once and all judged.

Rules this module keeps:

- a name is resolved once; what was judged is what is dialled, so that no second answer can slip in;
- one address in an answer that is not public refuses the whole answer, unless the policy opens that address
  itself: to open a name is not to open what is inside behind it;
- an address that an entry of `deny` names is refused, whatever name leads there;
- no answer, a broken one and one that doesn't come in time are refusals.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from licet.hosts import Address, Endpoint, innermost, is_public

Place = tuple[int, Any]
"""An address family, and an address as the operating system takes it."""
Resolve = Callable[[Endpoint], Awaitable[list[Place]]]
Dial = Callable[[Place], Awaitable[int]]
Judge = Callable[[Endpoint], bool]

PATIENCE_S = 10.0
"""How long a resolver, and then a peer, may take to answer, in seconds, where a run has no shorter limit."""


async def resolve(wanted: Endpoint) -> list[Place]:
    """What this host's resolver answers, in its order."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(wanted.host, wanted.port, type=socket.SOCK_STREAM)
    return [(family, address) for family, _, _, _, address in found]


async def dial(place: Place) -> int:
    """Return a connected descriptor."""
    family, address = place
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, address)
        return connection.detach()
    finally:
        connection.close()


async def look_up(
    wanted: Endpoint,
    *,
    opens: Judge,
    denies: Judge,
    patience: float = PATIENCE_S,
    resolve: Resolve = resolve,
) -> tuple[Place, ...]:
    """Where a host is, all of it judged; `opens` and `denies` say what policy makes of one address.

    Raises:
        PermissionError: an address behind the name is not to be reached.
        OSError: there is no answer within `patience` seconds.
    """
    try:
        async with asyncio.timeout(patience):
            places = await resolve(wanted)
    except TimeoutError:
        raise TimeoutError(f"`{wanted}` was not resolved within {patience:g} s") from None
    if not places:
        raise OSError(f"`{wanted}` resolves to nothing")
    judge(wanted, [_address(place) for place in places], opens=opens, denies=denies)
    return tuple(places)


async def reach(
    wanted: Endpoint, places: Sequence[Place], *, patience: float = PATIENCE_S, dial: Dial = dial
) -> int:
    """A descriptor that is connected to the first of `places` where somebody listens.

    Each place has an equal part of `patience`, so that one which swallows packets leaves time for the others.

    Raises:
        OSError: nobody does, or nobody answered within `patience` seconds.
    """
    part = patience / len(places)
    for place in places[:-1]:
        try:
            async with asyncio.timeout(part):
                return await dial(place)
        except OSError:  # the next one was judged too
            continue
    try:
        async with asyncio.timeout(part):
            return await dial(places[-1])
    except TimeoutError:
        raise TimeoutError(f"`{wanted}` did not answer within {patience:g} s") from None


def judge(wanted: Endpoint, addresses: Iterable[Address], *, opens: Judge, denies: Judge) -> None:
    """Look at all that a name resolves to.

    Raises:
        PermissionError: one of the addresses is denied, or is not public and not opened itself.
    """
    for address in addresses:
        end = innermost(address)
        reached = Endpoint(str(end), wanted.port)
        if denies(reached):
            raise PermissionError(f"`{wanted}` resolves to an address that the policy denies")
        if not is_public(address) and not (end == address and opens(reached)):
            raise PermissionError(
                f"`{wanted}` resolves to an address that is not public; name that address itself"
            )


def spelled(places: Iterable[Place]) -> list[str]:
    """The addresses alone."""
    return [str(_address(place)) for place in places]


def _address(place: Place) -> Address:
    """The address, without the zone that a resolver adds for this machine."""
    return ipaddress.ip_address(str(place[1][0]).partition("%")[0])
