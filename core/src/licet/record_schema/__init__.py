"""What stands in a record, field by field: the source of its JSON Schema and of its page.

Rules this module keeps:

- it describes what `bodies`, the runtime and the log write, and writes nothing; tests hold each written
  record against it;
- readers dispatch on `v`, and leave alone what they don't know; records are never rewritten;
- numbers with a fraction are texts, since a record holds no floats.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, Field

from licet.record_schema import approvals, before, running
from licet.record_schema.parts import Part


class Writer(Part):
    """The process that wrote a record."""

    host: str
    """The name of the host."""
    pid: int
    instance: str
    """Drawn at random when the process joined the log; tells apart processes whose numbers are the same."""
    version: str
    """Of `licet-audit`."""
    user: str | None = None
    """The account that the process ran as: `NAME (uid NUMBER)`."""
    boot: str | None = None
    """The start of the host's system that `mono_ns` counts from; null where the host doesn't say."""
    clock: Literal["synchronized", "unsynchronized", "unknown"] | None = None
    """What the host said of its wall clock when the process joined the log."""


class Envelope(Part):
    """What is around every body."""

    v: Literal[1]
    """The version of records."""
    log: str
    """The id of the log: 32 hexadecimal digits."""
    seq: int
    """The place in the log, from 0; with `log`, the id of the record."""
    prev: str
    """The leaf of the record before, in hexadecimal; empty for the first."""
    writer: Writer
    kind: str
    """What it says; `body` has the form of this kind."""
    phase: Literal["before", "after"] | None = None
    """`before` an effect or `after` it."""
    run_id: str
    """A ULID; empty for what the log says of itself."""
    time: str
    """RFC 3339 in UTC with nanoseconds, by the wall clock of the writer."""
    mono_ns: str
    """The writer's monotonic clock, in nanoseconds since its host started."""
    trace_id: str | None = None
    """Of the span around the run, where the program traces."""
    span_id: str | None = None
    kept: dict[str, str] = Field(default_factory=dict)
    """Commitments to content that is kept beside the log, by name."""
    body: dict[str, Any]
    """What the stage knew: see below, by `kind`."""


BODIES: Mapping[tuple[str, str | None], tuple[type[BaseModel], ...]] = {
    ("request", None): (before.Request,),
    ("decision", None): (before.Decision,),
    ("probe", "before"): (before.AttacksPlanned,),
    ("probe", "after"): (before.AttacksMade,),
    ("selection", None): (before.Selection,),
    ("authorization", None): (before.Authorization,),
    ("approval", None): (
        approvals.Asked,
        approvals.Answered,
        approvals.Granted,
        approvals.Over,
        approvals.Waiting,
        approvals.Resumed,
        approvals.Consuming,
        approvals.Consumed,
        approvals.Ended,
    ),
    ("execution", "before"): (running.Execution,),
    ("tool_call", "before"): (running.CallBefore,),
    ("tool_call", "after"): (running.CallAfter,),
    ("access", "before"): (running.ConnectionBefore,),
    ("access", None): (running.Access,),
    ("access", "after"): (running.ConnectionAfter,),
    ("commit", "before"): (running.Commit,),
    ("result", "after"): (running.Result, running.Refused, running.Lost),
}
"""What a body may be, by kind and phase; those of `log` are described by whoever keeps the log."""
