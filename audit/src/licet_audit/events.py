"""What the log says of itself: the body of each `log` record, by its `event`."""

from __future__ import annotations

from typing import Literal

from licet.record_schema.parts import Part
from pydantic import BaseModel


class LogOpened(Part):
    """The log begins."""

    event: Literal["opened"] = "opened"
    log: str
    """Its id."""


class SegmentSealed(Part):
    """The segment that this record ends is full; the next record begins another."""

    event: Literal["sealed"] = "sealed"


class TailQuarantined(Part):
    """A writer died in the middle of a line, which was set aside as it was."""

    event: Literal["torn_tail_quarantined"] = "torn_tail_quarantined"
    bytes: int
    sha256: str
    file: str


class RecordsLost(Part):
    """Records are missing that a `best_effort` trail could not write."""

    event: Literal["gap"] = "gap"
    missing: int


EVENTS: tuple[type[BaseModel], ...] = (LogOpened, SegmentSealed, TailQuarantined, RecordsLost)
