"""What a request holds, as values that CEL reads the way they are meant.

Rules this module keeps:

- a value that CEL would read as another one is not bound at all, and what reads it is unknown: a text with
  a NUL or a lone surrogate, bytes with a zero, a number that is none, an integer beyond 64 bits, a time
  without a zone;
- where nothing says the type of a number, it has to be exact both as integer and as double;
- texts, lists and nesting are bounded.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from importlib import import_module
from typing import Any

from licet.policy.cel.schema import PACKAGE, pool
from licet.policy.signatures import Signature, Type

MAX_TEXT = 16 << 10
MAX_ITEMS = 1_000
MAX_NODES = 10_000
MAX_DEPTH = 16
MAX_DIGITS = 4_000

_EXACT = 1 << 53


class Unreadable(Exception):
    """A value that no condition may read; the message is why."""


@lru_cache(maxsize=1)
def decimal_class() -> Any:
    """The message that stands for a decimal."""
    factory = import_module("google.protobuf.message_factory")
    return factory.GetMessageClass(pool(Signature()).FindMessageTypeByName(f"{PACKAGE}.Decimal"))


@lru_cache(maxsize=2)
def _well_known(name: str) -> Any:
    return getattr(import_module(f"google.protobuf.{name.lower()}_pb2"), name)


@dataclass(slots=True)
class _Budget:
    nodes: int = MAX_NODES

    def take(self, depth: int, items: int = 1) -> None:
        self.nodes -= items
        if self.nodes < 0 or items > MAX_ITEMS:
            raise Unreadable(f"it holds more than {MAX_ITEMS} items, or {MAX_NODES} in all")
        if depth > MAX_DEPTH:
            raise Unreadable(f"it is nested deeper than {MAX_DEPTH} levels")


def typed(value: object, kind: Type) -> Any:
    """A value of a declared type.

    Raises:
        Unreadable: it is of another type, or CEL would read it as another value.
    """
    reader = _READERS.get(kind.kind)
    return reader(value, kind) if reader is not None else _typed(value, kind, _Budget(), 0)


def _typed(value: object, kind: Type, budget: _Budget, depth: int) -> Any:
    budget.take(depth)
    if kind.kind == "any":
        return _untyped(value, budget, depth)
    if kind.kind == "list" and isinstance(value, (list, tuple)):
        budget.take(depth, len(value))
        item = kind.item or Type("any")
        item = Type("any") if item.kind in ("float", "decimal", "list") else item
        return [_typed(one, item, budget, depth + 1) for one in value]
    if kind.kind == "map" and isinstance(value, Mapping):
        return _map(value, kind.item or Type("any"), budget, depth)
    reader = _READERS.get(kind.kind)
    if reader is None:
        raise _other_type(value, kind)
    return reader(value, kind)


def _map(value: Mapping[Any, Any], item: Type, budget: _Budget, depth: int) -> dict[str, Any]:
    budget.take(depth, len(value))
    if not all(isinstance(key, str) for key in value):
        raise Unreadable("it is a map with keys that are no texts")
    return {text(key): _typed(one, item, budget, depth + 1) for key, one in value.items()}


def _other_type(value: object, kind: Type) -> Unreadable:
    return Unreadable(f"it is declared as {kind} and is of the type `{type(value).__name__}`")


def text(value: str) -> str:
    """A text that CEL reads whole.

    Raises:
        Unreadable: it is too long, or holds a NUL or a lone surrogate.
    """
    if len(value) > MAX_TEXT:
        raise Unreadable(f"it is a text of more than {MAX_TEXT} characters")
    if "\0" in value:
        raise Unreadable("it is a text with a NUL character")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise Unreadable("it is a text with a lone surrogate") from None
    return str.__str__(value)


def _text(value: object, kind: Type) -> str:
    if not isinstance(value, str):
        raise _other_type(value, kind)
    return text(value)


def _bytes(value: object, kind: Type) -> bytes:
    if not isinstance(value, (bytes, bytearray)):
        raise _other_type(value, kind)
    if len(value) > MAX_TEXT:
        raise Unreadable(f"it is longer than {MAX_TEXT} bytes")
    if 0 in value:
        raise Unreadable("it holds a zero byte")
    return bytes(value)


def _bool(value: object, kind: Type) -> bool:
    if not isinstance(value, bool):
        raise _other_type(value, kind)
    return value


def _int(value: object, kind: Type) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _other_type(value, kind)
    if not -(1 << 63) <= value < 1 << 63:
        raise Unreadable("it is an integer beyond 64 bits")
    return int(value)


def _fraction(value: object, kind: Type) -> Any:
    """A number for `order`: an int, a float, or a message with all digits of a decimal."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        raise _other_type(value, kind)
    if isinstance(value, int) and -(1 << 63) <= value < 1 << 63:
        return int(value)
    if isinstance(value, int) and value.bit_length() > 3 * MAX_DIGITS:
        raise Unreadable(f"it is a number of more than {MAX_DIGITS} digits")
    if isinstance(value, Decimal) and len(value.as_tuple().digits) > MAX_DIGITS:
        raise Unreadable(f"it is a number of more than {MAX_DIGITS} digits")
    if value.is_nan() if isinstance(value, Decimal) else math.isnan(value):
        raise Unreadable("it is not a number")
    if isinstance(value, float):
        return float(value)
    return decimal_class()(text=str(value))


