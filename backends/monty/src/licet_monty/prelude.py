"""What a session is given before code that has tools: functions of theirs, written in Monty's own Python.

pydantic-monty builds the arguments of a call as host objects when they are read, and that can't be stopped
(see `trailing`). So code never calls the host itself. Each tool is a function inside the sandbox, which
writes its arguments as text there, within a budget, and hands text on. Rules this module keeps:

- only f-strings are handed on, which yield `str` whatever the code has done to any name;
- the two calls that do so are known by where they stand in this text, which is a feed of its own: calls of
  the code stand elsewhere, whatever they are named (see `calls`), so nobody else's arguments are ever read;
- built-ins are taken before code can rebind them; code that rebinds the names used here breaks its own calls.

`LATER`, `SETTLE`, `GATHER` and `AT` are what `callsites` writes into code.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from licet import values

from licet_monty.encoder import ENCODER, TYPES

NOW_CALL = "__licet_call__"
LATER_CALL = "__licet_begin__"
AT = "__licet_at__"
LATER = "__licet_later__"
PLACE = "__licet_place__"
SETTLE = "__licet_settle__"
GATHER = "__licet_gather__"

_BUDGET = values.DEFAULT
MOST_TEXT = 16 * _BUDGET.bytes
"""Characters of the text of one call's arguments, at most; a character of theirs may be escaped to twelve."""

_FLAT = 100_000  # characters and members of arguments that need no encoder
_HANDED_ON = (
    f"""f"{{name:.200}}", f"{{line!r:.20}}", f"{{__licet_arguments__(args, kwargs):.{MOST_TEXT}}}\""""
)

HEAD = f"""\
from asyncio import gather as __licet_gathered__
from functools import partial as __licet_partial__
from json import dumps as __licet_dumps__

__licet_exec__ = exec
__licet_type__ = type
__licet_space__ = {{}}
__licet_line__ = 0

def {AT}(line):
    global __licet_line__
    __licet_line__ = line
    return {{}}

def __licet_arguments__(args, kwargs):
    bool, int, float, str, *_ = __licet_types__
    left = {_FLAT} if "$type" not in kwargs else 0
    for item in (*args, *kwargs.values()):
        match item:
            case None | bool():
                left = left - 1
            case int() if -9007199254740992 <= item <= 9007199254740992:
                left = left - 1
            case float() if item - item == 0:
                left = left - 1
            case str():
                left = left - item.count("")
            case _:
                left = 0
        if left <= 0:
            break
    if left > 0:
        return __licet_dumps__([args, kwargs])
    if not __licet_space__:
        __licet_exec__(__licet_encoder__, __licet_space__)
    encode = __licet_space__["__licet_encode__"]
    return encode([[*args], kwargs], {_BUDGET.nodes}, {_BUDGET.depth}, {_BUDGET.bytes}, __licet_types__)

def __licet_now__(__licet_name__, *args, **kwargs):
    global __licet_line__
    line, __licet_line__ = __licet_line__, 0
    name = __licet_name__
    return {NOW_CALL}({_HANDED_ON})

async def {LATER}(*args, {PLACE}, **kwargs):
    name, line = {PLACE}
    return await {LATER_CALL}({_HANDED_ON})

async def {SETTLE}(given):
    if f"{{__licet_type__(given)!r:.30}}" == "<class 'coroutine'>":
        return await given
    return given

async def {GATHER}(*given):
    return await __licet_gathered__(*[{SETTLE}(one) for one in given])

"""

INPUTS: dict[str, Any] = {"__licet_types__": TYPES, "__licet_encoder__": ENCODER}
"""The inputs that `HEAD` needs."""


FEED = "<python-input-0>"
"""How Monty calls the first feed of a session: no other code can be said to stand there."""

PLACES = {HEAD.index(f"{name}("): name for name in (NOW_CALL, LATER_CALL)}
"""The byte offsets of the two calls of the host in `HEAD`."""


@dataclass(slots=True)
class Known:
    """What one session has been given: whether anything, whether `HEAD` before all else, and which tools."""

    fed: bool = False
    trusted: bool = False
    tools: set[str] = field(default_factory=set)


def definitions(tools: Iterable[str]) -> str:
    """Return the code that makes these names callable where `HEAD` was run."""
    return "".join(f'{name} = __licet_partial__(__licet_now__, "{name}")\n' for name in tools)
