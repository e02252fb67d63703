"""What OpenTelemetry sees of licet: spans and metrics, all made from records.

Rules this package keeps:

- spans and metrics are a view of records that are durable: nothing here decides, or is relied upon;
- the same pure functions make a span live and, later, from the log (`spans`), so both say the same;
- without OpenTelemetry in the program there is nobody to see a span: none is made and nothing imported;
- nothing that a provider, sampler, processor or exporter does (raise, hang, drop) reaches a run.
"""

from __future__ import annotations

import sys

RUN = "licet.run"
VERIFY = "licet.verify"

ROOT = "run"
CALL = "call"
"""Keys of spans in their run: of the whole, and, with its number, of a call."""


def is_loaded() -> bool:
    """Whether the program has OpenTelemetry."""
    return "opentelemetry.trace" in sys.modules or "opentelemetry.metrics" in sys.modules


def settle(seconds: float) -> bool:
    """Wait, for `seconds` at most, until what runs have shown so far is with OpenTelemetry."""
    emitter = sys.modules.get("licet.telemetry.emitter")
    return emitter is None or emitter.settle(seconds)


def show_unsigned(records: int) -> None:
    """Show how many durable records no checkpoint covers; for whoever makes the checkpoints of a log."""
    if not is_loaded():
        return
    from licet.telemetry import instruments
    from licet.telemetry import names as n
    from licet.telemetry.emitter import emitter

    emitter().do(lambda: instruments.measure([(n.UNSIGNED, records, {})], None))
