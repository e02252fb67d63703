"""What a record can hold, and its one spelling.

Rules this module keeps:

- the canonical form is RFC 8785 (JCS) over a subset: ASCII keys, no floats, integers below 2**53; so content
  has exactly one spelling, and any JCS library writes the same bytes;
- whatever a stage knows becomes such content; what has no place in it becomes text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

import orjson

MAX_DEPTH = 32
"""How deep the content of a record may be nested."""


_ENDS_OF_LINES = {code: f"\\x{code:02x}" for code in range(0x80, 0xA0)} | {
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}
"""Controls that JSON leaves as they are, and that programs which read line by line may split at."""


def canonical(value: Any) -> bytes:
    """The one spelling of a JSON value.

    Raises:
        ValueError: a float, an integer outside ±2**53, a key that is not ASCII text, a lone surrogate,
            nesting deeper than `MAX_DEPTH`, or something that is no JSON.
    """
    _check(value)
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError as problem:  # what JSONEncodeError is
        raise ValueError(f"a record can't hold this: {problem}") from None


class Plain(dict[str, Any]):
    """Content that `plain_body` made, so that it need not be checked again; records share it.

    It does not change any more once it was spelled.
    """

    __slots__ = ("_spelled",)
    _spelled: orjson.Fragment

    def spelled(self) -> orjson.Fragment:
        """Its canonical form as a part of others; made once."""
        try:
            return self._spelled
        except AttributeError:
            self._spelled = orjson.Fragment(canonical(self))
            return self._spelled

    def __reduce__(self) -> tuple[type[Plain], tuple[dict[str, Any]]]:
        return Plain, (dict(self),)  # a copy may be changed, so it is spelled anew


def plain_body(body: Mapping[str, Any]) -> Plain:
    """Turn what a stage knows into what a record can hold.

    Numbers with a fraction and huge ones become text, characters that UTF-8 can't hold or that could pass
    for the end of a line become escapes, values become mappings of their fields.
    """
    return body if type(body) is Plain else Plain(_plain_mapping(body))


def _plain_mapping(content: Mapping[Any, Any]) -> dict[str, Any]:
    return {
        key if type(key) is str and key.isascii() else ascii_key(str(key)): (
            inner
            if (kind := type(inner)) in _UNCHANGED or (kind is str and inner.isascii())
            else plain(inner)
        )
        for key, inner in content.items()
    }


def plain(value: Any) -> Any:
    """Turn one value into what a record can hold, as `plain_body` does."""
    kind = type(value)
    if kind in _UNCHANGED:
        return value
    if isinstance(value, str):
        text = value if kind is str else str.__str__(value)
        return text if text.isascii() else _spelled(text)
    if kind is int:
        return value if -(2**53) < value < 2**53 else hex(value)
    if kind is float:
        return repr(value)
    if kind is dict:
        return _plain_mapping(value)
    if kind is tuple or kind is list:
        return [inner if type(inner) is str and inner.isascii() else plain(inner) for inner in value]
    return _plain_of_other(value, kind)


def _spelled(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode().translate(_ENDS_OF_LINES)


_UNCHANGED = frozenset({bool, type(None), Plain})


def _plain_of_other(value: Any, kind: type) -> Any:
    if isinstance(value, float):
        return repr(float(value))
    if is_dataclass(kind):
        return {name: plain(getattr(value, name)) for name in _field_names(kind)}
    if isinstance(value, Mapping):
        return _plain_mapping(value)
    return plain(sorted(map(str, value)) if isinstance(value, (set, frozenset)) else str(value))


@cache
def _field_names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


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


_NO_DOUBT = _UNCHANGED | {str}
"""Types whose values a record holds as they are; half a surrogate pair is found when the text is written."""
