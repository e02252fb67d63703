"""What dead writers leave: runs are closed once, torn ends are kept and recorded, no more is repaired."""

import asyncio
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from licet.errors import AuditUnavailable
from licet.record import Entry, Record
from licet.state import StateDirectory
from licet_audit.log import DurableLog
from licet_audit.reader import LogReader

Append = Callable[..., list[Record]]
Make = Callable[..., Entry]
PROGRAM = Path(__file__).with_name("writer_process.py")
DIE = """
import asyncio, os, sys
from pathlib import Path
from licet.record import Entry
from licet.state import open_state
from licet_audit.log import DurableLog
def entry(kind, phase=None, **body):
    return Entry(kind, "run", body, "2026-11-29T17:00:00.0Z", 1, phase=phase, trace_id="t")
call = {"sequence": 1, "tool": "refund", "call_digest": "d"}
steps = {
    "decision": entry("decision", effect="allow"),
    "before": entry("execution", "before"),
    "call": entry("tool_call", "before", **call),
    "called": entry("tool_call", "after", sequence=1),
    "result": entry("result", "after", termination="exited"),
}
log = DurableLog(open_state(Path(sys.argv[1])))
for name in sys.argv[2:]:
    asyncio.run(log.append([steps[name]]))
os.kill(os.getpid(), 9)
"""


def die_after(state: StateDirectory, *steps: str) -> None:
    died = subprocess.run([sys.executable, "-c", DIE, state.path, *steps], timeout=30, check=False)
    assert died.returncode == -9


def last_segment(state: StateDirectory) -> Path:
    return max((state.path / "log").iterdir())


def results(state: StateDirectory) -> list[Record]:
    return [record for record in LogReader(state).records() if record.entry.kind == "result"]


def test_an_unknown_run_is_closed_once(state: StateDirectory, append: Append) -> None:
    die_after(state, "decision", "before")
    assert len(list((state.path / "writers").iterdir())) == 1
    append([])
    (result,) = results(state)
    (execution,) = [one for one in LogReader(state).records() if one.entry.kind == "execution"]
    assert (result.entry.run_id, result.entry.phase, result.entry.trace_id) == ("run", "after", "t")
    assert result.entry.body == {
        "termination": "unknown",
        "success": False,
        "recovered": True,
        "instance": execution.writer["instance"],
        "execution_seq": execution.seq,
        "unknown_effects": [],
    }
    assert result.writer["instance"] != execution.writer["instance"]
    append([])
    assert results(state) == [result]
    assert list((state.path / "writers").iterdir()) == []


def test_a_tool_call_without_an_end_is_told(state: StateDirectory, append: Append) -> None:
    die_after(state, "before", "call")
    append([])
    (result,) = results(state)
    assert result.entry.body["unknown_effects"] == [
        {"seq": 2, "sequence": 1, "tool": "refund", "call_digest": "d"}
    ]


@pytest.mark.parametrize(
    ("steps", "terminations"),
    [
        (["decision"], []),
        (["before", "call", "called"], ["unknown"]),
        (["before", "result"], ["exited"]),
    ],
)
def test_only_runs_that_began_and_did_not_end_are_closed(
    state: StateDirectory, append: Append, steps: Sequence[str], terminations: list[str]
) -> None:
    die_after(state, *steps)
    append([])
    assert [result.entry.body["termination"] for result in results(state)] == terminations
    assert all(not result.entry.body.get("unknown_effects") for result in results(state))


def test_runs_of_the_living_are_left_alone(state: StateDirectory, append: Append, entry: Make) -> None:
    async def run() -> None:
        living = DurableLog(state)
        await living.append([entry("execution", "alive", "before")])
        await asyncio.to_thread(append, [entry()])
        assert results(state) == []
        await living.append([entry("result", "alive", "after", termination="exited")])
        await living.close()

    asyncio.run(run())
    assert [result.entry.body["termination"] for result in results(state)] == ["exited"]


def test_closing_with_an_open_run_leaves_it_for_the_next(
    state: StateDirectory, append: Append, entry: Make
) -> None:
    append([entry("execution", "cut short", "before")])
    append([entry()])
    assert [(one.entry.run_id, one.entry.body["termination"]) for one in results(state)] == [
        ("cut short", "unknown")
    ]


