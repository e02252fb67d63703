"""How a document holds what there is, so that no two things which differ are held alike.

Rules this module keeps:

- a text stands as it is; what UTF-8 can't hold is an object with `$type`, as in the wire form of values;
- names are ASCII, as the canonical form has them: other characters and backslashes are spelled with
  backslashes.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from licet.plain import plain


def exact(value: Any) -> Any:
    """A value as a document holds it, so that no two that differ are held alike.

    Numbers with a fraction and huge ones are texts, as in records; what a place can hold is known, so
    they are told from texts there. Bytes are text where they are UTF-8, and else, as a text with half of a
    surrogate pair, an object with `$type`. Names keep ASCII alone: others are spelled with backslashes.
    """
    if isinstance(value, str):
        return _exact_text(value)
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"$type": "bytes", "base64": base64.b64encode(value).decode()}
    if isinstance(value, Mapping):
        return {key(name): exact(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [exact(inner) for inner in value]
    return plain(value)


def _exact_text(text: str) -> Any:
    text = str.__str__(text)
    try:
        text.encode()
    except UnicodeEncodeError:
        data = text.encode("utf-8", "surrogatepass")
        return {"$type": "str", "base64": base64.b64encode(data).decode()}
    return text


def key(name: str) -> str:
    """A name in ASCII; no two names have one."""

    if name.isascii() and "\\" not in name:
        return name
    return name.replace("\\", "\\\\").encode("ascii", "backslashreplace").decode()
