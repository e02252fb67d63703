"""Reading: in order, without a trace, and never half a batch."""

import asyncio
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from licet.errors import AuditUnavailable, UsageError
from licet.record import Entry, Record
from licet.state import StateDirectory
from licet_audit.claims import Verification
from licet_audit.log import DurableLog
from licet_audit.reader import LogReader

Append = Callable[..., list[Record]]
Make = Callable[..., Entry]


def verify(state: StateDirectory) -> Verification:
    return LogReader(state).verify()


def test_reading_a_damaged_log_names_the_place(state: StateDirectory, segment: Path) -> None:
    lines = segment.read_bytes().splitlines(keepends=True)
    segment.write_bytes(b"".join([*lines[:3], b"x\n", *lines[4:]]))
    read = []
    with pytest.raises(AuditUnavailable, match=f"the line at byte {sum(map(len, lines[:3]))} of"):
        read.extend(LogReader(state).records())
    records: Iterator[Record] = LogReader(state).records()
    assert [next(records).seq for _ in range(3)] == [0, 1, 2]


def test_the_records_of_a_run_are_found_by_the_start_of_its_id(
    state: StateDirectory, append: Append, entry: Make
) -> None:
    append([entry(run_id="01AB"), entry(run_id="01AC"), entry("result", "01AB")])
    found = LogReader(state).records_of("01AB")
    assert [(one.entry.kind, one.entry.run_id) for one in found] == [("request", "01AB"), ("result", "01AB")]
    with pytest.raises(UsageError, match="`01` may mean `01AB` or `01AC`"):
        LogReader(state).records_of("01")
    with pytest.raises(UsageError, match="no run in this log has an id that starts with `02`"):
        LogReader(state).records_of("02")


def test_reading_writes_nothing(state: StateDirectory, segment: Path) -> None:
    def seen() -> dict[Path, tuple[int, int]]:
        return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in state.path.rglob("*")}

    before = seen()
    assert verify(state).status == "proven"
    assert len(list(LogReader(state).records())) == 10
    assert seen() == before


def test_a_reader_beside_a_writer_sees_whole_batches(state: StateDirectory, entry: Make) -> None:
    async def run() -> None:
        log = DurableLog(state)
        await log.append([])
        stop = asyncio.Event()

        async def write() -> None:
            while not stop.is_set():
                await log.append([entry(text="x" * 500) for _ in range(5)])

        writing = asyncio.create_task(write())
        seen = [(await asyncio.to_thread(verify, state)) for _ in range(15)]
        stop.set()
        await writing
        await log.close()
        assert {result.status for result in seen} == {"proven"}
        assert {result.records % 5 for result in seen} == {1}
        assert all(a.records <= b.records for a, b in pairwise(seen))

    asyncio.run(run())