def test_two_that_recover_at_once_close_a_run_once(state: StateDirectory) -> None:
    die_after(state, "before")

    async def recover() -> None:
        logs = [DurableLog(state) for _ in range(4)]
        await asyncio.gather(*(log.append([]) for log in logs))
        await asyncio.gather(*(log.close() for log in logs))

    asyncio.run(recover())
    assert [one.entry.body["termination"] for one in results(state)] == ["unknown"]


def test_a_recovery_that_dies_after_writing_is_not_repeated(
    state: StateDirectory, append: Append, tmp_path: Path
) -> None:
    die_after(state, "before")
    shutil.copytree(state.path / "writers", tmp_path / "writers")
    append([])
    shutil.copytree(tmp_path / "writers", state.path / "writers", dirs_exist_ok=True)
    append([])
    assert len(results(state)) == 1


def test_a_writer_that_lived_long_is_recovered_from_its_oldest_open_run_on(
    state: StateDirectory, append: Append, entry: Make
) -> None:
    async def run() -> None:
        log = DurableLog(state, segment_bytes=2000)
        await log.append([entry("execution", "done", "before"), entry("result", "done", "after")])
        (start,) = await log.append([entry("execution", "open", "before")])
        records = [record for n in range(30) for record in await log.append([entry(n=n)])]
        (presence,) = (state.path / "writers").iterdir()
        assert int(presence.read_text()) == start.seq
        await log.append([entry("result", "open", "after", termination="exited")])
        for n in range(30):
            (last,) = await log.append([entry(n=n)])
        assert records[-1].seq < int(presence.read_text()) <= last.seq
        await log.append([entry("execution", "left", "before")])
        await log.close()

    asyncio.run(run())
    append([])
    assert [one.entry.run_id for one in results(state)] == ["done", "open", "left"]


@pytest.mark.parametrize("content", ["", "x", "99999999999999999999", "-1"])
def test_a_writer_that_died_before_its_number_was_written_is_removed(
    state: StateDirectory, append: Append, content: str
) -> None:
    die_after(state, "before")
    (state.path / "writers" / "0123456789abcdef").write_text(content)
    append([])
    assert len(results(state)) == 1
    assert list((state.path / "writers").iterdir()) == []


@pytest.mark.parametrize(
    "torn", [b"{", b'{"body":{},"kind":"dec', bytes(5000), b"\xff\xfe", b'{"body":{}} ' * 20_000]
)
def test_a_torn_tail_is_kept_and_recorded(
    state: StateDirectory, append: Append, entry: Make, torn: bytes
) -> None:
    append([entry(n=1)])
    whole = last_segment(state).read_bytes()
    last_segment(state).write_bytes(whole + torn)
    broken = LogReader(state).verify()
    assert (broken.status, broken.first_bad_seq, broken.first_bad_byte) == ("incomplete", 2, len(whole))
    assert [record.seq for record in LogReader(state).records()] == [0, 1]
    append([entry(n=2)])
    note, after = list(LogReader(state).records())[2:]
    assert after.entry.body == {"n": 2}
    (kept,) = (state.path / "quarantine").iterdir()
    assert kept.read_bytes() == torn
    assert note.entry.body == {
        "event": "torn_tail_quarantined",
        "bytes": len(torn),
        "sha256": hashlib.sha256(torn).hexdigest(),
        "file": f"quarantine/{kept.name}",
    }
    assert kept.suffix == ".torn"
    assert LogReader(state).verify().status == "proven"


def test_a_tail_that_was_set_aside_by_one_who_died_is_still_recorded(
    state: StateDirectory, append: Append
) -> None:
    append([])
    (state.path / "quarantine" / "seg-0-at-1-ab.pending").write_bytes(b"torn")
    append([])
    append([])
    assert [one.entry.body["event"] for one in LogReader(state).records()] == [
        "opened", "torn_tail_quarantined"
    ]  # fmt: skip
    assert [path.name for path in (state.path / "quarantine").iterdir()] == ["seg-0-at-1-ab.torn"]


