"""The program's tracer and instruments for licet, each made once for each provider."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from licet.telemetry.measures import Measure
from licet.telemetry.names import METRICS, SCHEMA_URL, SCOPE, Metric

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.metrics import Counter, Histogram, Meter, _Gauge
    from opentelemetry.trace import Tracer

    Instrument = Counter | Histogram | _Gauge

_ACTS = {"counter": "add", "gauge": "set", "histogram": "record"}
"""What an instrument is told an amount by."""


class _Made:
    """What was made last, and for which provider."""

    tracer: tuple[Any, Tracer] | None = None
    meter: tuple[Any, dict[str, Instrument]] | None = None


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
        act = getattr(instrument, _ACTS[metric.instrument])
        act(amount, attributes, context=context)


def _instruments() -> dict[str, Instrument]:
    from opentelemetry import metrics

    provider = metrics.get_meter_provider()
    if _Made.meter is None or _Made.meter[0] is not provider:
        meter = metrics.get_meter(SCOPE, _version(), provider, SCHEMA_URL)
        _Made.meter = provider, {metric.name: _made(meter, metric) for metric in METRICS}
    return _Made.meter[1]


def _made(meter: Meter, metric: Metric) -> Instrument:
    makes: dict[str, Callable[..., Instrument]] = {
        "counter": meter.create_counter,
        "gauge": meter.create_gauge,
        "histogram": meter.create_histogram,
    }
    return makes[metric.instrument](metric.name, unit=metric.unit, description=metric.meaning)


@cache
def _version() -> str:
    return version("licet")
