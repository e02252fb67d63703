"""Erasing kept content: what is chosen, what stands against it, and the record of it.

Rules this module keeps:

- what is on hold is not erased, and what is still being written is not half erased: all that is chosen goes,
  or nothing does, unless the caller says that the rest may;
- content that is missing without a record of its erasure is not recorded as erased: that would hide its loss;
- content that is no longer what was committed to is erased, and the record says so;
- content that a record says is erased and that is there again, out of a backup perhaps, goes without another
  record, unless it is on hold by now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from licet.record import Entry
from licet.state import StateDirectory, failures
from licet.ulid import new_run_id

from licet_audit import contents
from licet_audit.chain import log_entry
from licet_audit.retention import removal
from licet_audit.retention.choosing import Choice, Run
from licet_audit.retention.holds import Hold, RunUnfinished, refusal
from licet_audit.retention.survey import Survey, is_writing

_IN_ONE = 10_000  # commitments that one record is about; a record has less than 4 MiB
_YOUNG = 3600.0  # seconds in which a writer surely names what it stored, or gives it up

Hear = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Named:
    """Content that one record names and that is there."""

    run_id: str
    seq: int
    kept: dict[str, str]


@dataclass(slots=True)
class Erasure:
    """What an erasure would do.

    `size` counts bytes, salts included. `approvals` are runs of whose approvals all that is stored goes.
    `held` and `unfinished` are chosen and stay; `missing` is gone, and no record says so; `altered` is there
    and is not what was committed to. `left` was erased before, as a record says, and is there all the same.
    """

    named: list[Named] = field(default_factory=list)
    orphans: list[str] = field(default_factory=list)
    approvals: list[str] = field(default_factory=list)
    altered: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    held: list[tuple[Run, Hold]] = field(default_factory=list)
    unfinished: list[Run] = field(default_factory=list)
    size: int = 0

    @property
    def runs(self) -> list[str]:
        """The runs whose content goes."""
        return sorted({*(one.run_id for one in self.named), *self.approvals})

    @property
    def count(self) -> int:
        """How many pieces of content go."""
        return sum(len(one.kept) for one in self.named) + len(self.orphans)

    def require_whole(self) -> None:
        """Refuse to erase a part of what is chosen.

        Raises:
            Held: some of it is on hold.
            RunUnfinished: a run of it has not ended.
        """
        if self.held:
            raise refusal(self.held, "nothing was erased")
        if self.unfinished:
            first = min(run.run_id for run in self.unfinished)
            others = len(self.unfinished) - 1
            raise RunUnfinished(
                f"nothing was erased: the run {first}{f' and {others} more' if others else ''} has not ended",
                advice="do it again when it has, or erase the rest now with `--skip`",
            )

    def entries(self, reason: str, by: str) -> list[Entry]:
        """The records of it; several where one would be too long, with one id."""
        erasure = new_run_id()
        altered = set(self.altered)
        entries = []
        for part, orphans, approvals in _parts(self.named, self.orphans, self.approvals):
            here = [one for named in part for one in named.kept.values()] + orphans
            entries.append(
                log_entry(
                    "erased",
                    erasure=erasure,
                    reason=reason,
                    by=by,
                    commitments=[_spelled(one) for one in part],
                    orphans=orphans,
                    approvals=approvals,
                    altered=[one for one in here if one in altered],
                )
            )
        return entries


def planned(state: StateDirectory, found: Survey, choice: Choice, hear: Hear = lambda: None) -> Erasure:
    """What erasing the content of the runs of `choice` comes to; nothing is changed. `hear` counts content.

    Raises:
        AuditUnavailable: content can't be looked at.
    """
    erasure = Erasure()
    for run in found.runs.values():
        left, is_stored = run.left(found.erased), found.is_stored(run)
        if not choice.covers(run) or not (left or is_stored):
            continue
        if (hold := found.holding(run)) is not None:
            erasure.held.append((run, hold))
        elif is_writing(state, run):
            erasure.unfinished.append(run)
        else:
            look_at(state, run.run_id, left, erasure, hear)
            erasure.approvals += [run.run_id] if is_stored else []
    return erasure


def orphaned(state: StateDirectory, found: Survey, hear: Hear = lambda: None) -> Erasure:
    """What erasing the content that no record names comes to; what is younger than an hour is left alone.

    Raises:
        AuditUnavailable: content can't be looked at.
    """
    erasure = Erasure()
    with failures(state.path):
        erasure.orphans = contents.orphans(state, found.named, older_than=_YOUNG)
    for one in erasure.orphans:
        erasure.size += contents.size_of(state, one) or 0
        hear()
    return erasure


def left_over(state: StateDirectory, found: Survey) -> list[str]:
    """What was erased, as records say, is there all the same, and is not on hold.

    Raises:
        AuditUnavailable: content can't be looked at.
    """
    with failures(state.path):
        there = found.erased.intersection(contents.stored(state))
    for run in found.runs.values() if there else ():
        mine = there.intersection(one for _, kept in run.kept for one in kept.values())
        if mine and found.holding(run) is not None:
            there -= mine
    return sorted(there)


def carry_out(state: StateDirectory, erasure: Erasure, reason: str, by: str, *, size: int) -> tuple[int, ...]:
    """Record and erase; inside of `removal.alone`. Returns the numbers of its records.

    Raises:
        AuditUnavailable: nothing is recorded and nothing erased, or all is recorded and not all is erased.
    """
    with failures(state.path):
        contents.delete(state, erasure.left)
    entries = erasure.entries(reason, by)
    return tuple(record.seq for record in removal.carry_out(state, entries, size=size)) if entries else ()


def look_at(
    state: StateDirectory,
    run_id: str,
    left: Iterable[tuple[int, dict[str, str]]],
    erasure: Erasure,
    hear: Hear = lambda: None,
) -> None:
    """Add to `erasure` what one run names and what is still there; `left` has it by the number of its record.

    Raises:
        AuditUnavailable: content can't be looked at.
    """
    for seq, kept in left:
        there = {}
        for name, committed in kept.items():
            size = contents.size_of(state, committed)
            hear()
            if size is None:
                erasure.missing.append(committed)
                continue
            there[name] = committed
            erasure.size += size
            if contents.state_of(state, committed) == "altered":
                erasure.altered.append(committed)
        if there:
            erasure.named.append(Named(run_id, seq, there))


def _spelled(named: Named) -> dict[str, Any]:
    return {"run_id": named.run_id, "seq": named.seq, "kept": named.kept}


def _parts(
    named: list[Named], orphans: list[str], approvals: list[str]
) -> Iterator[tuple[list[Named], list[str], list[str]]]:
    part: list[Named] = []
    for one in named:
        part.append(one)
        if len(part) * 4 >= _IN_ONE:  # a record names four pieces of content at most
            yield part, [], []
            part = []
    if part:
        yield part, [], []
    for start in range(0, len(orphans), _IN_ONE):
        yield [], orphans[start : start + _IN_ONE], []
    for start in range(0, len(approvals), _IN_ONE):
        yield [], [], approvals[start : start + _IN_ONE]
