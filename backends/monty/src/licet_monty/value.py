"""The value of a run, written as text inside the sandbox and read back on the host.

Rules this module keeps:

- the guest writes the wire form of `licet.values`, within its budget, in the Python that Monty knows; the
  host reads it as what it is: text of an enemy;
- types are matched by inputs of the session, so that a program which calls a variable `list` is served too;
- what has no wire form crosses as `Opaque`, with the repr that Monty writes.
"""

from __future__ import annotations

import datetime
import decimal
from typing import Any

from licet import values
from licet_monty.trailing import VALUE

MOST_TEXT = 64 << 20
REPR_LIMIT = 10_000

INPUTS: dict[str, Any] = {
    "__licet_types__": (bool, int, float, str, bytes, complex, list, tuple, dict, set, frozenset),
    "__licet_library__": (
        datetime.datetime,
        datetime.date,
        datetime.time,
        datetime.timedelta,
        decimal.Decimal,
    ),
    "__licet_budget__": (values.DEFAULT.nodes, values.DEFAULT.depth, values.DEFAULT.bytes),
}
"""What `ENCODER` needs."""

ENCODER = '''
def __licet_encode__(value, nodes, depth, size, types):
    from base64 import b64encode
    from collections import deque
    from datetime import date, datetime, time, timedelta
    from decimal import Decimal
    from json import dumps
    bool, int, float, str, bytes, complex, list, tuple, dict, set, frozenset = types
    root = [None]
    pending = [(value, root, 0, None, 0)]
    while pending:
        item, slots, key, outer, level = pending.pop()
        nodes = nodes - 1
        tree = None
        members = None
        match item:
            case _ if nodes < 0:
                tree = {"$type": "omitted", "reason": "budget", "count": None}
            case None | bool():
                tree = item
            case int() if -9007199254740992 <= item <= 9007199254740992:
                tree = item
            case int():
                digits = f"{item:x}"
                size = size - digits.count("")
                tree = {"$type": "int", "hex": digits}
            case float() if item - item == 0:
                tree = item
            case float():
                tree = {"$type": "float", "value": f"{item!r}"}
            case str():
                size = size - item.count("")
                tree = item
            case bytes():
                size = size - item.count(b"")
                if size >= 0:
                    tree = {"$type": "bytes", "base64": b64encode(item).decode()}
            case complex():
                tree = {"$type": "complex", "items": [None, None]}
                members = [item.real, item.imag]
            case datetime():
                tree = {"$type": "datetime", "value": item.isoformat()}
            case date():
                tree = {"$type": "date", "value": item.isoformat()}
            case time():
                tree = {"$type": "time", "value": item.isoformat()}
            case timedelta():
                tree = {"$type": "timedelta", "items": [item.days, item.seconds, item.microseconds]}
            case Decimal():
                tree = {"$type": "decimal", "value": f"{item}"}
            case list() | deque():
                tree = []
                members = item
            case tuple():
                tree = {"$type": "tuple", "items": []}
                members = item
            case set():
                tree = {"$type": "set", "items": []}
                members = item
            case frozenset():
                tree = {"$type": "frozenset", "items": []}
                members = item
            case dict():
                plain = True
                for name in item:
                    match name:
                        case str() if name != "$type":
                            size = size - name.count("")
                        case _:
                            plain = False
                tree = {} if plain else {"$type": "dict", "items": []}
                members = item
            case _:
                name = ""
                shown = "<no repr>"
                try:
                    shown = f"{item!r:.1000}"
                    name = f"{type(item)!r:.200}"
                except:
                    pass
                tree = {"$type": "opaque", "type": name, "repr": shown}
        if size < 0:
            tree = {"$type": "omitted", "reason": "budget", "count": None}
            members = None
            size = 0
        if members is not None:
            above = outer
            while above is not None and above[0] is not item:
                above = above[1]
            if above is not None:
                tree = {"$type": "omitted", "reason": "cycle", "count": None}
                members = None
            elif level >= depth:
                tree = {"$type": "omitted", "reason": "depth", "count": None}
                members = None
        slots[key] = tree
        if members is not None:
            inner = (item, outer)
            level = level + 1
            left = nodes
            tasks = []
            match item:
                case complex():
                    tasks = [(item.real, tree["items"], 0, inner, level), (item.imag, tree["items"], 1, inner, level)]
                case dict() if plain:
                    for name, member in item.items():
                        left = left - 1
                        if left < 0:
                            break
                        tree[name] = None
                        tasks.append((member, tree, name, inner, level))
                case dict():
                    for name, member in item.items():
                        left = left - 2
                        if left < 0:
                            break
                        pair = [None, None]
                        tree["items"].append(pair)
                        tasks.append((name, pair, 0, inner, level))
                        tasks.append((member, pair, 1, inner, level))
                case _:
                    target = tree
                    match tree:
                        case dict():
                            target = tree["items"]
                    index = 0
                    for member in members:
                        left = left - 1
                        if left < 0:
                            target.append({"$type": "omitted", "reason": "budget", "count": None})
                            break
                        target.append(None)
                        tasks.append((member, target, index, inner, level))
                        index = index + 1
            tasks.reverse()
            pending.extend(tasks)
    return dumps(root[0])
'''
