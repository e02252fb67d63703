"""Verifying a log of real runs, against a bare check of its chain: find each link, compare, hash the line.

Times are by the clock. Where others use the processors too, processor time says more: it is that of all
processes together, their start included.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from licet.record import Entry
from licet.state import StateDirectory
from licet_audit.verification.workers import processors

Show = Callable[[str, float, str, float, str], None]
Compare = Callable[[Callable[[], object], Callable[[], object], int], tuple[float, float]]

_BATCH = 1000


def compare_verifying(show: Show, compare: Compare, records: int) -> None:
    """Make a log of `records` records from those of real runs, each of other code, and verify it."""
    from licet_audit.reader import LogReader
    from licet_audit.verification.verify import Wanted, verify

    state = asyncio.run(_made(records))
    segments = sorted((state.path / "log").glob("*.jsonl"))
    assert LogReader(state).verify().status == "proven"

    def bare() -> None:
        prev = b""
        for segment in segments:
            with segment.open("rb") as file:
                for whole in file:
                    line = whole[:-1]
                    at = line.find(b'"prev":"') + 8
                    assert line[at : at + 64] == prev or not prev
                    prev = hashlib.sha256(b"\0" + line).hexdigest().encode()

    size = sum(segment.stat().st_size for segment in segments) / records
    for workers in dict.fromkeys((1, processors())):

        def checked() -> None:
            assert verify(state, Wanted(workers=workers)).status == "proven"  # noqa: B023

        ours, theirs = compare(checked, bare, 3)
        spent = min(_spent(checked) for _ in range(3)) / min(_spent(bare) for _ in range(3))
        show(
            f"verify {records} records of {size:.0f} B, {workers} processes",
            ours,
            "bare check of the chain",
            theirs,
            f"1.67x; speed {theirs / ours:.2f}; processor time {spent:.2f}x",
        )


def _spent(work: Callable[[], object]) -> float:
    """Seconds of processor time, those of processes that ended meanwhile included."""
    before = os.times()
    work()
    return sum(after - start for after, start in zip(os.times()[:4], before[:4], strict=True))


async def _made(records: int) -> StateDirectory:
    from licet import Runtime
    from licet.state import open_state
    from licet_audit.log import DurableLog
    from licet_audit.reader import LogReader

    async with Runtime() as runtime:
        for number in range(50):
            await runtime.run(f"import math\nprint({number}, math.sqrt({number}))")
        kept = runtime.state_path
    entries = [
        record.entry
        for record in LogReader(open_state(kept)).records()
        if record.entry.kind not in ("log", "probe")
    ]
    state = open_state(Path.cwd() / "big")
    log = DurableLog(state)
    try:
        batch = []
        for entry in _many(entries, records):
            batch.append(entry)
            if len(batch) == _BATCH:
                await log.append(batch)
                batch = []
        await log.append(batch)
    finally:
        await log.close()
    return state


def _many(entries: list[Entry], count: int) -> Iterator[Entry]:
    """Those entries over and over, each time as other runs."""
    names: dict[str, str] = {}
    for number in range(count):
        turn, place = divmod(number, len(entries))
        if place == 0:
            names = {entry.run_id: entry.run_id[:-8] + f"{turn:08d}" for entry in entries}
            names = {
                old: f"{new[:14]}{index:04d}{new[18:]}" for index, (old, new) in enumerate(names.items())
            }
        yield replace(entries[place], run_id=names[entries[place].run_id])
