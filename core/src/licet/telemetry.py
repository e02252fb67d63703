"""Names of spans and attributes, and the tracer, all in one place.

Rules this module keeps:

- every name of ours begins with `licet.`; the schema they follow is `SCHEMA_URL`;
- spans are a view of records: nothing here decides or is relied upon;
- without OpenTelemetry in the program there is nobody to see a span, so none is made and nothing imported.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

SCHEMA_URL = "https://licet.invalid/schemas/1"

RUN = "licet.run"
VERIFY = "licet.verify"
STEPS = {
    "request": "licet.normalize",
    "decision": "licet.decide",
    "probe": "licet.probe",
    "selection": "licet.select",
    "authorization": "licet.authorize",
    "execution": "licet.execute",
    "tool_call": "licet.tool_call",
    "access": "licet.access",
    "result": "licet.result",
    "log": "licet.log",
}
"""The span of each kind of record."""

RUN_ID = "licet.run.id"
LOG = "licet.audit.log"
SEQ = "licet.audit.seq"
LEAF = "licet.audit.leaf"
PHASE = "licet.phase"
TERMINATION = "licet.termination"


def tracer() -> Tracer | None:
    """The program's tracer for licet, or None where the program has no OpenTelemetry."""
    if "opentelemetry.trace" not in sys.modules:
        return None
    from importlib.metadata import version

    from opentelemetry import trace

    return trace.get_tracer("licet", version("licet"), schema_url=SCHEMA_URL)


def attributes(kind: str, body: Mapping[str, Any]) -> Iterator[tuple[str, str | int | bool]]:
    """The scalars of a record's body as span attributes: `licet.decision.effect` and so on."""
    for key, value in body.items():
        if isinstance(value, (str, int)):
            yield f"licet.{kind}.{key}", value
