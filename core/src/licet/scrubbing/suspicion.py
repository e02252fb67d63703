"""Whether a text is worth the work of a detector: a quick look that most output ends with.

Rules this module keeps:

- it may call a harmless text suspicious, but what it calls plain holds no key of any usual form;
- it takes time in proportion to the text, whatever the text is.
"""

from __future__ import annotations

import re

_WORDS = (
    "passw", "passphrase", "pwd", "secret", "token", "credential", "private", "authorization", "bearer",
    "apikey", "api_key", "api-key", "accesskey", "access_key", "access-key", "xox", "xapp",
)  # fmt: skip
"""Names and beginnings by which short secrets are known."""

_RUN = re.compile(r"(?<![\w+/=\-])(?=[\w+/=\-]*(?:\d|[a-z][A-Z]))[\w+/=\-]{14,}", re.ASCII)
"""Fourteen characters of a key in a row, with a digit or mixed case; each run is looked at once."""


def plain(text: str) -> bool:
    """Whether nothing in `text` looks like a secret."""
    if len(text) < 8:
        return True
    lower = text.lower()
    if any(word in lower for word in _WORDS) or ("://" in lower and "@" in lower):
        return False
    return _RUN.search(text) is None
