"""What a record can hold, and its one spelling.

Rules this module keeps:

- the canonical form is RFC 8785 (JCS) over a subset: ASCII keys, no floats, integers below 2**53; so content
  has exactly one spelling, and any JCS library writes the same bytes;
- whatever a stage knows becomes such content; what has no place in it becomes text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from math import isfinite
from typing import Any

import orjson

MAX_DEPTH = 32
"""How deep the content of a record may be nested."""


def canonical(value: Any) -> bytes:
    """The one spelling of a JSON value.

    Raises:
        ValueError: a float, an integer outside ±2**53, a key that is not ASCII text, a lone surrogate,
            nesting deeper than `MAX_DEPTH`, or something that is no JSON.
    """
    _check(value)
    return written(value)


def written(content: Any) -> bytes:
    """The canonical form of content of known make, in which a `part` may stand.

    Raises:
        ValueError: a lone surrogate, or something that is no JSON.
    """
    try:
        return orjson.dumps(content, option=orjson.OPT_SORT_KEYS | orjson.OPT_STRICT_INTEGER)
    except TypeError as problem:  # what JSONEncodeError is
        raise ValueError(f"a record can't hold this: {problem}") from None


def part(content: Mapping[str, Any]) -> orjson.Fragment:
    """`content` as a part of something else, spelled now if it is not yet.

    Raises:
        ValueError: as for `canonical`.
    """
    if type(content) is Plain:
        return orjson.Fragment(content.spelled)
    _check(whole := dict(content), depth=1)
    return orjson.Fragment(written(whole))


class Plain(Mapping[str, Any]):
    """Content that has a canonical form, `spelled`; it is read only where somebody looks into it."""

    __slots__ = ("_content", "spelled")

    def __init__(self, spelled: bytes) -> None:
        self.spelled = spelled
        self._content: dict[str, Any] | None = None

    def _read(self) -> dict[str, Any]:
        if self._content is None:
            self._content = orjson.loads(self.spelled)
        return self._content

    def __getitem__(self, key: str) -> Any:
        return self._read()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())

    def __repr__(self) -> str:
        return repr(self._read())


def plain_body(body: Mapping[str, Any]) -> Plain:
    """Turn what a stage knows into what a record can hold.

    Numbers with a fraction and huge ones become text, one that is no number becomes null, characters that
    UTF-8 can't hold become escapes, values become mappings of their fields.
    """
    try:
        spelled = orjson.dumps(body, default=_fields, option=_AS_IT_IS)
    except TypeError:  # what JSONEncodeError is
        return _translated(body)
    doubtful = not spelled.isascii() or _FRACTION.search(spelled)
    return _translated(body) if doubtful else Plain(spelled)


_AS_IT_IS = (
    orjson.OPT_SORT_KEYS
    | orjson.OPT_STRICT_INTEGER
    | orjson.OPT_PASSTHROUGH_DATACLASS  # its fields would not be sorted
    | orjson.OPT_PASSTHROUGH_DATETIME
)
_FRACTION = re.compile(rb'(?:":|[,\[])-?[0-9]+[.eE]')
"""What looks like a number with a fraction, and may be part of a text."""


def _fields(value: Any) -> Any:
    kind = type(value)
    if kind is Plain:
        return part(value)
    if is_dataclass(kind):
        return {name: getattr(value, name) for name in _field_names(kind)}
    raise TypeError


def _translated(body: Mapping[str, Any]) -> Plain:
    """The same, value by value."""
    return Plain(orjson.dumps(_plain_mapping(body), option=orjson.OPT_SORT_KEYS))


@cache
def _field_names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def _plain_mapping(content: Mapping[Any, Any]) -> dict[str, Any]:
    return {ascii_key(str(key)): _plain(inner) for key, inner in content.items()}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Enum):
        return _plain(value.value)
    if isinstance(value, str):
        return str.__str__(value).encode("utf-8", "backslashreplace").decode()
    if isinstance(value, int):
        return int(value) if -(2**53) < value < 2**53 else hex(value)
    if isinstance(value, float):
        return repr(float(value)) if isfinite(value) else None
    if isinstance(value, Mapping):
        return _plain_mapping(value)
    if isinstance(value, (set, frozenset)):
        return _plain(sorted(map(str, value)))
    if isinstance(value, (tuple, list)):
        return [_plain(inner) for inner in value]
    if is_dataclass(kind := type(value)):
        return {name: _plain(getattr(value, name)) for name in _field_names(kind)}
    return _plain(str(value))


def ascii_key(key: str) -> str:
    """The name of a field in ASCII; other characters become escapes."""
    return key if key.isascii() else key.encode("ascii", "backslashreplace").decode()


def _check(value: Any, depth: int = 0) -> None:
    kind = type(value)
    if kind in _NO_DOUBT:
        return
    if kind is int:
        if not -(2**53) < value < 2**53:
            raise ValueError(f"integer `{value}` is too large for a record; write it as text")
        return
    if depth >= MAX_DEPTH:
        raise ValueError(f"a record can't be nested deeper than {MAX_DEPTH} levels")
    if kind is dict:
        for key, inner in value.items():
            if type(key) is not str or not key.isascii():
                raise ValueError(f"key `{key!r}` of a record is not ASCII text")
            if type(inner) not in _NO_DOUBT:
                _check(inner, depth + 1)
    elif kind is list or kind is tuple:
        for inner in value:
            _check(inner, depth + 1)
    else:
        raise ValueError(f"a record can't hold a `{kind.__name__}`")


_NO_DOUBT = frozenset({str, bool, type(None)})
"""Types whose values a record holds as they are; half a surrogate pair is found when the text is written."""
