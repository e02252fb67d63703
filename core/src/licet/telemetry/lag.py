"""The metric of what the log has not signed yet, shown by whoever makes its checkpoints.

Rules this module keeps: without OpenTelemetry in the program nothing is done; with it, the emitter's thread
does it.
"""

from __future__ import annotations

from licet import telemetry


def show_unsigned(records: int) -> None:
    """Show how many durable records no checkpoint covers."""
    if not telemetry.is_loaded():
        return
    from licet.telemetry import instruments
    from licet.telemetry import names as n
    from licet.telemetry.emitter import emitter

    emitter().do(lambda: instruments.measure([(n.UNSIGNED, records, {})], None))
