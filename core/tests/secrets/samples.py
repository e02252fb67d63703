"""Texts that a regular expression of Rust or Python matches, drawn at random and alike in every process."""

from __future__ import annotations

import random
import re
import string
import warnings
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

_PRINTABLE = [ord(c) for c in string.ascii_letters + string.digits + "-_+/ "]
_WORD = string.ascii_letters + string.digits + "_"
_KINDS = {
    op.CATEGORY_DIGIT: string.digits,
    op.CATEGORY_SPACE: " ",
    op.CATEGORY_WORD: _WORD,
    op.CATEGORY_NOT_DIGIT: string.ascii_letters,
    op.CATEGORY_NOT_SPACE: _WORD,
    op.CATEGORY_NOT_WORD: "-+/ ",
}
_SEVERAL = 16  # how much longer than it must be a repetition may get


def in_python(pattern: str) -> str:
    """`pattern` as Python spells it: the end is `\\Z`, and flags stand at the beginning of a group."""
    pattern = pattern.replace("[:alnum:]", "A-Za-z0-9")
    spelt: list[str] = []
    depth, opened, at, in_class = 0, [], 0, False
    while at < len(pattern):
        flags = re.compile(r"\(\?([a-z]+)\)").match(pattern, at)
        token = pattern[at : at + 2] if pattern[at] == "\\" else pattern[at]
        if in_class:
            in_class = token != "]"
        elif token == "[":
            in_class = True
            token = re.compile(r"\[\^?\]?").match(pattern, at)[0]  # type: ignore[index]
        elif flags:
            token, opened = flags[0], [*opened, depth]
            spelt.append(f"(?{flags[1]}:")
            at += len(token)
            continue
        elif token == "(":
            depth += 1
        elif token == ")":
            while opened and opened[-1] == depth:
                spelt.append(")")
                opened.pop()
            depth -= 1
        spelt.append({r"\z": r"\Z"}.get(token, token))
        at += len(token)
    return "".join(spelt) + ")" * len(opened)


def samples(pattern: str, count: int) -> list[str]:
    """`count` texts for `pattern`; what it says of its surroundings is not heeded."""
    draw = random.Random(pattern)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # `[[`, which Python may read as a set of sets one day
        parsed = parser.parse(in_python(pattern))
    return ["".join(map(chr, _sequence(parsed, draw, {}))) for _ in range(count)]


def _sequence(parsed: Any, draw: random.Random, groups: dict[int, list[int]]) -> list[int]:
    return [code for kind, value in parsed for code in _one(kind, value, draw, groups)]


def _one(kind: Any, value: Any, draw: random.Random, groups: dict[int, list[int]]) -> list[int]:
    if kind is op.LITERAL:
        return [value]
    if kind in (op.ANY, op.NOT_LITERAL):
        return [draw.choice([code for code in _PRINTABLE if code != value])]
    if kind is op.IN:
        return [draw.choice(_members(value))]
    if kind is op.BRANCH:
        return _sequence(draw.choice(value[1]), draw, groups)
    if kind is op.SUBPATTERN:
        groups[value[0]] = found = _sequence(value[3], draw, groups)
        return found
    if kind is op.ATOMIC_GROUP:
        return _sequence(value, draw, groups)
    if kind is op.GROUPREF:
        return groups.get(value, [])
    if kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
        least, most, repeated = value
        times = draw.randint(least, min(most, least + _SEVERAL))
        return [code for _ in range(times) for code in _sequence(repeated, draw, groups)]
    if kind in (op.AT, op.ASSERT, op.ASSERT_NOT):
        return []
    raise ValueError(f"{kind} is not known here")


def _members(value: Any) -> list[int]:
    members: set[int] = set()
    for kind, each in value:
        if kind is op.LITERAL:
            members.add(each)
        elif kind is op.RANGE:
            members.update(range(each[0], each[1] + 1))
        elif kind is op.CATEGORY:
            members.update(map(ord, _KINDS[each]))
    if value[0][0] is op.NEGATE:
        return [code for code in _PRINTABLE if code not in members]
    printable = [code for code in members if code in _PRINTABLE]
    return sorted(printable or members)
