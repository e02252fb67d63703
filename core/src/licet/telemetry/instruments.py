"""The program's tracer and instruments for licet, each made once for each provider."""

from __future__ import annotations

import sys
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from licet.telemetry.measures import Measure
from licet.telemetry.names import METRICS, SCHEMA_URL, SCOPE, Metric

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.metrics import Counter, Histogram, Meter
    from opentelemetry.trace import Tracer


class _Made:
    """What was made last, and for which provider."""

    tracer: tuple[Any, Tracer] | None = None
    meter: tuple[Any, dict[str, Counter | Histogram]] | None = None


def tracer() -> Tracer | None:
    """The program's tracer, None if it has none."""
    if "opentelemetry.trace" not in sys.modules:
        return None
    from opentelemetry import trace

    provider = trace.get_tracer_provider()
    if _Made.tracer is None or _Made.tracer[0] is not provider:
        _Made.tracer = provider, trace.get_tracer(SCOPE, _version(), provider, SCHEMA_URL)
    return _Made.tracer[1]


def measure(measures: list[Measure], context: Context | None) -> None:
    """Hand measures to the program's meter; `context` lets it keep an example with its span."""
    if "opentelemetry.metrics" not in sys.modules:
        return
    instruments = _instruments()
    for metric, amount, attributes in measures:
        instrument: Any = instruments[metric.name]
        act = instrument.add if metric.instrument == "counter" else instrument.record
        act(amount, attributes, context=context)


def _instruments() -> dict[str, Counter | Histogram]:
    from opentelemetry import metrics

    provider = metrics.get_meter_provider()
    if _Made.meter is None or _Made.meter[0] is not provider:
        meter = metrics.get_meter(SCOPE, _version(), provider, SCHEMA_URL)
        _Made.meter = provider, {metric.name: _made(meter, metric) for metric in METRICS}
    return _Made.meter[1]


def _made(meter: Meter, metric: Metric) -> Counter | Histogram:
    make = meter.create_counter if metric.instrument == "counter" else meter.create_histogram
    return make(metric.name, unit=metric.unit, description=metric.meaning)


@cache
def _version() -> str:
    return version("licet")
