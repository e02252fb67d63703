"""What the tool objects of other frameworks take, and a function that takes it as Python would.

Rules this module keeps:

- a tool that is called by names alone (`execute(**arguments)`) gets the parameters that it declares, in
  their order: positions are mapped onto names, what is surplus or given twice is refused;
- nothing is filled in: an argument that a call leaves out is left out, and has the tool's own default;
- what declares no parameters is called as its own signature says.
"""

from __future__ import annotations

import datetime
import decimal
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

_WORDS: Mapping[str, Any] = {
    "str": str, "string": str, "int": int, "integer": int, "float": float, "number": float,
    "bool": bool, "boolean": bool, "bytes": bytes, "list": list, "array": list, "dict": dict,
    "object": dict, "datetime": datetime.datetime, "date": datetime.date, "Decimal": decimal.Decimal,
}  # fmt: skip
"""Types as the words in which Python and JSON Schema write them."""


def by_name(execute: Callable[..., Any], item: Any) -> Callable[..., Any]:
    """A function with the parameters that `item` declares, which calls `execute` by names.

    `execute` itself is returned where `item` declares none.

    Raises:
        ValueError: what it declares can't be understood.
    """
    declared = _declared(item)
    if declared is None:
        return execute
    taken = inspect.Signature(list(_in_order(declared)))

    def call(*args: Any, **kwargs: Any) -> Any:
        return execute(**taken.bind(*args, **kwargs).arguments)

    async def call_async(*args: Any, **kwargs: Any) -> Any:
        return await execute(**taken.bind(*args, **kwargs).arguments)

    handler: Any = call_async if inspect.iscoroutinefunction(execute) else call
    handler.__signature__ = taken
    return handler  # type: ignore[no-any-return]


def _declared(item: Any) -> list[inspect.Parameter] | None:
    for attribute in ("parameters", "input_schema", "inputSchema"):
        said = getattr(item, attribute, None)
        if isinstance(said, Mapping) and isinstance(said.get("properties"), Mapping):
            return list(_of_schema(said))
        if isinstance(said, (list, tuple)):
            return list(_of_specs(said))
    handler = getattr(item, "handler", None)
    if callable(handler):
        return [p for p in inspect.signature(handler).parameters.values() if p.kind in _NAMED]
    return None


_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def _of_schema(schema: Mapping[str, Any]) -> Iterator[inspect.Parameter]:
    required = schema.get("required") or ()
    for name, said in schema["properties"].items():
        kind = said.get("type") if isinstance(said, Mapping) else None
        yield _parameter(name, kind, required=name in required)


def _of_specs(specs: Iterable[Any]) -> Iterator[inspect.Parameter]:
    for one in specs:
        kinds = (getattr(one, attribute, None) for attribute in ("type_annotation", "annotation", "type"))
        kind = next((found for found in kinds if found is not None), None)
        yield _parameter(getattr(one, "name", None), kind, required=bool(getattr(one, "required", True)))


def _parameter(name: Any, kind: Any, *, required: bool) -> inspect.Parameter:
    if not isinstance(name, str):
        raise ValueError(f"one of its parameters has a `{type(name).__name__}` as its name")
    annotation = _WORDS.get(kind, Any) if isinstance(kind, str) else kind or Any
    default = inspect.Parameter.empty if required else None
    return inspect.Parameter(
        name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=annotation
    )


def _in_order(declared: Iterable[inspect.Parameter]) -> Iterator[inspect.Parameter]:
    """In their order; from one on that must be given and stands behind one that need not, by name alone."""
    optional = by_name_alone = False
    for one in declared:
        required = one.default is inspect.Parameter.empty
        optional |= not required
        by_name_alone |= (optional and required) or one.kind is inspect.Parameter.KEYWORD_ONLY
        yield one.replace(kind=inspect.Parameter.KEYWORD_ONLY) if by_name_alone else one
