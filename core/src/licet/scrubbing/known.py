"""Secrets that are known by value: what the host gave to the code under a name that says so.

Rules this module keeps:

- a known value goes wherever it stands, in the forms that `repr` and JSON give it too;
- short values are left, since they would take harmless text with them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from licet.scrubbing.spans import Secret

_LEAST = 8  # characters
_NAME = re.compile(
    r"passw|passphrase|pwd|secret|token|credential|private|(?:api|access|auth|account)[_-]?key|_key$|_auth$",
    re.IGNORECASE,
)

Needles = tuple[tuple[str, str], ...]
"""Texts to look for, each with the kind that it is reported as."""


def secrets_of(environment: Mapping[str, str]) -> Needles:
    """What of an environment is secret by its name."""
    return tuple(
        (form, "known_value")
        for name, value in environment.items()
        if _is_secret(name) and len(value) >= _LEAST
        for form in {value, repr(value)[1:-1], json.dumps(value)[1:-1]}
    )


def echoes(found: Iterable[tuple[str, str]]) -> Needles:
    """Of what was found in one place, with its kind, that which is worth looking for in all others."""
    kinds = {form: kind for text, kind in found if _is_distinct(text) for form in (text, repr(text)[1:-1])}
    return tuple(list(kinds.items())[:_MOST_ECHOES])


def occurrences(text: str, needles: Needles) -> Iterator[Secret]:
    """Every place where one of `needles` stands."""
    for needle, kind in needles:
        start = text.find(needle)
        while start >= 0:
            yield Secret(kind, start, start + len(needle))
            start = text.find(needle, start + len(needle))


_MOST_ECHOES = 64  # hostile output may hold any number, and each costs a pass over all texts


def _is_distinct(text: str) -> bool:
    return len(text) >= 12 or (len(text) >= _LEAST and any(map(str.isdigit, text)))


@lru_cache(maxsize=512)
def _is_secret(name: str) -> bool:
    return _NAME.search(name) is not None
