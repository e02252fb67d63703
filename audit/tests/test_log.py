"""Appending: what is acknowledged is there, in one chain, whoever else appends."""

import asyncio
import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from licet.errors import AuditUnavailable, EntryRefused
from licet.locks import try_lock
from licet.plain import canonical
from licet.record import AuditLog, AuditReader, Entry, Record, leaf_hash
from licet.settings import Settings
from licet.state import StateDirectory, open_state
from licet_audit import checkpointer, plugin, seen, worker
from licet_audit.log import DurableLog
from licet_audit.notes import Head, Signer, origin_of
from licet_audit.reader import LogReader

from_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
PROGRAM = Path(__file__).with_name("writer_process.py")
Append = Callable[..., list[Record]]
Make = Callable[..., Entry]


def segments(state: StateDirectory) -> list[Path]:
    return sorted((state.path / "log").iterdir())


def claims(state: StateDirectory) -> dict[str, bool | None]:
    return {claim.name: claim.ok for claim in LogReader(state).verify().claims}


def test_a_new_log_says_that_it_was_opened_and_then_what_it_was_given(
    state: StateDirectory, append: Callable[..., list[Record]], entry: Callable[..., Entry]
) -> None:
    written = append([entry(n=1), entry(n=2)], [entry(n=3)])
    opened, *records = LogReader(state).records()
    assert (opened.entry.kind, opened.entry.body) == ("log", {"event": "opened", "log": state.log_id})
    assert records == written
    assert [record.seq for record in records] == [1, 2, 3]
    assert [record.prev for record in records] == [opened.leaf, records[0].leaf, records[1].leaf]
    assert set(records[0].writer) == {"host", "pid", "instance", "version", "user", "boot", "clock"}
    assert records[0].writer["pid"] == os.getpid()
    assert {record.log for record in records} == {state.log_id}


def test_the_file_holds_canonical_lines_and_is_private(
    state: StateDirectory, append: Callable[..., list[Record]], entry: Callable[..., Entry]
) -> None:
    (record,) = append([entry(text="ä\n")])
    (segment,) = segments(state)
    assert segment.name == "seg-00000000000000000000.jsonl"
    last = segment.read_bytes().splitlines()[-1]
    assert last == canonical(record.as_json())
    assert record.leaf == leaf_hash(last)
    assert stat.S_IMODE(segment.stat().st_mode) == 0o600
    assert stat.S_IMODE(segment.parent.stat().st_mode) == 0o700


def test_closing_leaves_only_the_log(
    state: StateDirectory, home: Path, append: Callable[..., list[Record]], entry: Callable[..., Entry]
) -> None:
    (record,) = append([entry()])
    assert sorted(path.name for path in state.path.iterdir()) == [
        "checkpoint", "id", "log", "log.lock", "log.vkey", "quarantine", "sync.lock", "tree.lock", "writers"
    ]  # fmt: skip
    assert list((state.path / "writers").iterdir()) == []
    assert list((state.path / "quarantine").iterdir()) == []
    known = seen.of(state.log_id)
    assert known is not None and known.head is not None and known.closed is not None
    assert (known.head.size, known.checkpoint) == (record.seq + 1, checkpointer.signed(state))
    assert [path.name for path in state.path.rglob("*.jsonl")] == ["seg-00000000000000000000.jsonl"]


def test_segments_are_sealed_and_the_chain_goes_on(
    state: StateDirectory, append: Callable[..., list[Record]], entry: Callable[..., Entry]
) -> None:
    append(*[[entry(n=n)] for n in range(10)], segment_bytes=900)
    append(*[[entry(n=n)] for n in range(10)], segment_bytes=900)
    files = segments(state)
    assert len(files) > 4
    for file, following in pairwise(files):
        last = json.loads(file.read_bytes().splitlines()[-1])
        assert (last["kind"], last["body"]) == ("log", {"event": "sealed"})
        assert following.name == f"seg-{last['seq'] + 1:020d}.jsonl"
    result = LogReader(state).verify()
    seals = sum(record.entry.body.get("event") == "sealed" for record in LogReader(state).records())
    assert seals in (len(files) - 1, len(files))
    assert (result.status, result.records) == ("proven", 21 + seals)


def test_appending_nothing_writes_nothing(state: StateDirectory, append: Callable[..., list[Record]]) -> None:
    assert append([]) == []
    assert len(list(LogReader(state).records())) == 1


