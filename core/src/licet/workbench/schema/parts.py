"""What schemas are made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Schema = dict[str, Any]


def ref(name: str, description: str | None = None) -> Schema:
    """What stands under `name` in the definitions."""
    found: Schema = {"$ref": f"#/$defs/{name}"}
    return found | ({"description": description} if description else {})


def closed(properties: Mapping[str, Any], required: list[str] | None = None, **more: Any) -> Schema:
    """A mapping with these keys and no others."""
    found: Schema = {"type": "object", "properties": dict(properties), "additionalProperties": False, **more}
    return found | ({"required": required} if required else {})


def listed(item: Schema, description: str | None = None, **more: Any) -> Schema:
    """A list of `item`."""
    found: Schema = {"type": "array", "items": item, **more}
    return found | ({"description": description} if description else {})


def either(one: Schema, other: Schema, description: str | None = None) -> Schema:
    """One of two."""
    found: Schema = {"anyOf": [one, other]}
    return found | ({"description": description} if description else {})


def one_or_more(item: Schema, description: str | None = None) -> Schema:
    """An item, or a list of some."""
    return either(item, listed(item, minItems=1), description)


def words(known: Iterable[str], description: str) -> Schema:
    """One of some words."""
    return {"enum": [str(word) for word in known], "description": description}


TEXT: Schema = {"type": "string"}
