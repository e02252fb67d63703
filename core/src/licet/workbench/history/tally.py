"""Counting what may be of any number of kinds, in bounded memory.

Rules this module keeps: a count is exact for every kind that is named; kinds that came when there was no room
left are counted together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

MOST_KINDS = 10_000


class Tally:
    """How often each kind was seen; at most `most` kinds are told apart."""

    def __init__(self, most: int = MOST_KINDS) -> None:
        self._most = most
        self._counts: Counter[str] = Counter()
        self.others = 0

    def add(self, kind: str, count: int = 1) -> None:
        """Count `kind` so many times more."""
        if kind in self._counts or len(self._counts) < self._most:
            self._counts[kind] += count
        else:
            self.others += count

    def top(self, most: int | None = None) -> Iterator[tuple[str, int]]:
        """The kinds and their counts, the largest first, equal ones by name."""
        ordered = sorted(self._counts.items(), key=lambda item: (-item[1], item[0]))
        yield from ordered[:most]

    def __len__(self) -> int:
        return len(self._counts)

    def __getitem__(self, kind: str) -> int:
        return self._counts[kind]

    @property
    def total(self) -> int:
        """All that was counted."""
        return self._counts.total() + self.others

    def as_json(self, most: int | None = None) -> dict[str, int]:
        """By kind, the largest first; those beyond `most`, and those not told apart, as `(others)`."""
        shown = dict(self.top(most))
        rest = self.total - sum(shown.values())
        return shown | ({"(others)": rest} if rest else {})
