"""What of a line matters for verifying it; all else in it is passed over, and no object is made of it.

Rules this module keeps:

- types are those that `licet.record.from_json` demands, so what is no record is none here either;
- fields stand in the order of the canonical spelling, in which they are found fastest.
"""

from __future__ import annotations

from typing import Any

import msgspec


class Nothing(msgspec.Struct, gc=False):
    """An object, whatever is in it."""


class Body(msgspec.Struct, gc=False):
    """What of a body says what a run may do, does or did."""

    allowed: Any = None
    call_digest: Any = None
    effect: Any = msgspec.UNSET
    executed: Any = None
    outcome: Any = None
    plan_digest: Any = None
    sequence: Any = None
    state: Any = None
    termination: Any = None


class Fields(msgspec.Struct, gc=False):
    """What matters of a record. Those of `log` and of `approval` say more, see `events` and `approvals`."""

    body: Body
    kind: str
    log: str
    mono_ns: str
    prev: str
    run_id: str
    seq: int
    time: str
    v: int
    writer: Nothing
    kept: dict[str, Any] | None = None
    phase: str | None = None
    span_id: str | None = None
    trace_id: str | None = None
