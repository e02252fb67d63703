"""What leaves the interpreter, made plain within bounds.

Rules this module keeps:

- Monty's own classes, and tuples with names, have a repr and an equality that walk their members without
  bound, so a value of 40 shared levels would never end; they are replaced before anything looks at them;
- the walk is iterative and within the budget of `licet.values`, which then judges all that is left.
"""

from __future__ import annotations

from typing import Any

from licet import values

_CONTAINERS = (list, dict, set, frozenset)
_SCALARS = (type(None), bool, int, float, str, bytes)
_SHOWN = 100


def plain(value: Any) -> Any:
    """Return `value` as plain data; what can't cross is marked (`Opaque`, `Omitted`)."""
    if type(value) in (type(None), bool, float):
        return value
    shaped = _shape(value)
    return shaped if type(shaped) is values.Opaque else values.decode(values.encode(shaped))


def _shape(value: Any) -> Any:
    """Copy the containers of `value` without foreign types, up to the budget."""
    root: list[Any] = [value]
    pending: list[tuple[Any, Any, int]] = [(root, 0, 0)]
    left = values.DEFAULT.nodes
    while pending:
        slots, index, level = pending.pop()
        item = slots[index]
        kind = type(item)
        left -= 1
        if left < 0 or level > values.DEFAULT.depth:
            slots[index] = values.Omitted("budget" if left < 0 else "depth")
        elif isinstance(item, tuple):
            slots[index] = _Tuple(item)
        elif kind in _CONTAINERS:
            pass
        elif kind.__module__ == "pydantic_monty" and hasattr(item, "attributes"):
            slots[index] = _instance(item)
    return root[0]


def _instance(item: Any) -> values.Opaque:
    return values.Opaque(item.name, item.name)
