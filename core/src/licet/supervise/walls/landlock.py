"""What a Landlock wall governs, by the version (ABI) of the kernel's, in the kernel's own form.

Rules this module keeps:

- all that a version can govern is governed, so that what no rule lets through is refused;
- a right that a version does not know is never asked of it: it would refuse the whole wall.
"""

from __future__ import annotations

import struct

KNOWN = 7
"""The newest version whose rights are named here; a newer kernel is asked for these."""

NET_SINCE, SCOPES_SINCE = 4, 6

EXECUTE, READ_FILE = 1 << 0, 1 << 2
FILES = READ_FILE
PROGRAMS = READ_FILE | EXECUTE
FOLDERS = READ_FILE | 1 << 3
"""Files below a folder are read, and their names are listed."""

CHANGES = sum(1 << right for right in (1, 4, 5, 7, 8, 10, 12, 13, 14))
"""What is written, made, moved and removed; neither devices nor sockets are made."""
USES = 1 << 1 | 1 << 15
"""Devices are written to, and asked."""
OF_FILES = EXECUTE | READ_FILE | 1 << 1 | 1 << 14 | 1 << 15
"""Rights that mean something on a file."""

_RIGHTS = {1: 13, 2: 14, 3: 15, 5: 16}  # how many there are from this version on
_BIND_AND_CONNECT_TCP = 0b11
_ABSTRACT_SOCKETS_AND_SIGNALS = 0b11


def known(version: int) -> int:
    """All rights on files that `version` knows."""
    return (1 << max(count for since, count in _RIGHTS.items() if since <= version)) - 1


def ruleset(version: int) -> bytes:
    """The attributes of a ruleset that governs all that `version` can."""
    words = [known(version)]
    if version >= NET_SINCE:
        words.append(_BIND_AND_CONNECT_TCP)
    if version >= SCOPES_SINCE:
        words.append(_ABSTRACT_SOCKETS_AND_SIGNALS)
    return struct.pack(f"<{len(words)}Q", *words)


def below(rights: int, descriptor: int) -> bytes:
    """The attributes of a rule: these rights on what `descriptor` is open on, and on all below it."""
    return struct.pack("<Qi", rights, descriptor)
