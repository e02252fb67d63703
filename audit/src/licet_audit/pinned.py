"""Whether a log is the one that this user saw before, as far as the newest checkpoint says.

Rules this module keeps: what was seen counts, and not what lies beside the log; a log that is seen for the
first time is noted.
"""

from __future__ import annotations

from collections.abc import Sequence

from licet.errors import AuditUnavailable
from licet.state import StateDirectory

from licet_audit import seen
from licet_audit.chain import Head
from licet_audit.leaves import Snapshot
from licet_audit.segments import Segment
from licet_audit.tiles import has_root

MOVE_ASIDE = "run `licet audit verify`, then move the state directory aside to start a new log"


def require_continued(state: StateDirectory, listed: Sequence[Segment], head: Head) -> None:
    """Refuse, before anything is touched, to continue a log that lost what this user saw of it.

    Raises:
        AuditUnavailable: the log is shorter, or another one, than the checkpoint that was seen says.
    """
    known = seen.of(state.log_id)
    if known is None:
        seen.begin(state)
    if known is None or known.head is None:
        return
    before, size = known.head, head.seq + 1
    if before.size > size:
        raise AuditUnavailable(
            f"the log ends at record #{head.seq}, but record #{before.size - 1} was there before",
            advice=MOVE_ASIDE,
        )
    snapshot = Snapshot(tuple(listed), size, sealed=False)
    try:
        same = has_root(state, snapshot, before.size, before.root)
    except LookupError as problem:
        raise AuditUnavailable(
            f"the first {before.size} records are gone: {problem}", advice=MOVE_ASIDE
        ) from None
    if not same:
        raise AuditUnavailable(
            f"the first {before.size} records are not those that were there before", advice=MOVE_ASIDE
        )
