"""Where a URL leads: the host and port that a client connects to, if all clients agree.

Rules this module keeps:

- a URL that clients read differently is refused, never repaired: backslashes, credentials, control characters
  and spaces, a missing or doubled slash, an empty port, an escaped host, a scheme without a connection;
- a redirect is a URL of its own, read and decided like the first.
"""

from __future__ import annotations

import re

from licet.hosts.names import canonical_host

PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
"""The schemes that name a host, and the port each means where none is written."""

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)([/?#].*)?", re.DOTALL)
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]*\]|[^\[\]:@%]+)(?::([0-9]{1,5}))?")


def from_url(text: str) -> tuple[str, int]:
    """Return the canonical host and the port of a URL.

    Raises:
        ValueError: the text is no such URL, or one that programs read differently.
    """
    if "\\" in text or any(sign.isspace() or not sign.isprintable() for sign in text):
        raise ValueError(f"`{text}` holds a backslash, a space or a control character")
    parts = _URL.fullmatch(text)
    if parts is None or parts[1].lower() not in PORTS:
        raise ValueError(f"`{text}` is no URL of {', '.join(PORTS)}")
    if "@" in parts[2]:
        raise ValueError(f"`{text}` holds credentials")
    authority = _AUTHORITY.fullmatch(parts[2])
    if authority is None:
        raise ValueError(f"`{text}` names no plain host")
    host = authority[1]
    if host.startswith("[") and ":" not in host:
        raise ValueError(f"`{text}` names no plain host")
    port = int(authority[2]) if authority[2] else PORTS[parts[1].lower()]
    if not 0 < port < 65536:
        raise ValueError(f"`{text}` has no port between 1 and 65535")
    return canonical_host(host.strip("[]")), port
