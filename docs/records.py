"""Writes `docs/reference/records.md` and `record.schema.json` from the code: `uv run python docs/records.py`.

`page()` and `schema()` are their texts; a test compares them with the files in the repository.
"""

from __future__ import annotations

import json
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from licet.record_schema import BODIES, Envelope
from licet_audit.events import EVENTS
from pydantic import BaseModel, TypeAdapter

REFERENCE = Path(__file__).parent / "reference"
PAGE = REFERENCE / "records.md"
SCHEMA = REFERENCE / "record.schema.json"

_INTRODUCTION = """\
# Fields of records

<!-- Generated from the code by `uv run python docs/records.py`; edit that, or what it reads. -->

Every record is one line of canonical JSON ([records and spans](trail.md)). This page lists all of its
fields; [`record.schema.json`](record.schema.json) says the same to programs. Readers dispatch on `v` and
leave alone what they don't know. Numbers with a fraction are texts. Together they answer what audit
standards ask of a record: what happened (`kind`, `phase`, `body`), when (`time`, `mono_ns`, `seq`),
where (`writer`), for whom and who says so (`subject`, `asserted_by`), and how it ended (`result`).
"""


def page() -> str:
    """The text of the page."""
    return "\n".join((_INTRODUCTION, *_envelope(), *_bodies(), *_events()))


def schema() -> str:
    """The JSON Schema of a record."""
    kinds = [
        _variant(kind, phase, [model.__name__ for model in models])
        for (kind, phase), models in BODIES.items()
    ]
    kinds.append(_variant("log", None, [model.__name__ for model in EVENTS]))
    every = {model.__name__: model for models in (*BODIES.values(), EVENTS) for model in models}
    definitions: dict[str, Any] = {}
    for name, model in every.items():
        found = TypeAdapter(model).json_schema(ref_template="#/$defs/{model}")
        definitions |= found.pop("$defs", {})
        definitions[name] = found
    whole = Envelope.model_json_schema(ref_template="#/$defs/{model}")
    definitions |= whole.pop("$defs", {})
    content = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **whole,
        "title": "a record of licet",
        "oneOf": kinds,
        "$defs": dict(sorted(definitions.items())),
    }
    return json.dumps(content, indent=1, ensure_ascii=True) + "\n"


def _variant(kind: str, phase: str | None, bodies: list[str]) -> dict[str, Any]:
    references = [{"$ref": f"#/$defs/{name}"} for name in bodies]
    properties: dict[str, Any] = {"kind": {"const": kind}, "body": {"anyOf": references}}
    if phase is not None:
        return {"properties": {**properties, "phase": {"const": phase}}, "required": ["phase"]}
    return {"properties": properties, "not": {"required": ["phase"]}}


def _envelope() -> Iterator[str]:
    yield "## Around every body\n"
    yield from _table(Envelope)


def _bodies() -> Iterator[str]:
    for (kind, phase), models in BODIES.items():
        yield f"## `{kind}`{f', {phase}' if phase else ''}\n"
        for model in models:
            yield f"{_named(model)}{model.__doc__}\n"
            yield from _table(model)


def _named(model: type[BaseModel]) -> str:
    """The events that a body tells, where it has one."""
    event = model.model_fields.get("event")
    return f"**{_spelled(event.annotation)}**: " if event else ""


def _events() -> Iterator[str]:
    yield "## `log`\n"
    yield "What the log says of itself, by `event`.\n"
    for model in EVENTS:
        yield f"**`{model.model_fields['event'].default}`**: {model.__doc__}\n"
        yield from _table(model)


def _table(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    yield "| field | type | meaning |"
    yield "|---|---|---|"
    yield from _rows(model, prefix)
    yield ""


def _rows(model: type[BaseModel], prefix: str) -> Iterator[str]:
    for name, field in model.model_fields.items():
        if name == "event":
            continue
        inner = _part(field.annotation)
        meaning = field.description or (inner.__doc__ if inner else "") or ""
        text = _spelled(field.annotation) + ("" if field.is_required() else ", may be missing")
        yield f"| `{prefix}{field.alias or name}` | {text} | {' '.join(meaning.split())} |"
        if inner is not None:
            yield from _rows(inner, f"{prefix}{name}[]." if "list" in text else f"{prefix}{name}.")


def _part(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = [part for one in typing.get_args(annotation) if (part := _part(one))]
    return found[0] if found else None


_NAMES = {str: "text", int: "integer", bool: "true or false", type(None): "null", Any: "anything"}


def _spelled(annotation: Any) -> str:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Literal:
        return ", ".join(f"`{json.dumps(one) if isinstance(one, bool) else one}`" for one in arguments)
    if origin is list:
        return f"list of {_spelled(arguments[0])}"
    if origin is dict:
        return f"object of {_spelled(arguments[1])}"
    if arguments:
        return " or ".join(_spelled(one) for one in arguments)
    return _NAMES.get(annotation, "object")


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    SCHEMA.write_text(schema(), "utf-8")
