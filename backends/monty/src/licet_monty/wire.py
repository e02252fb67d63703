"""Text that a sandbox wrote, read as the value that it stands for.

Rules this module keeps:

- code can have written any text, so what it may make the host build is bounded before it is read;
- that costs a few passes in C, and no more for text that was made to be hard.
"""

from __future__ import annotations

import re
from typing import Any

from licet import values

_SHORT = 1 << 20
_MOST_PARTS = 12 * values.DEFAULT.nodes  # a member of a tagged container takes five, and six quotes
_PARTS = b"[{,"
_REST = bytes(set(range(256)) - {*_PARTS, *b'"'})
_TEXT = re.compile(rb'"[^"]*+"')


def read(text: str) -> Any:
    """Return the value of a text in the wire form of `licet.values`.

    Raises:
        ValueError: it is no wire form, or stands for more than any sandbox would write.
    """
    if len(text) > _SHORT and _parts(text) > _MOST_PARTS:
        raise ValueError("the text stands for too many values")
    return values.from_json(text)


def _parts(text: str) -> int:
    """About how many values and keys a JSON text holds."""
    data = text.encode("utf-8", "replace").replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, _REST)
    quotes = data.count(b'"')
    if quotes > _MOST_PARTS:
        return quotes
    bare = _TEXT.sub(b"", data)
    return sum(bare.count(part) for part in _PARTS)
