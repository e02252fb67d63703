"""Pruning: the oldest segments go, whole; their leaves stay in the tree, under a checkpoint.

Rules this module keeps:

- segments go from the oldest on, and the first that has to stay ends it: its records are too young, no tile
  holds their leaves yet, a run in them is on hold or under way; the newest segment always stays;
- a run that reaches beyond what goes loses its beginning; the record names it;
- content that the records that go name goes with them, by records of its own, and so does what is stored of
  approvals that they asked for;
- holds whose records go are written again, so that they stay in force.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass, field

from licet.errors import AuditUnavailable
from licet.files import open_plain
from licet.record import Entry
from licet.state import StateDirectory, failures

from licet_audit.chain import log_entry
from licet_audit.notes import Note
from licet_audit.retention import removal
from licet_audit.retention.choosing import Run
from licet_audit.retention.erasing import Erasure, look_at
from licet_audit.retention.holds import Hold
from licet_audit.retention.survey import Stretch, Survey, is_writing


@dataclass(slots=True)
class Pruning:
    """What pruning would do: which segments go, why no more do, and the hold that says so, if one does."""

    stretches: list[Stretch] = field(default_factory=list)
    ends: str = "the newest segment always stays"
    hold: tuple[Run, Hold] | None = None
    cut: list[str] = field(default_factory=list)
    again: list[Hold] = field(default_factory=list)
    erasure: Erasure = field(default_factory=Erasure)

    @property
    def size(self) -> int:
        """Bytes of the segments."""
        return sum(one.segment.size for one in self.stretches)

    @property
    def records(self) -> int:
        """How many records go."""
        return sum(one.last + 1 - one.segment.first for one in self.stretches)

    @property
    def last(self) -> int:
        """The number of the last record that goes; -1 if none does."""
        return self.stretches[-1].last if self.stretches else -1


@dataclass(frozen=True, slots=True)
class _Obstacle:
    """Something in records from `seq` on that has to stay."""

    seq: int
    why: str
    hold: tuple[Run, Hold] | None = None


def planned(state: StateDirectory, found: Survey, before: str, in_tiles: int) -> Pruning:
    """What pruning records that are all older than `before` comes to; nothing is changed.

    `in_tiles` is how many records from the first have their leaves in full tiles that a checked checkpoint
    covers.

    Raises:
        AuditUnavailable: it can't be told.
    """
    plan = Pruning()
    obstacle = min(_obstacles(state, found, before), key=lambda one: one.seq, default=None)
    for stretch, following in zip(found.stretches, found.stretches[1:], strict=False):
        if stretch.last + 1 != following.segment.first:
            raise AuditUnavailable(
                f"`{following.segment.path}` does not continue the segment before it, so nothing is pruned",
                advice="`licet audit verify` says what is wrong with this log",
            )
        if stretch.newest >= before:
            plan.ends = f"the newest record of the next segment is of {stretch.newest[:10]}"
        elif stretch.last >= in_tiles:
            plan.ends = "the tree does not hold all of the next segment yet: some more records are needed"
        elif obstacle is not None and obstacle.seq <= stretch.last:
            plan.ends, plan.hold = obstacle.why, obstacle.hold
        else:
            plan.stretches.append(stretch)
            continue
        break
    _add_what_follows(state, found, plan)
    return plan


def _obstacles(state: StateDirectory, found: Survey, before: str) -> Iterable[_Obstacle]:
    for run in found.runs.values():
        if run.began >= before:
            continue
        if (hold := found.holding(run)) is not None:
            yield _Obstacle(run.first_seq, f"the run {run.run_id} is on hold ({hold})", (run, hold))
        elif is_writing(state, run):
            yield _Obstacle(run.first_seq, f"the run {run.run_id} has not ended")


def _add_what_follows(state: StateDirectory, found: Survey, plan: Pruning) -> None:
    """What else changes when the records up to `plan.last` go."""
    for run in found.runs.values():
        if run.first_seq <= plan.last:
            if run.last_seq > plan.last:
                plan.cut.append(run.run_id)
            gone = [one for one in run.left(found.erased) if one[0] <= plan.last]
            look_at(state, run.run_id, gone, plan.erasure)
            if found.is_stored(run) and run.asked <= plan.last:
                plan.erasure.approvals.append(run.run_id)
    plan.again = [hold for hold in found.holds.values() if hold.seq <= plan.last]


def carry_out(
    state: StateDirectory, plan: Pruning, checkpoint: Note, reason: str, by: str, *, size: int
) -> int:
    """Record and prune; inside of `removal.alone`. Returns the number of the record.

    Raises:
        AuditUnavailable: nothing is recorded and nothing gone, or all is recorded and not all is gone.
    """
    entries = [hold.entry() for hold in plan.again]
    entries += plan.erasure.entries(f"pruned with the records that name it: {reason}", by)
    entries.append(_entry(plan, checkpoint, reason, by))
    return removal.carry_out(state, entries, size=size)[-1].seq


def _entry(plan: Pruning, checkpoint: Note, reason: str, by: str) -> Entry:
    return log_entry(
        "pruned",
        segments=[
            {
                "first": one.segment.first,
                "last": one.last,
                "bytes": one.segment.size,
                "sha256": _sha256(one),
            }
            for one in plan.stretches
        ],
        begins=plan.last + 1,
        cut=sorted(plan.cut),
        checkpoint=checkpoint.data.decode(),
        newest=max(one.newest for one in plan.stretches),
        reason=reason,
        by=by,
    )


def _sha256(stretch: Stretch) -> str:
    path = stretch.segment.path
    with failures(path), os.fdopen(open_plain(path, os.O_RDONLY), "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
