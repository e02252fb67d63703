"""One pass over a log, for all that erasing, holding and pruning ask of it.

Rules this module keeps:

- the log is only read, and all that it says is taken from records, never from files beside them;
- a line that is no record, or does not follow the one before, ends the pass: nothing is removed on the word
  of a damaged log;
- a name in a record that is no commitment leads to no file; `verify` tells of such records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
from licet.errors import AuditUnavailable, UsageError
from licet.record import leaf_hash
from licet.state import StateDirectory, failures
from licet.workbench.history.bodies import texts

from licet_audit.contents import is_commitment
from licet_audit.recovery import is_alive
from licet_audit.removals import commitments_of
from licet_audit.retention.choosing import Run
from licet_audit.retention.holds import Hold, follow
from licet_audit.segments import Line, Segment, lines, snapshot

Hear = Callable[[], None]
_BEGIN_RUNS = ("request", "probe")  # what the first record of a run is, if it is there
_BY_OTHERS = frozenset({"answered", "granted", "denied", "expired", "withdrawn", "revoked"})
"""What others than the process of a run may record of its approval."""


@dataclass(slots=True)
class Stretch:
    """One segment, its newest time, and the number of its last record: one less than its first if empty."""

    segment: Segment
    last: int
    newest: str = ""


@dataclass(slots=True)
class Survey:
    """What a log holds."""

    runs: dict[str, Run] = field(default_factory=dict)
    holds: dict[str, Hold] = field(default_factory=dict)
    erased: set[str] = field(default_factory=set)
    forgotten: dict[str, int] = field(default_factory=dict)
    """Runs of whose approvals all that is stored was erased, with the number of the record that says so."""
    stretches: list[Stretch] = field(default_factory=list)
    _leaf: str | None = None  # of the record before

    @property
    def size(self) -> int:
        """The number that the next record will have."""
        return self.stretches[-1].last + 1 if self.stretches else 0

    @property
    def named(self) -> set[str]:
        """Every commitment that a record names, erased or not."""
        return {one for run in self.runs.values() for _, kept in run.kept for one in kept.values()}

    def is_stored(self, run: Run) -> bool:
        """Whether something may be stored of the approvals of a run."""
        return run.asked > self.forgotten.get(run.run_id, -1)

    def holding(self, run: Run) -> Hold | None:
        """A hold that keeps a run."""
        return next((hold for hold in self.holds.values() if hold.keeps(run)), None)

    def run(self, beginning: str) -> Run:
        """The one run whose id begins so.

        Raises:
            UsageError: there is none, or more than one.
        """
        found = [run for name, run in self.runs.items() if name.startswith(beginning.upper())]
        if len(found) == 1:
            return found[0]
        raise UsageError(
            f"`{beginning}` may mean `{found[0].run_id}` or `{found[1].run_id}`"
            if found
            else f"no run in this log has an id that begins with `{beginning}`",
            advice="give more of the run id" if found else "`licet audit list` shows the runs",
        )

    def _take(self, line: Line, stretch: Stretch) -> None:
        content = orjson.loads(line.data)
        seq, run_id, time = content["seq"], content["run_id"], content["time"]
        if self._leaf not in (None, content["prev"]):
            raise ValueError("it does not follow the record before")
        self._leaf = leaf_hash(line.data)
        stretch.last, stretch.newest = seq, max(stretch.newest, time)
        if not run_id:
            self._take_event(seq, time, content)
            return
        if (run := self.runs.get(run_id)) is None:
            known = content["kind"] in _BEGIN_RUNS
            run = Run(run_id, seq, seq, time, time, content["writer"]["instance"], known)
            self.runs[run_id] = run
        run.last_seq, run.went_on = seq, max(run.went_on, time)
        event = str(content["body"].get("event")) if content["kind"] == "approval" else None
        if event not in _BY_OTHERS:
            run.instance = content["writer"]["instance"]
        if event == "asked":
            run.asked = seq
        if content["kind"] == "request":
            _describe(run, content["body"])
        elif content["kind"] == "result":
            run.finished = True
        if good := {name: one for name, one in content.get("kept", {}).items() if is_commitment(one)}:
            run.kept.append((seq, good))

    def _take_event(self, seq: int, time: str, content: Mapping[str, Any]) -> None:
        body = content["body"]
        if content["kind"] != "log":
            return
        if body.get("event") == "erased":
            self.erased.update(commitments_of(body))
            self.forgotten.update(dict.fromkeys(texts(body.get("approvals")), seq))
        else:
            follow(self.holds, seq, time, body)


def survey(state: StateDirectory, hear: Hear = lambda: None) -> Survey:
    """Read the whole log; `hear` is called for each record.

    Raises:
        AuditUnavailable: it can't be read, or is damaged.
    """
    found = Survey()
    with failures(state.path):
        for segment in snapshot(state):
            stretch = Stretch(segment, segment.first - 1)
            found.stretches.append(stretch)
            for line in lines(segment):
                if line.complete:
                    _taken(found, line, stretch)
                    hear()
    return found


def is_writing(state: StateDirectory, run: Run) -> bool:
    """Whether a run that has no result may still get records: its writer is alive.

    Raises:
        AuditUnavailable: it can't be told.
    """
    if run.finished or not run.instance.isalnum():
        return False
    path = state.path / "writers" / run.instance
    with failures(path):
        try:
            return is_alive(path)
        except FileNotFoundError:
            return False


def _taken(found: Survey, line: Line, stretch: Stretch) -> None:
    try:
        found._take(line, stretch)
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise AuditUnavailable(
            f"the line at byte {line.offset} of `{stretch.segment.path}` is no record "
            f"({type(problem).__name__}), so nothing is removed",
            advice="`licet audit verify` says what is wrong with this log",
        ) from None


def _describe(run: Run, body: Mapping[str, Any]) -> None:
    subject = body.get("subject")
    if not isinstance(subject, dict):
        run.known = False
        return
    run.subject, run.on_behalf_of, run.tenant = (
        subject.get(name) for name in ("id", "on_behalf_of", "tenant")
    )