def test_a_first_line_that_is_torn_leaves_an_empty_log(
    state: StateDirectory, append: Append, entry: Make
) -> None:
    (state.path / "log").mkdir()
    (state.path / "log" / "seg-00000000000000000000.jsonl").write_bytes(b'{"body"')
    append([entry(n=1)])
    assert [one.entry.body.get("event") for one in LogReader(state).records()] == [
        "torn_tail_quarantined", "opened", None
    ]  # fmt: skip
    assert LogReader(state).verify().status == "proven"


def test_a_torn_first_line_of_a_later_segment_goes_on_from_the_one_before(
    state: StateDirectory, append: Append, entry: Make
) -> None:
    append([entry(n=1)], segment_bytes=1)
    seq = [record.seq for record in LogReader(state).records()][-1] + 1
    (state.path / "log" / f"seg-{seq:020d}.jsonl").write_bytes(b"half")
    append([entry(n=2)])
    assert [record.seq for record in LogReader(state).records()] == list(range(seq + 2))
    assert LogReader(state).verify().status == "proven"


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda text: text[:-3] + b"x}\n", "is no record: "),
        (lambda text: text + b"not a record\n", "is no record: "),
        (
            lambda text: text + text.splitlines()[-1].replace(b'"seq":2', b'"seq":2.0') + b"\n",
            "is no record: ",
        ),
        (lambda text: text[:-1], "the log ends at record #1, but record #2 was there before"),
        (lambda text: text[:-20], "the log ends at record #1, but record #2 was there before"),
        (lambda text: b"", "the log ends at record #-1, but record #2 was there before"),
        (
            lambda text: text.replace(b'"n":2', b'"n":3'),
            "the first 3 records are not those that were there before",
        ),
    ],
)
def test_an_end_that_no_writer_leaves_is_refused_not_repaired(
    state: StateDirectory, append: Append, entry: Make, edit: Callable[[bytes], bytes], message: str
) -> None:
    append([entry(n=1), entry(n=2)])
    damaged = edit(last_segment(state).read_bytes())
    last_segment(state).write_bytes(damaged)
    with pytest.raises(AuditUnavailable) as caught:
        append([entry(n=3)])
    assert last_segment(state).read_bytes() == damaged
    assert list((state.path / "quarantine").iterdir()) == []
    assert message in caught.value.message
    assert caught.value.advice == (
        "run `licet audit verify`, then move the state directory aside to start a new log"
    )
    assert LogReader(state).verify().status in ("tampered", "incomplete")


def test_a_log_whose_pinned_record_was_rewritten_further_back_is_refused(
    state: StateDirectory, append: Append, entry: Make
) -> None:
    append([entry(n=1)])
    die_after(state, "decision")  # nobody pins this one
    text = last_segment(state).read_bytes()
    last_segment(state).write_bytes(text.replace(b'"n":1', b'"n":7'))
    with pytest.raises(AuditUnavailable, match="the first 2 records are not those that were there before"):
        append([entry(n=2)])


@pytest.mark.parametrize("what", ["link", "pipe"])
def test_what_is_no_tail_is_neither_read_nor_waited_for(
    state: StateDirectory, append: Append, segment: Path, entry: Make, what: str
) -> None:
    place = state.path / "quarantine" / "x.pending"
    if what == "link":
        place.symlink_to(segment)
    else:
        os.mkfifo(place)
    with pytest.raises(
        AuditUnavailable, match=r"x\.pending` (is a symbolic link|can't be used: not a plain)"
    ):
        append([entry()])
    place.unlink()
    append([entry()])
    assert LogReader(state).verify().status == "proven"


@pytest.mark.parametrize("count", [2, 2000])
def test_more_segments_without_a_record_than_a_death_leaves_are_refused(
    state: StateDirectory, append: Append, segment: Path, entry: Make, count: int
) -> None:
    for first in range(10, 10 + count):
        segment.with_name(f"seg-{first:020d}.jsonl").touch()
    with pytest.raises(AuditUnavailable, match="does not continue record"):
        append([entry()])
    result = LogReader(state).verify()
    assert (result.status, result.records) == ("tampered", 10)
