"""Places in a log, and what a claim found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from licet_audit.claims import Claim, Status


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a log: the record that should be there, and where its line starts in its file."""

    seq: int
    file: str
    offset: int

    def __str__(self) -> str:
        return f"record #{self.seq} at byte {self.offset} of {self.file}"


Locate = Callable[[int], Place | None]
"""Finds the place of a record; None where no file has it."""


class Finding:
    """What one claim found about records: how often it failed, and where first.

    `good` is what it says if it never failed, `status` what the whole log is if it did.
    """

    def __init__(self, name: str, good: str, status: Status = "tampered") -> None:
        self.count = 0
        self.seq: int | None = None
        self.good = good
        self._name = name
        self._status = status
        self._why = ""

    def fail(self, seq: int, why: str) -> None:
        """Note a failure; the first one is told."""
        self.count += 1
        if self.seq is None:
            self.seq, self._why = seq, why

    def blame(self, seq: int, why: str) -> None:
        """Tell this failure instead of the first one."""
        self.count += 1
        self.seq, self._why = seq, why

    def claim(self, locate: Locate) -> Claim:
        """The claim, with the number of further failures."""
        if self.seq is None:
            return Claim(self._name, True, self.good, self._status)
        more = f" (and {self.count - 1} more)" if self.count > 1 else ""
        return Claim(
            self._name, False, f"{locate(self.seq) or f'record #{self.seq}'}: {self._why}{more}", self._status
        )
