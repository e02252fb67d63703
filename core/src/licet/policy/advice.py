"""What to write instead of a name that nobody knows."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(given: str, known: Iterable[str]) -> str:
    """`did you mean ...?`, or all that is known where nothing is near; one line, without a full stop."""
    names = list(known)
    near = difflib.get_close_matches(given, names, n=1) or difflib.get_close_matches(
        given.lower(), names, n=1
    )
    return f"did you mean `{near[0]}`?" if near else f"known are {', '.join(names)}"
