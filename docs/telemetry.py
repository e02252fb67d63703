"""Writes `docs/reference/telemetry.md` from the code: `uv run python docs/telemetry.py`.

`page()` is its text; a test compares it with the page in the repository.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from licet.telemetry.names import ATTRIBUTES, METRICS, SCHEMA_URL, SPANS, STEPS
from licet.telemetry.values import MOST_ATTRIBUTES, MOST_CHARACTERS, MOST_ITEMS

PAGE = Path(__file__).parent / "reference" / "telemetry.md"

_INTRODUCTION = f"""\
# Telemetry

<!-- Generated from the code by `uv run python docs/telemetry.py`; edit that, or what it reads. -->

All names that licet gives to OpenTelemetry. Names that do not begin with `licet.` are those of the semantic
conventions; the schema is pinned to `{SCHEMA_URL}` (`gen_ai.*` is still in development there).

Spans and metrics are a **view** of records that are durable; [records](trail.md) are the truth. They are
made where the program has loaded OpenTelemetry, for its own provider, sampler and views, and cost nothing
where it has not. No sampler, no `OTEL_SDK_DISABLED`, no processor or exporter that raises, drops, hangs or is
killed can cost a record, fail a run or hold one up: a thread of its own talks to OpenTelemetry, and a run
waits for the ids of its span alone, 50 ms at most and less each time that it was in vain
([ADR 31](../adr/0031-views-on-a-thread-of-their-own.md)). What is lost live comes with
[an export](../how-to/send-the-trail-elsewhere.md), which makes the same spans from the log.

A span has at most {MOST_ATTRIBUTES} attributes, a text {MOST_CHARACTERS} characters (`…` where it is cut), a
list {MOST_ITEMS} items. What leads to the record comes last, so that a limit of the SDK evicts it last. Where
`OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT` would cut a hash, hashes are left out.

The status is ERROR, with `error.type`, for faults of a backend or of the log alone. A denial, a limit and an
exception of the code leave it unset.
"""

_ENDING = """\
## Metrics

Their attributes have few values: never a subject, a path, the name of a tool or what code chose. Durations
are in seconds. Views and exporters are the program's.
"""


def page() -> str:
    """The whole page."""
    return "\n".join((_INTRODUCTION, *_spans(), "", *_attributes(), "", _ENDING, *_metrics(), ""))


def _spans() -> Iterator[str]:
    yield "## Spans\n"
    yield "| span | what it is | record |"
    yield "|---|---|---|"
    records = {name: kind for kind, name in STEPS.items()}
    for name, meaning in SPANS.items():
        kind = records.get(name.removesuffix(" NAME"))
        yield f"| `{name}` | {meaning} | {f'`{kind}`' if kind else ''} |"


def _attributes() -> Iterator[str]:
    yield "## Attributes\n"
    yield "| attribute | type | what it means |"
    yield "|---|---|---|"
    yield from (f"| `{one.name}` | {one.type} | {one.meaning} |" for one in ATTRIBUTES.values())


def _metrics() -> Iterator[str]:
    yield "| metric | instrument | unit | what it says | attributes |"
    yield "|---|---|---|---|---|"
    for one in METRICS:
        about = ", ".join(f"`{name}`" for name in one.attributes)
        yield f"| `{one.name}` | {one.instrument} | `{one.unit}` | {one.meaning} | {about} |"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
