"""Time, sleep and randomness: all of it is the host's, and nothing of it the worker's."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from licet import plan as plans
from licet.backend import Outcome, execute
from licet_monty.backend import MontyBackend

INSTANT = 1_000_000_001.5


@pytest.fixture
def told(host: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What reads the clock of `host`, which goes on by one second at each reading."""
    asked: list[str] = []

    def now(what: str) -> float:
        asked.append(what)
        return INSTANT - 1 + len(asked)

    monkeypatch.setattr(host, "now", now)
    monkeypatch.setattr(host, "random_bytes", lambda count: b"\x07" * count)
    return asked


@pytest.fixture
def frozen(backend: MontyBackend, make_plan: Any, host: Any) -> Any:
    def run(code: str) -> Outcome:
        plan = plans.seal(replace(make_plan(code), clock="frozen"))
        return asyncio.run(execute(backend, plan, host))

    return run


CLOCKS: list[tuple[str, Any, list[str]]] = [
    ("time.time()", INSTANT, ["time.time"]),
    ("time.time_ns()", 1_000_000_001_500_000_000, ["time.time_ns"]),
    (
        "[time.monotonic(), time.perf_counter()]",
        [INSTANT, INSTANT + 1],
        ["time.monotonic", "time.perf_counter"],
    ),
    ("time.gmtime().tm_sec", 41, ["time.gmtime"]),
    ("str(datetime.now())", "2001-09-09 01:46:41.500000", ["datetime.now"]),
    ("str(datetime.now(timezone.utc))", "2001-09-09 01:46:41.500000+00:00", ["datetime.now"]),
    (
        "str(datetime.now(tz=timezone(timedelta(hours=-3))))",
        "2001-09-08 22:46:41.500000-03:00",
        ["datetime.now"],
    ),
    ("str(date.today())", "2001-09-09", ["date.today"]),
    ("[time.process_time(), time.thread_time()]", [0.0, 0.0], []),
]


@pytest.mark.parametrize(("code", "value", "asked"), CLOCKS)
def test_every_clock_is_the_hosts(
    run: Any, host: Any, told: list[str], code: str, value: Any, asked: Any
) -> None:
    outcome = run(f"import time\nfrom datetime import date, datetime, timedelta, timezone\n{code}", host)
    assert outcome.value == value
    assert told == asked


def test_random_bytes_are_the_hosts(run: Any, host: Any, told: list[str]) -> None:
    code = "import os, random\n[os.urandom(3), random.random(), random.random()]"
    first = run(code, host).value
    assert first[0] == b"\x07\x07\x07"
    assert run(code, host).value == first
    assert run(code).value[1:] != first[1:]


def test_random_numbers_are_there_where_nothing_can_be_asked(run: Any) -> None:
    code = "import random\nlist(map(lambda n: random.randint(n, n), [1, 2]))"
    assert run(code).value == [1, 2]


@pytest.mark.parametrize("what", ["now", "random_bytes"])
def test_a_host_that_fails_ends_the_run_past_the_code(
    run: Any, host: Any, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    def fails(about: object) -> Any:
        if about == 32:  # what the generator starts from
            return b"\x07" * 32
        raise LookupError(what)

    monkeypatch.setattr(host, what, fails)
    code = "import os, time\ntry:\n    time.time()\n    os.urandom(3)\nexcept BaseException:\n    pass"
    with pytest.raises(LookupError, match=what):
        run(code, host)


NAPS = """
import asyncio
done = []
async def nap(number, seconds):
    await asyncio.sleep(seconds / 2)
    await asyncio.sleep(seconds / 2)
    done.append(number)
async def naps(*all):
    await asyncio.gather(*[nap(number, seconds) for number, seconds in enumerate(all)])
"""


@pytest.mark.parametrize(
    ("naps", "order"), [("3, 1, 2", [1, 2, 0]), ("10.0**9, 5, 5", [1, 2, 0]), ("1.5, 2, 1", [2, 0, 1])]
)
def test_sleeps_under_a_frozen_clock_end_at_once_and_in_order(
    frozen: Any, naps: str, order: list[int]
) -> None:
    outcome = frozen(f"{NAPS}await naps({naps})\ndone")
    assert (outcome.termination.value, outcome.value) == ("exited", order)


def test_a_clock_can_not_be_read_where_nothing_can_be_asked(run: Any) -> None:
    outcome = run("import time\nlist(map(lambda _: time.time(), [1]))")
    assert outcome.error.type == "NotImplementedError"
    assert outcome.detail == (
        "read the clock in a loop or a comprehension, not from inside map, sorted or filter, "
        "nor in a method such as __repr__"
    )
