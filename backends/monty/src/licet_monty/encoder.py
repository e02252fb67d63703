"""The encoder that runs inside the sandbox: a value to the wire form of `licet.values`, in Monty's Python.

Rules it keeps:

- iterative, within a budget of nodes, levels and bytes; a shared part is written out each time it is met, and
  a deep one costs more, since each container looks for itself among those around it;
- types are matched by the classes it is given, so that a program may call a variable `list`;
- what has no wire form is opaque: its type and its repr, as Monty writes them.
"""

from __future__ import annotations

TYPES = (bool, int, float, str, bytes, complex, list, tuple, dict, set, frozenset)
"""What the encoder is given as `types`, in this order."""

ENCODER = """
def __licet_encode__(value, nodes, depth, size, types):
    from base64 import b64encode
    from collections import deque
    from datetime import date, datetime, time, timedelta
    from decimal import Decimal
    from json import dumps
    bool, int, float, str, bytes, complex, list, tuple, dict, set, frozenset = types

    def open_(item):  # the tree of one value, the members still to be written, the bytes of its text
        match item:
            case None | bool():
                return item, None, 0
            case int() if -9007199254740992 <= item <= 9007199254740992:
                return item, None, 0
            case str():
                return item, None, item.count("")
            case float():
                return item if item - item == 0 else {"$type": "float", "value": f"{item!r}"}, None, 0
            case list() | deque():
                return [], item, 0
            case tuple():
                return {"$type": "tuple", "items": []}, item, 0
            case dict():
                used = 0
                for name in item:
                    match name:
                        case str() if name != "$type":
                            used = used + name.count("")
                        case _:
                            pairs = [[key, inner] for key, inner in item.items()]
                            return {"$type": "dict", "items": []}, pairs, 0
                return {}, item, used
            case set():
                return {"$type": "set", "items": []}, item, 0
            case frozenset():
                return {"$type": "frozenset", "items": []}, item, 0
            case int():
                digits = f"{item:x}"
                return {"$type": "int", "hex": digits}, None, digits.count("")
            case bytes():
                return {"$type": "bytes", "base64": b64encode(item).decode()}, None, item.count(b"")
            case complex():
                return {"$type": "complex", "items": []}, [item.real, item.imag], 0
            case datetime():
                return {"$type": "datetime", "value": item.isoformat()}, None, 0
            case date():
                return {"$type": "date", "value": item.isoformat()}, None, 0
            case time():
                return {"$type": "time", "value": item.isoformat()}, None, 0
            case timedelta():
                return {"$type": "timedelta", "items": [item.days, item.seconds, item.microseconds]}, None, 0
            case Decimal():
                return {"$type": "decimal", "value": f"{item}"}, None, 0
        name = ""
        shown = "<no repr>"
        try:
            shown = f"{item!r:.1000}"
            name = f"{type(item)!r:.200}"[8:-2]
        except:
            pass
        return {"$type": "opaque", "type": name, "repr": shown}, None, 1000

    root = [None]
    pending = [(value, root, 0, None, 0)]
    while pending:
        item, slots, key, outer, level = pending.pop()
        nodes = nodes - 1 - level // 8
        lost = "budget" if nodes < 0 or size <= 0 else None
        if lost is None:
            tree, members, used = open_(item)
            size = size - used
            if size < 0:
                lost = "budget"
            elif members is not None:
                above = outer
                while above is not None and above[0] is not item:
                    above = above[1]
                lost = "cycle" if above is not None else "depth" if level >= depth else None
        if lost is not None:
            slots[key] = {"$type": "omitted", "reason": lost, "count": None}
            continue
        slots[key] = tree
        if members is None:
            continue
        inside = (item, outer)
        tasks = []
        index = 0
        if tree == {}:
            for name, member in members.items():
                tree[name] = None
                tasks.append((member, tree, name, inside, level + 1))
        else:
            target = tree if tree == [] else tree["items"]
            for member in members:
                if index > nodes:
                    break
                target.append(None)
                tasks.append((member, target, index, inside, level + 1))
                index = index + 1
        tasks.reverse()
        pending.extend(tasks)
    return dumps(root[0])
"""
"""Defines `__licet_encode__(value, nodes, depth, size, types)`, which returns JSON text."""
