"""Where a report takes runs from: the shape of the index that it needs, and of no more.

Rules this module keeps: a page is drawn from these alone, so that a live console can be, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from licet.record import Record


class Row(Protocol):
    """One run, as the index has it."""

    @property
    def run_id(self) -> str: ...  # noqa: D102
    @property
    def first_seq(self) -> int: ...  # noqa: D102
    @property
    def last_seq(self) -> int: ...  # noqa: D102
    @property
    def time(self) -> str: ...  # noqa: D102
    @property
    def effect(self) -> str | None: ...  # noqa: D102
    @property
    def termination(self) -> str | None: ...  # noqa: D102
    @property
    def denied(self) -> tuple[str, ...]: ...  # noqa: D102


class Source(Protocol):
    """Answers which runs there are, and what their records are; `wanted` is a selection of the index."""

    def runs(self, wanted: Any) -> Iterator[Row]:
        """The runs that are wanted."""
        ...

    def count(self, wanted: Any) -> int:
        """How many they are."""
        ...

    def records(self, run_id: str) -> tuple[Record, ...]:
        """The records of one run, oldest first."""
        ...
