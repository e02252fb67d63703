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


class Anchored(Part):
    """An anchor outside this host has seen a checkpoint."""

    event: Literal["anchored"] = "anchored"
    anchor: str
    """Its name: a path, an address, or the name of a key."""
    kind: str
    """`file`, `timestamp`, `witness`, or what a plugin calls its own."""
    size: int
    """How many records the checkpoint covers."""
    root: str
    """The root of their tree, in hexadecimal."""
    time: str | None
    """When, as the anchor says, RFC 3339 in UTC; null if it doesn't."""
    digest: str
    """SHA-256 of its receipt, in hexadecimal."""


class AnchorFailed(Part):
    """An anchor outside this host has not seen a checkpoint."""

    event: Literal["anchor_failed"] = "anchor_failed"
    anchor: str
    kind: str
    size: int
    reason: str


EVENTS: tuple[type[BaseModel], ...] = (
    LogOpened,
    SegmentSealed,
    TailQuarantined,
    RecordsLost,
    Anchored,
    AnchorFailed,
)
