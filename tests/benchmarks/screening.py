"""Ten-line harmless programs through the static screen, against what parsing alone costs.

No text is seen twice, so that the screen's memory of reports is no help; a row of its own says what it gives.
"""

from __future__ import annotations

import ast
import itertools
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from licet.screen import screen

_HERE = Path(__file__).parent
_SOURCES = (
    _HERE.parent / "escapes" / "data" / "benign.jsonl",
    _HERE.parents[2] / "shared" / "corpus" / "external" / "mbpp_sanitized.jsonl",
)
_LINES = range(8, 13)


def programs() -> list[str]:
    """All programs of about ten lines in the sets that are here."""
    rows = [json.loads(line) for path in _SOURCES if path.exists() for line in path.open(encoding="utf-8")]
    return sorted({row["code"] for row in rows if len(row["code"].strip().splitlines()) in _LINES})


def _fresh(codes: list[str]) -> Iterator[list[str]]:
    """The same programs again and again, each time with another comment at the end."""
    return ([f"{code}\n# {turn}" for code in codes] for turn in itertools.count())


def seconds(works: dict[str, Callable[[str], object]], codes: list[str], rounds: int) -> dict[str, float]:
    """Seconds a program: the least of all rounds for each, averaged. All works take turns at each program."""
    least = {name: [float("inf")] * len(codes) for name in works}
    for fresh in itertools.islice(_fresh(codes), rounds):
        for index, code in enumerate(fresh):
            for name, work in works.items():
                began = time.perf_counter()
                work(code)
                least[name][index] = min(time.perf_counter() - began, least[name][index])
    return {name: sum(times) / len(times) for name, times in least.items()}


def compare_screens(rounds: int) -> None:
    """Print what each step costs, as a rate and in ratio to `ast.parse`."""
    codes = programs()
    works: dict[str, Callable[[str], object]] = {
        "ast.parse": ast.parse,
        "compile": lambda code: compile(code, "<benchmark>", "exec"),
        "screen, text never seen": screen,
        "screen, the same text again": screen,
    }
    length, load = sum(map(len, codes)) // len(codes), os.getloadavg()[0]
    print(f"{len(codes)} programs of {length} characters; load {load:.1f}")
    taken = seconds(works, codes, rounds)
    for name, each in taken.items():
        ratio = each / taken["ast.parse"]
        print(
            f"{name:<40}{each * 1e6:9.1f} µs{1 / each:12.0f} a second{ratio:9.2f}x   (goal 20,000 a second)"
        )