def test_what_no_record_can_hold_is_refused_alone(state: StateDirectory, entry: Callable[..., Entry]) -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    bad = [entry(x=1.5), entry(x=deep), entry(x="x" * 2**22), entry(x="\ud800"), entry(x=2**53)]

    async def run() -> tuple[list[object], ...]:
        log = DurableLog(state)
        answers = await asyncio.gather(
            *(log.append([entry(good=1), one]) for one in bad),
            log.append([entry(n=7)]),
            return_exceptions=True,
        )
        await log.close()
        return answers

    *refused, good = asyncio.run(run())
    assert [type(answer) for answer in refused] == [EntryRefused] * len(bad)
    assert str(refused[0]) == "an entry can't be recorded: a record can't hold a `float`"
    assert [record.entry.body for record in LogReader(state).records()][1:] == [{"n": 7}]
    assert good == tuple(LogReader(state).records())[1:]


def test_a_closed_log_refuses(state: StateDirectory, entry: Callable[..., Entry]) -> None:
    async def run() -> None:
        log = DurableLog(state)
        await log.append([entry()])
        await log.close()
        await log.close()
        with pytest.raises(AuditUnavailable, match="the log is closed"):
            await log.append([entry()])

    asyncio.run(run())


def test_many_tasks_threads_and_loops_make_one_chain(
    state: StateDirectory, entry: Callable[..., Entry]
) -> None:
    logs = [DurableLog(state), DurableLog(state)]

    async def many(log: DurableLog, who: int) -> None:
        async with asyncio.TaskGroup() as group:
            for n in range(20):
                group.create_task(log.append([entry(who=who, n=n, part=0), entry(who=who, n=n, part=1)]))

    threads = [
        threading.Thread(target=lambda who=who: asyncio.run(many(logs[who % 2], who))) for who in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for log in logs:
        asyncio.run(log.close())
    bodies = [record.entry.body for record in LogReader(state).records()][1:]
    assert len(bodies) == 160
    for first, second in zip(bodies[::2], bodies[1::2], strict=True):
        assert (first["who"], first["n"], first["part"]) == (second["who"], second["n"], 0)
    for who in range(4):  # each task's calls keep their order
        assert [body["n"] for body in bodies[::2] if body["who"] == who] == list(range(20))
    assert LogReader(state).verify().status == "proven"


def test_a_cancelled_append_is_carried_out_whole(state: StateDirectory, entry: Callable[..., Entry]) -> None:
    async def run() -> None:
        log = DurableLog(state)
        task = asyncio.create_task(log.append([entry(n=1), entry(n=2)]))
        await asyncio.sleep(0)  # it is queued now
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await log.append([entry(n=3)])
        await log.close()

    asyncio.run(run())
    assert [record.entry.body for record in LogReader(state).records()][1:] == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_a_log_that_nobody_closed_leaves_when_it_is_forgotten(
    state: StateDirectory, entry: Callable[..., Entry]
) -> None:
    asyncio.run(DurableLog(state).append([entry()]))
    assert list((state.path / "writers").iterdir()) == []


def test_four_processes_append_to_one_chain(state: StateDirectory) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, PROGRAM, state.path, f"p{number}", "12", "20000", os.devnull],
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    said = [process.communicate(timeout=60)[0].split() for process in processes]
    assert [process.returncode for process in processes] == [0] * 4
    records = {record.seq: record for record in LogReader(state).records()}
    for words in said:
        triples = list(zip(words[::3], words[1::3], words[2::3], strict=True))
        assert len(triples) == 24
        for what, run, seq in triples:
            kind = {"began": "execution", "ended": "result"}[what]
            assert (records[int(seq)].entry.kind, records[int(seq)].entry.run_id) == (kind, run)
    assert len({record.writer["instance"] for record in records.values()}) == 4
    assert sum(record.entry.kind != "log" for record in records.values()) == 4 * 12 * 5
    result = LogReader(state).verify()
    assert (result.status, result.records) == ("proven", len(records))


@from_fork
def test_a_forked_child_is_a_writer_of_its_own(state: StateDirectory, entry: Callable[..., Entry]) -> None:
    async def run() -> None:
        log = DurableLog(state)
        await log.append([entry(who="parent", n=1)])
        child = os.fork()
        if child == 0:
            code = 1
            try:
                asyncio.events._set_running_loop(None)
                asyncio.run(_child(log, entry))
                code = 0
            finally:
                os._exit(code)
        assert (await asyncio.to_thread(os.waitpid, child, 0))[1] == 0
        await log.append([entry(who="parent", n=2)])
        await log.close()

    asyncio.run(run())
    records = list(LogReader(state).records())[1:]
    assert [(record.entry.body["who"], record.entry.body["n"]) for record in records] == [
        ("parent", 1), ("child", 1), ("parent", 2)
    ]  # fmt: skip
    assert [record.writer["pid"] == os.getpid() for record in records] == [True, False, True]
    assert records[0].writer["instance"] == records[2].writer["instance"] != records[1].writer["instance"]
    assert LogReader(state).verify().status == "proven"
    assert list((state.path / "writers").iterdir()) == []


