"""Setting, releasing and listing holds.

Rules this module keeps:

- a hold is set and released while nobody erases or prunes, so that either came first;
- runs that are named have to be in the log, and are held under their whole ids.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from licet.errors import AuditUnavailable
from licet.state import StateDirectory, failures
from licet.ulid import new_run_id

from licet_audit import segments
from licet_audit.chain import log_record, now
from licet_audit.identity import account
from licet_audit.retention import holds, removal
from licet_audit.retention.choosing import Choice
from licet_audit.retention.holds import Hold
from licet_audit.retention.survey import survey

Hear = Callable[[], None]


def set_hold(state: StateDirectory, choice: Choice, reason: str, hear: Hear) -> tuple[Hold, int]:
    """Hold the runs of `choice`, now and later; return the hold, and how many runs it keeps now.

    Raises:
        UsageError: a run that is named is not in the log.
        AuditUnavailable: nothing is known to be recorded.
    """
    with removal.alone(state):
        found = survey(state, hear)
        if choice.runs is not None:
            choice = replace(choice, runs=tuple(found.run(one).run_id for one in choice.runs))
        hold = Hold(new_run_id(), choice, reason, account(), now(), seq=-1)
        (record,) = removal.record(state, [hold.entry()])
    return replace(hold, seq=record.seq), sum(hold.keeps(run) for run in found.runs.values())


def release_hold(state: StateDirectory, beginning: str, reason: str, hear: Hear) -> tuple[Hold, int]:
    """End the hold whose id begins so; return it, and the number of the record that says so.

    Raises:
        UsageError: there is none, or more than one.
        AuditUnavailable: nothing is known to be recorded.
    """
    with removal.alone(state):
        hold = holds.named({one.id: one for one in in_force(state, hear)}, beginning)
        (record,) = removal.record(state, [holds.release(hold, reason, account())])
    return hold, record.seq


def in_force(state: StateDirectory, hear: Hear = lambda: None) -> list[Hold]:
    """The holds of a log, oldest first; looks into no record but those of the log itself.

    Raises:
        AuditUnavailable: the log can't be read, or such a record is damaged.
    """
    found: dict[str, Hold] = {}
    with failures(state.path):
        for seq, line in segments.lines_from(segments.snapshot(state), 0):
            hear()
            try:
                if (content := log_record(line)) is not None:
                    holds.follow(found, seq, content["time"], content["body"])
            except (ValueError, KeyError):
                raise AuditUnavailable(
                    "a record of this log is damaged, and might be of a hold",
                    advice="`licet audit verify` says what is wrong with this log",
                ) from None
    return list(found.values())
