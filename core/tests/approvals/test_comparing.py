"""The difference to what was approved last: complete, and made in bounded time."""

from __future__ import annotations

import time
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from licet.approvals.comparing import difference

LINES = st.lists(st.sampled_from(["a", "b", "c", "", "-x", "@@ -1 +1 @@"]), max_size=30)


def applied(before: str, diff: str) -> str:
    """The slow reference: `before` with each hunk of `diff` done to it, line by line."""
    old, new, at = before.split("\n"), [], 0
    for line in diff.split("\n")[2:]:
        if line.startswith("@@ "):
            start, count = map(int, line.split(" ")[1][1:].split(","))
            start = start - 1 if count else start
            new += old[at:start]
            at = start
        elif line[0] == "+":
            new.append(line[1:])
        else:
            assert old[at] == line[1:]
            new += [] if line[0] == "-" else [old[at]]
            at += 1
    return "\n".join(new + old[at:])


@given(LINES, LINES)
def test_the_difference_turns_one_into_the_other(before: list[str], after: list[str]) -> None:
    old, new = "\n".join(before), "\n".join(after)
    diff = difference({"code": old}, {"code": new})
    assert (diff == "") == (old == new)
    assert not diff or applied(old, diff) == new


def test_parts_that_are_missing_or_no_text_are_compared_too() -> None:
    diff = difference({"code": "1"}, {"code": "1", "stdin": {"$type": "bytes", "base64": "/w=="}})
    assert diff == (
        '--- stdin approved before\n+++ stdin now\n@@ -0,0 +1,2 @@\n+$type = "bytes"\n+base64 = "/w=="'
    )


def test_a_separator_that_is_no_line_feed_makes_no_line() -> None:
    diff = difference({"code": "a"}, {"code": "a\u2028+b\r\x0b"})
    assert diff.split("\n")[2:] == ["@@ -1,1 +1,1 @@", "-a", "+a\u2028+b\r\x0b"]


def test_one_change_in_a_long_text_is_small() -> None:
    lines = [f"line {number}" for number in range(50_000)]
    changed = [*lines[:40_000], "other", *lines[40_001:]]
    diff = difference({"code": "\n".join(lines)}, {"code": "\n".join(changed)}).split("\n")
    assert (diff[2], len(diff)) == ("@@ -39998,7 +39998,7 @@", 11)


def test_what_takes_long_to_compare_is_told_as_replaced() -> None:
    old = [f"l{n % 100}" if n % 2 else f"u{n}" for n in range(100_000)]
    new = [f"l{n * 7 % 100}" if n % 2 else f"v{n}" for n in range(100_000)]
    began = time.process_time()
    diff = difference({"code": "\n".join(old)}, {"code": "\n".join(new)})
    assert time.process_time() - began < 5
    assert applied("\n".join(old), diff) == "\n".join(new)
    signs = [line[0] for line in diff.split("\n")[3:]]
    assert [one for one, next_one in pairwise((*signs, "")) if one != next_one] == ["-", "+"]
