"""Whether an exception of the code comes of what CPython has and Monty lacks, told from its words.

Rules this module keeps:

- the words are the code's to choose, so the answer advises and decides nothing;
- only built-in types and modules that Monty knows are looked up; nothing else that code names is imported.
"""

from __future__ import annotations

import builtins
import re
from importlib import import_module

from licet_monty.language import MODULES

_MEMBER = re.compile(r"'(\w{1,60})' object has no attribute '(\w{1,60})'")
_OF_MODULE = re.compile(
    r"module '(?P<a>\w{1,60})' has no attribute '(?P<b>\w{1,60})'"
    r"|cannot import name '(?P<d>\w{1,60})' from '(?P<c>\w{1,60})'(?: \(.*\))?"
)


def member_lacked(kind: str, message: str) -> str | None:
    """The member of a type or module that an exception misses and CPython has, such as `str.translate`."""
    if kind not in ("AttributeError", "ImportError"):
        return None
    if (found := _MEMBER.fullmatch(message)) is not None:
        owner, name = found.groups()
        there = isinstance(getattr(builtins, owner, None), type) and hasattr(getattr(builtins, owner), name)
        return f"{owner}.{name}" if there else None
    if (found := _OF_MODULE.fullmatch(message)) is not None:
        owner, name = (found["a"] or found["c"]), (found["b"] or found["d"])
        there = owner in MODULES and hasattr(import_module(owner), name)
        return f"{owner}.{name}" if there else None
    return None