def _moment(value: object, kind: Type) -> Any:
    if isinstance(value, datetime) is not (kind.kind == "datetime") or not isinstance(value, date):
        raise _other_type(value, kind)
    moment = value if isinstance(value, datetime) else datetime.combine(value, time(), UTC)
    if moment.tzinfo is None:
        raise Unreadable("it is a time that says no time zone")
    made = _well_known("Timestamp")()
    try:
        made.FromDatetime(moment.astimezone(UTC))
    except (OverflowError, ValueError):
        raise Unreadable("it is a time that has no place in UTC") from None
    return made


def _duration(value: object, kind: Type) -> Any:
    if not isinstance(value, timedelta):
        raise _other_type(value, kind)
    made = _well_known("Duration")()
    made.FromTimedelta(value)
    return made


_READERS: Mapping[str, Any] = {
    "string": _text,
    "int": _int,
    "float": _fraction,
    "decimal": _fraction,
    "bool": _bool,
    "bytes": _bytes,
    "date": _moment,
    "datetime": _moment,
    "duration": _duration,
}


def _untyped(value: object, budget: _Budget, depth: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return text(value)
    if isinstance(value, (int, float, Decimal)):
        return _exact(value)
    if isinstance(value, (list, tuple)):
        return _typed(value, Type("list"), budget, depth)
    if isinstance(value, Mapping):
        return _map(value, Type("any"), budget, depth)
    for kind in ("bytes", "datetime", "date", "duration"):
        if isinstance(value, _PYTHON[kind]):
            return _READERS[kind](value, Type(kind))
    raise Unreadable(f"it is of the type `{type(value).__name__}`, which no condition can read")


_PYTHON: Mapping[str, Any] = {
    "bytes": (bytes, bytearray),
    "datetime": datetime,
    "date": date,
    "duration": timedelta,
}


def _exact(value: int | float | Decimal) -> int | float:
    """A number that is the same as integer, double and decimal, whatever it is compared with."""
    if isinstance(value, (float, Decimal)) and not math.isfinite(value):
        raise Unreadable("it is not a finite number")
    if not -_EXACT < value < _EXACT:
        raise Unreadable("it is a number of 2**53 or more, and no type is declared for it")
    if isinstance(value, Decimal):
        if Decimal(float(value)) != value:
            raise Unreadable("it is a decimal that no double holds exactly, and no type is declared for it")
        return float(value)
    return value


def order(left: Any, right: Any) -> int:
    """Below zero, zero or above zero, as the left number is less than, equal to or more than the right.

    Numbers are ints, floats, or messages with a decimal. Between a decimal and a float, the float means the
    shortest decimal that is read as it: `99.99` in a text is what stands there.
    """
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        return (left > right) - (left < right)
    a, b = _as_decimal(left), _as_decimal(right)
    return (a > b) - (a < b)


def _as_decimal(value: Any) -> Decimal:
    if isinstance(value, int):
        return Decimal(value)
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(value.text)
