"""The texts in a value, and the value with others in their place.

Rules this module keeps:

- keys count as well as members, bytes as well as text, and what stands for an object by its repr;
- a member is read beside its key, since a key may be what tells that the member is secret;
- exact types only, within the budget of values that cross; what lies beyond it was not read, and goes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from licet import values
from licet.scrubbing.spans import Secret, united, within, without

_READ_AS = "latin-1"  # every byte is one character, so that bytes come back as they were
_TEXTS = (str, bytes, bytearray)
_MANY = (list, tuple, set, frozenset)


@dataclass(frozen=True, slots=True)
class Contents:
    """All texts of a value on one page, where each one stands, and whether some were beyond the budget."""

    page: str
    places: tuple[tuple[int, int], ...]
    beyond: bool

    def redacted(self, secrets: Sequence[Secret]) -> tuple[tuple[str, ...], tuple[Secret, ...]]:
        """Each text without `secrets`, and those that were in a text, not beside it."""
        texts = [self.page[start:end] for start, end in self.places]
        begins = [start for start, _ in self.places]
        hit: list[Secret] = []
        cuts: dict[int, list[Secret]] = {}
        for secret in united(secrets):
            first = max(bisect_right(begins, secret.start) - 1, 0)
            inside = False
            for index in range(first, bisect_right(begins, secret.end)):
                start, end = self.places[index]
                if parts := list(within((secret,), start, end)):
                    cuts.setdefault(index, []).extend(parts)
                    inside = True
            if inside:
                hit.append(secret)
        for index, parts in cuts.items():
            texts[index] = without(texts[index], parts)
        return tuple(texts), tuple(hit)


def contents(value: object) -> Contents:
    """The texts of `value`."""
    pieces: list[str] = []
    places: list[tuple[int, int]] = []
    length = 0

    def note(text: str, beside: str) -> str:
        nonlocal length
        before, after = (f'{beside} = "', '"\n') if beside else ("", "\n")
        pieces.extend((before, text, after))
        start = length + len(before)
        places.append((start, start + len(text)))
        length = start + len(text) + len(after)
        return text

    walk = _Walk(note)
    walk.copy(value)
    return Contents("".join(pieces), tuple(places), walk.beyond)


def replaced(value: object, texts: Sequence[str]) -> Any:
    """`value` with `texts` in the place of its own, in the order of `contents`."""
    following = iter(texts)
    return _Walk(lambda text, beside: next(following)).copy(value)


class _Walk:
    """One walk over a value, depth first, that hands each text to `text` and takes what it returns."""

    def __init__(self, text: Callable[[str, str], str]) -> None:
        self.text = text
        self.nodes = values.DEFAULT.nodes
        self.beyond = False

    def copy(self, item: Any, level: int = 0, beside: str = "") -> Any:
        kind = type(item)
        self.nodes -= 1
        if self.nodes < 0 or level > values.DEFAULT.depth:
            self.beyond = True
            return values.Omitted("budget")
        if kind in _TEXTS:
            return self.leaf(item, kind, beside)
        if kind in _MANY:
            return kind(self.copy(member, level + 1) for member in item)
        if kind is dict:
            return self.mapping(item, level + 1)
        if kind is values.Opaque:
            return values.Opaque(self.text(item.type_name, ""), self.text(item.repr, beside))
        return item

    def leaf(self, item: Any, kind: type, beside: str) -> Any:
        if kind is str:
            return self.text(item, beside)
        text = self.text(item.decode(_READ_AS), beside)
        return kind(text.encode(_READ_AS))

    def mapping(self, item: dict[Any, Any], level: int) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        again: Counter[Any] = Counter()
        for name, member in item.items():
            key = self.copy(name, level)
            if key in result:  # two secrets of one kind look the same
                again[key] += 1
                key = f"{key} {again[key] + 1}"
            result[key] = self.copy(member, level, name if type(name) is str else "")
            if self.beyond:
                break
        return result
