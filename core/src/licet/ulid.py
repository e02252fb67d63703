"""The ids of runs: ULIDs, sortable by time."""

from __future__ import annotations

import secrets
import time

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = [first + second for first in _CROCKFORD for second in _CROCKFORD]


def new_run_id() -> str:
    """A ULID: 10 characters of time in milliseconds, 16 of randomness."""
    number = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    return "".join([_PAIRS[number >> shift & 1023] for shift in range(120, -1, -10)])
