"""Names inside a run: each stands for an address of its own, which leads to the name and nowhere else.

Rules this module keeps:

- a name is resolved by nobody in here: its address is a promise, and whoever connects resolves it once;
- every name has an address, opened or not: one place decides, at the connection, and a look-up tells nothing;
- names that are known beforehand have the same addresses in every run, and stand in a file; for others there
  is a name server at `RESOLVER`, asked over TCP.

The addresses are those for tests between networks (RFC 2544), which lead nowhere on the internet.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator

RESOLVER, RESOLVER_PORT = "198.18.0.1", 53
MOST = 4096
"""How many names one run can have."""

HOSTS, CONFIGURATION, ORDER = "/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf"
"""Files of the system that say where names are looked up."""

_FIRST = int(ipaddress.IPv4Address("198.18.1.0"))


class Names:
    """The names of one run; those `known` beforehand have the first addresses."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._names = list(dict.fromkeys(known))[:MOST]
        self._places = {name: place for place, name in enumerate(self._names)}

    def __iter__(self) -> Iterator[str]:
        """The names that have an address so far."""
        return iter(tuple(self._names))

    def address(self, name: str) -> str | None:
        """The address that stands for a lower-case name; None if the run has used up its names."""
        if name not in self._places:
            if len(self._names) >= MOST:
                return None
            self._places[name] = len(self._names)
            self._names.append(name)
        return str(ipaddress.IPv4Address(_FIRST + self._places[name]))

    def name(self, address: str) -> str | None:
        """The name that a canonical address stands for; None if it stands for itself."""
        if not address.startswith("198."):
            return None
        place = int(ipaddress.IPv4Address(address)) - _FIRST
        return self._names[place] if 0 <= place < len(self._names) else None


def files(known: Iterable[str]) -> dict[str, str]:
    """What a run needs in its files so that names lead here, by path."""
    names, itself = Names(known), "localhost"
    lines = [] if itself in names else [f"127.0.0.1 {itself}\n"]
    return {
        HOSTS: "".join([*lines, *(f"{names.address(name)} {name}\n" for name in names)]),
        CONFIGURATION: f"nameserver {RESOLVER}\noptions use-vc\n",
        ORDER: "hosts: files dns\n",
    }