async def _child(log: DurableLog, entry: Callable[..., Entry]) -> None:
    await log.append([entry(who="child", n=1)])
    await log.close()


@from_fork
def test_a_forked_child_does_not_keep_its_dead_parent_alive(state: StateDirectory) -> None:
    program = """
import asyncio, os, sys
from pathlib import Path
from licet.record import Entry
from licet.state import open_state
from licet_audit.log import DurableLog
log = DurableLog(open_state(Path(sys.argv[1])))
asyncio.run(log.append([Entry("execution", "r", {}, "", 0, phase="before")]))
if os.fork() == 0:
    print("child", flush=True)
    sys.stdin.read()
    os._exit(0)
os.kill(os.getpid(), 9)
"""
    with subprocess.Popen(
        [sys.executable, "-c", program, state.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "child\n"
        assert parent.wait(timeout=30) == -9
        log = DurableLog(state)
        asyncio.run(log.append([]))
        asyncio.run(log.close())
        last = list(LogReader(state).records())[-1]
        assert (last.entry.run_id, last.entry.body["termination"]) == ("r", "unknown")


def test_a_lock_that_is_never_given_back_hangs_nobody(
    state: StateDirectory, append: Callable[..., list[Record]], monkeypatch: pytest.MonkeyPatch
) -> None:
    append([])
    monkeypatch.setattr(worker, "PATIENCE", 0.05)
    with (state.path / "log.lock").open("rb+") as held:
        assert try_lock(held.fileno())
        with pytest.raises(AuditUnavailable) as caught:
            append([])
        assert caught.value.message == f"another process held the lock of `{state.path}` for 0 s"
    assert append([]) == []


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
def test_an_opening_that_fails_leaves_no_file_open(
    state: StateDirectory, entry: Callable[..., Entry], home: Path
) -> None:
    head = Head(origin_of(state.log_id), 6, bytes(32))
    signer = Signer(head.origin, bytes(32))
    seen.remember(state, signer.key, signer.sign(head, 1))
    pin = home / "seen" / f"{state.log_id}.json"

    async def run() -> None:
        log = DurableLog(state)
        open_files = []
        for _ in range(5):
            with pytest.raises(AuditUnavailable, match="record #5 was there before"):
                await log.append([entry()])
            open_files.append(len(os.listdir("/proc/self/fd")))
        assert len(set(open_files)) == 1
        pin.unlink()
        assert (await log.append([entry()]))[0].seq == 1
        await log.close()

    asyncio.run(run())


def test_the_hooks_give_the_log_and_its_reader(state: StateDirectory, entry: Callable[..., Entry]) -> None:
    log: AuditLog = plugin.licet_audit_log(settings=Settings(), state=state)
    reader: AuditReader = plugin.licet_audit_reader(state=state)
    (record,) = asyncio.run(log.append([entry()]))
    asyncio.run(log.close())
    assert list(reader.records())[-1] == record


def test_two_projects_have_two_logs(
    tmp_path: Path, state: StateDirectory, entry: Callable[..., Entry]
) -> None:
    other = open_state(tmp_path / "other")
    assert other.log_id != state.log_id
    for one in (state, other):
        log = DurableLog(one)
        asyncio.run(log.append([entry()]))
        asyncio.run(log.close())
        assert LogReader(one).verify().status == "proven"


@pytest.mark.parametrize(
    "wrong",
    [
        {"run_id": None}, {"time": None}, {"kind": 1}, {"phase": 1}, {"trace_id": b"x"}, {"span_id": 1},
        {"mono_ns": -1}, {"mono_ns": 10**19}, {"mono_ns": True}, {"mono_ns": "1"},
    ],
    ids=repr,
)  # fmt: skip
def test_what_would_be_read_back_as_no_record_is_refused(
    state: StateDirectory, append: Append, entry: Make, wrong: dict[str, Any]
) -> None:
    with pytest.raises(EntryRefused):
        append([replace(entry(), **wrong)])
    append([entry()])
    assert LogReader(state).verify().status == "proven"


@pytest.mark.parametrize("swapped", ["log", ".licet"])
def test_a_log_that_was_moved_away_takes_nothing_more(
    state: StateDirectory, entry: Make, tmp_path: Path, swapped: str
) -> None:
    async def run() -> None:
        log = DurableLog(state)
        await log.append([entry(n=1)])
        place = state.path / "log" if swapped == "log" else state.path
        place.rename(tmp_path / "elsewhere")
        place.mkdir()
        for message in ("was cut, moved or deleted while in use", "the log was given up after a failure"):
            with pytest.raises(AuditUnavailable, match=message):
                await log.append([entry(n=2)])
        await log.close()

    asyncio.run(run())
