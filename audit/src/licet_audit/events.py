"""What the log says of itself: the body of each `log` record, by its `event`."""

from __future__ import annotations

from typing import Literal

from licet.record_schema.parts import Part
from pydantic import BaseModel, Field


class LogOpened(Part):
    """The log begins."""

    event: Literal["opened"] = "opened"
    log: str
    """Its id."""


class LogReopened(Part):
    """A process goes on with a log that it had given up."""

    event: Literal["reopened"] = "reopened"
    reason: str
    """The failure after which it wrote nothing more."""


class SegmentSealed(Part):
    """The segment that this record ends is full; the next record begins another."""

    event: Literal["sealed"] = "sealed"


class TailQuarantined(Part):
    """A writer died in the middle of a line, which was set aside as it was."""

    event: Literal["torn_tail_quarantined"] = "torn_tail_quarantined"
    bytes: int
    """How long it was."""
    sha256: str
    """Of these bytes."""
    file: str
    """Its name in `quarantine`."""


class RecordsLost(Part):
    """Records are missing that a `best_effort` trail could not write."""

    event: Literal["gap"] = "gap"
    missing: int
    """How many."""


class WritesRecovered(Part):
    """A process died while it wrote the files of a run to the host; the next one put that in order."""

    event: Literal["writes_recovered"] = "writes_recovered"
    run: str
    """Its run."""
    outcome: Literal["undone", "finished", "failed"]
    """`undone`: as before the run. `finished`: all of it is written. `failed`: people have to look."""
    paths: list[str]
    """What the run was about to change."""
    reason: str | None
    """Why it `failed`."""


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
    """As for `anchored`."""
    kind: str
    """As for `anchored`."""
    size: int
    """How many records the checkpoint covers."""
    reason: str


class Committed(Part):
    """What one record names of content that is kept beside the log."""

    run_id: str
    """Its run."""
    seq: int
    """The record."""
    kept: dict[str, str]
    """The commitments that are meant, by the names that the record gives them."""


class ContentErased(Part):
    """Content and salts are deleted for good; what records say of them stays."""

    event: Literal["erased"] = "erased"
    erasure: str
    """The id of the erasure; one that is large has several records."""
    reason: str
    by: str
    """The account that asked for it."""
    commitments: list[Committed]
    orphans: list[str]
    """Commitments to content that no record names: a writer died before it wrote one."""
    approvals: list[str] = Field(default_factory=list)
    """Runs: all that was stored of approvals that they asked for went, too."""
    altered: list[str]
    """Those of all these whose content was no longer what was committed to."""


class Chosen(Part):
    """Which runs are meant: those that meet all of it, now and later. What is null chooses nothing out."""

    runs: list[str] | None
    """Their ids."""
    subject: str | None
    """Of the subject itself, or of whom it acted for."""
    tenant: str | None
    since: str | None
    """Runs that went on after this moment."""
    before: str | None
    """Runs that had begun before this moment."""


class HoldSet(Part):
    """Content of these runs must not be erased, nor their records pruned, until the hold is released."""

    event: Literal["held"] = "held"
    hold: str
    """The id of the hold."""
    what: Chosen
    reason: str
    by: str
    """The account that set it."""
    since: str
    """When it was set; a hold is written again where the record of it is pruned."""


class HoldReleased(Part):
    """A hold ends."""

    event: Literal["released"] = "released"
    hold: str
    """The id of the hold."""
    reason: str
    by: str
    """The account that ended it."""


class PrunedSegment(Part):
    """One file of records that is removed."""

    first: int
    last: int
    """The numbers of its first and last record."""
    bytes: int
    """Its size."""
    sha256: str
    """Of the file."""


class SegmentsPruned(Part):
    """The oldest records are removed; their leaves stay in the tree, under the checkpoint named here."""

    event: Literal["pruned"] = "pruned"
    segments: list[PrunedSegment]
    begins: int
    """The number of the first record that stays."""
    cut: list[str]
    """Runs of which some records are removed and some stay."""
    checkpoint: str
    """The signed checkpoint that covers all of them, as text."""
    newest: str
    """The time of the newest record that is removed."""
    reason: str
    by: str
    """The account that asked for it."""


EVENTS: tuple[type[BaseModel], ...] = (
    LogOpened,
    LogReopened,
    SegmentSealed,
    TailQuarantined,
    RecordsLost,
    WritesRecovered,
    Anchored,
    AnchorFailed,
    ContentErased,
    HoldSet,
    HoldReleased,
    SegmentsPruned,
)
