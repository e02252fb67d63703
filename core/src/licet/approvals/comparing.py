"""What is different from what was approved last: a unified diff of the parts that decide what runs.

Rules this module keeps:

- every difference of these parts is in it, whole; what is the same may be left out, as in any such diff;
- lines end at line feeds alone, so nothing inside a line can pass for two;
- parts that differ in too many lines to be compared in short time are told as replaced, all of them.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

_PARTS = ("code", "stdin", "inputs", "call")
_MOST_PAIRS = 250_000  # lines before times lines after
_CONTEXT = 3

_Step = tuple[Literal["replace", "delete", "insert", "equal"], int, int, int, int]


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """What changed between two documents in code, standard input, inputs and the call; empty if nothing."""
    found: list[str] = []
    for part in _PARTS:
        old, new = _lines(before.get(part)), _lines(after.get(part))
        if old != new:
            found += [f"--- {part} approved before", f"+++ {part} now", *_hunks(old, new)]
    return "\n".join(found)


def _lines(part: object) -> list[str]:
    """A part of a document as lines: a text as it is, a mapping one line a value, by its place."""
    if part is None:
        return []
    if isinstance(part, str):
        return part.split("\n")
    return [f"{place} = {json.dumps(value)}" for place, value in _leaves(part)]


def _leaves(part: object, place: str = "") -> list[tuple[str, object]]:
    if isinstance(part, Mapping):
        steps = sorted((f"{place}.{key}".removeprefix("."), inner) for key, inner in part.items())
    elif isinstance(part, Sequence) and not isinstance(part, str):
        steps = [(f"{place}[{index}]", inner) for index, inner in enumerate(part)]
    else:
        return [(place, part)]
    return [leaf for step, inner in steps for leaf in _leaves(inner, step)]


class _Steps(difflib.SequenceMatcher[str]):
    """From one list of lines to another, without a look at how they begin and end alike."""

    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
        super().__init__(None, (), ())
        first, last, least = 0, 0, min(len(old), len(new))
        while first < least and old[first] == new[first]:
            first += 1
        while last < least - first and old[-1 - last] == new[-1 - last]:
            last += 1
        ends = len(old) - last, len(new) - last
        steps: list[_Step] = [("replace", 0, ends[0] - first, 0, ends[1] - first)]
        if (ends[0] - first) * (ends[1] - first) <= _MOST_PAIRS:
            steps = difflib.SequenceMatcher(None, old[first : ends[0]], new[first : ends[1]]).get_opcodes()
        self._steps: list[_Step] = [
            ("equal", 0, first, 0, first),
            *((tag, a + first, b + first, c + first, d + first) for tag, a, b, c, d in steps),
            ("equal", ends[0], len(old), ends[1], len(new)),
        ]

    def get_opcodes(self) -> list[_Step]:
        return self._steps


def _hunks(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    for group in _Steps(old, new).get_grouped_opcodes(_CONTEXT):
        start, end = group[0], group[-1]
        yield f"@@ -{_span(start[1], end[2])} +{_span(start[3], end[4])} @@"
        for tag, old_start, old_end, new_start, new_end in group:
            if tag == "equal":
                yield from (f" {line}" for line in old[old_start:old_end])
                continue
            yield from (f"-{line}" for line in old[old_start:old_end])
            yield from (f"+{line}" for line in new[new_start:new_end])


def _span(start: int, end: int) -> str:
    """Where a hunk is: its first line and their number, or the line before it where it has none."""
    return f"{start + (end > start)},{end - start}"
