"""Where a batch is written: in place while that is quick, else by the thread; and nobody waits for ever."""

import asyncio
import contextlib
import errno
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from licet.errors import AuditUnavailable
from licet.locks import try_lock, unlock
from licet.record import Entry, Kept
from licet.state import StateDirectory
from licet_audit import checkpointer, contents, growing, schedule, seen, worker
from licet_audit.checkpointer import Notary, signed
from licet_audit.log import DurableLog
from licet_audit.notes import Head
from licet_audit.pace import QUICK, ROW, Pace
from licet_audit.reader import LogReader

Make = Callable[..., Entry]
posix = pytest.mark.skipif(sys.platform == "win32", reason="needs flock and signals")


class Disk:
    """Takes the place of the sync, by a clock of its own: how long each takes, and which thread did it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.takes = 0.0
        self.threads: list[str] = []

    def monotonic(self) -> float:
        return self.now

    def sync(self, descriptor: int) -> None:
        os.fsync(descriptor)
        self.now += self.takes
        self.threads.append(threading.current_thread().name)

    def in_place(self) -> list[bool]:
        done, self.threads = self.threads, []
        return [name == threading.main_thread().name for name in done]


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    disk = Disk()
    monkeypatch.setattr(worker, "time", disk)
    monkeypatch.setattr(worker, "Pace", lambda: Pace(disk.monotonic))
    monkeypatch.setattr(growing, "sync", disk.sync)
    return disk


@contextlib.contextmanager
def held(state: StateDirectory) -> Iterator[Callable[[], None]]:
    """Hold the lock of the log as another process would; yields what gives it back."""
    with (state.path / "log.lock").open("rb+") as file:
        assert try_lock(file.fileno())
        yield lambda: unlock(file.fileno())


async def warm(log: DurableLog, entry: Make) -> None:
    for n in range(ROW):
        await log.append([entry(warm=n)])


def bodies(state: StateDirectory) -> list[dict[str, object]]:
    found = [dict(record.entry.body) for record in LogReader(state).records()]
    return [body for body in found if "warm" not in body and body.get("event") != "opened"]


def test_small_batches_are_written_in_place_once_the_disk_is_known_to_be_quick(
    state: StateDirectory, entry: Make, disk: Disk
) -> None:
    async def run() -> None:
        log = DurableLog(state)
        await warm(log, entry)
        assert disk.in_place() == [False] * (ROW + 1)  # the first append also joins the log
        await log.append([entry(n=1)])
        await asyncio.gather(*(log.append([entry(n=n)]) for n in (2, 3, 4)))  # one batch
        assert disk.in_place() == [True, True]
        disk.takes = QUICK
        await log.append([entry(n=5)])
        disk.takes = 0.0
        for n in range(ROW + 1):
            await log.append([entry(n=6 + n)])
        assert disk.in_place() == [True, *[False] * ROW, True]
        await log.append([entry(n=99 + n) for n in range(129)])
        assert disk.in_place() == [False]
        await log.close()

    asyncio.run(run())
    numbers = [body["n"] for body in bodies(state)]
    assert numbers == [*range(1, 7 + ROW), *range(99, 228)]
    assert LogReader(state).verify().status == "proven"


@posix
def test_a_lock_that_others_hold_stops_no_other_task(state: StateDirectory, entry: Make, disk: Disk) -> None:
    async def run() -> None:
        log = DurableLog(state)
        await warm(log, entry)
        disk.in_place()
        with held(state) as release:
            waiting = asyncio.create_task(log.append([entry(n=1)]))
            for _ in range(20):
                await asyncio.sleep(0)
            behind = asyncio.create_task(log.append([entry(n=2)]))
            for _ in range(20):
                await asyncio.sleep(0)
            assert not waiting.done() and not behind.done()
            release()
            first, second = await asyncio.gather(waiting, behind)
        assert first[0].seq + 1 == second[0].seq
        assert not any(disk.in_place())
        await log.append([entry(n=3)])
        assert disk.in_place() == [True]
        await log.close()

    asyncio.run(run())
    assert [body["n"] for body in bodies(state)] == [1, 2, 3]


def test_content_is_durable_before_the_record_that_names_it(
    state: StateDirectory, entry: Make, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, store = Kept("code", b"1+1"), contents.store
    there: list[object] = []

    def watched(to: StateDirectory, what: list[Kept]) -> None:
        assert threading.current_thread() is not threading.main_thread()
        store(to, what)
        there.append([record.seq for record in LogReader(state).records()])

    monkeypatch.setattr(contents, "store", watched)
    keeping = Entry("request", "r", {"n": 1}, "", 1, kept=(kept,))

    async def run() -> None:
        log = DurableLog(state)
        await warm(log, entry)
        (record,) = await log.append([keeping])
        assert record.kept == {"code": kept.commitment}
        assert there == [list(range(record.seq))]
        monkeypatch.setattr(contents, "store", lambda *_: os.listdir(state.path / "missing"))
        with pytest.raises(AuditUnavailable, match="missing` can't be used: no such file"):
            await log.append([keeping])
        monkeypatch.setattr(contents, "store", lambda: None)  # a fault of ours leaves nobody waiting
        with pytest.raises(AuditUnavailable, match="the log failed: TypeError: "):
            await log.append([keeping])
        await log.append([entry(n=2)])  # what could not be stored says nothing of the log
        await log.close()

    asyncio.run(run())
    assert LogReader(state).content(kept.commitment) == b"1+1"
    assert [body["n"] for body in bodies(state)] == [1, 2]


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, RuntimeError])
def test_an_interruption_in_place_cuts_off_what_was_half_done_and_ends_the_writer(
    state: StateDirectory, entry: Make, disk: Disk, interruption: type[BaseException]
) -> None:
    log = DurableLog(state)
    refusals = []

    def interrupted(descriptor: int) -> None:
        raise interruption("now")

    async def run() -> None:
        await warm(log, entry)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(growing, "sync", interrupted)
            try:
                await log.append([entry(n=1)])
            except AuditUnavailable as problem:
                refusals.append(problem.message)
        with pytest.raises(AuditUnavailable, match="given up after a failure: the log failed"):
            await log.append([entry(n=2)])

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(run())
    asyncio.run(log.close())
    if interruption is RuntimeError:
        assert refusals == ["the log failed: RuntimeError: now"]
    assert bodies(state) == []

    async def go_on() -> None:
        following = DurableLog(state)
        await following.append([entry(n=3)])
        await following.close()

    asyncio.run(go_on())
    reason = f"the log failed: {interruption.__name__}: now"
    assert bodies(state) == [{"event": "reopened", "reason": reason}, {"n": 3}]
    assert LogReader(state).verify().status == "proven"


def test_an_error_of_the_disk_in_place_is_the_last_word_of_the_writer(
    state: StateDirectory, entry: Make, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(descriptor: int) -> None:
        raise OSError(errno.EIO, "broken")

    async def run() -> None:
        log = DurableLog(state)
        await warm(log, entry)
        monkeypatch.setattr(growing, "sync", broken)
        for _ in range(2):
            with pytest.raises(AuditUnavailable, match="reported an error"):
                await log.append([entry(n=1)])
        monkeypatch.setattr(growing, "sync", disk.sync)
        with pytest.raises(AuditUnavailable, match="the log was given up after a failure"):
            await log.append([entry(n=2)])
        await log.close()
        following = DurableLog(state)
        await following.append([entry(n=3)])
        await following.close()

    asyncio.run(run())
    first, second = bodies(state)
    assert (first["event"], str(first["reason"])[-17:], second) == ("reopened", "reported an error", {"n": 3})
    assert LogReader(state).verify().status == "proven"


STOPPED = """
import os, signal, sys
from licet.locks import try_lock
with open(sys.argv[1], "rb+") as file:
    assert try_lock(file.fileno())
    print("held", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
"""
WAITS = """
import asyncio, sys
from pathlib import Path
from licet.record import Entry
from licet.state import open_state
from licet_audit import worker
from licet_audit.log import DurableLog
worker.PATIENCE = 0.2
log = DurableLog(open_state(Path(sys.argv[1])))
async def run():
    for _ in range(2):
        try:
            await log.append([Entry("request", "r", {}, "", 1)])
        except Exception as problem:
            print(problem)
    if "close" in sys.argv:
        await log.close()
asyncio.run(run())
"""


@posix
@pytest.mark.parametrize("end", ["close", "exit"])
def test_a_holder_that_is_stopped_hangs_neither_close_nor_exit(
    state: StateDirectory, append: Callable[..., object], entry: Make, end: str
) -> None:
    append([])
    lock = state.path / "log.lock"
    with subprocess.Popen([sys.executable, "-c", STOPPED, lock], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        try:
            done = subprocess.run(
                [sys.executable, "-c", WAITS, state.path, end],
                capture_output=True, text=True, timeout=30, check=True,
            )  # fmt: skip
        finally:
            holder.send_signal(signal.SIGCONT)
    refused = f"another process held the lock of `{state.path}` for 0 s"
    assert (done.stdout.splitlines(), done.stderr) == ([refused, refused], "")
    append([entry(n=1)])
    assert bodies(state) == [{"n": 1}]  # what was refused is not written later


def test_what_is_gathered_when_the_log_is_closed_is_written(state: StateDirectory, entry: Make) -> None:
    async def run() -> None:
        log = DurableLog(state)
        task = asyncio.create_task(log.append([entry(n=1)]))
        await asyncio.sleep(0)
        await log.close()
        (record,) = await task
        assert record.entry.body == {"n": 1}

    asyncio.run(run())
    assert bodies(state) == [{"n": 1}]


def test_a_forked_child_drops_what_was_written_in_place(state: StateDirectory, entry: Make) -> None:
    if not hasattr(os, "fork"):
        pytest.skip("needs os.fork")

    async def child(log: DurableLog) -> None:
        await log.append([entry(who="child")])
        await log.close()

    async def run() -> None:
        log = DurableLog(state)
        for _ in range(3):
            await warm(log, entry)
        gathered = asyncio.create_task(log.append([entry(who="parent", n=1)]))
        await asyncio.sleep(0)
        if (pid := os.fork()) == 0:
            code = 1
            try:
                asyncio.events._set_running_loop(None)
                asyncio.run(child(log))
                code = 0
            finally:
                os._exit(code)
        await gathered
        assert (await asyncio.to_thread(os.waitpid, pid, 0))[1] == 0
        await log.append([entry(who="parent", n=2)])
        await log.close()

    asyncio.run(run())
    said = [(body["who"], body.get("n")) for body in bodies(state)]
    assert sorted(said, key=str) == [("child", None), ("parent", 1), ("parent", 2)]
    assert LogReader(state).verify().status == "proven"


@posix
def test_a_child_that_is_forked_during_a_checkpoint_keeps_no_lock(
    state: StateDirectory, append: Callable[..., object]
) -> None:
    append([])
    ends, stays = os.pipe()
    notary = Notary(state)
    with notary._locked("tree.lock"), (state.path / "tree.lock").open("rb+") as lock:
        assert not try_lock(lock.fileno())
        if (pid := os.fork()) == 0:
            os.close(stays)
            os.read(ends, 1)  # until the parent is done
            os._exit(0)
    with (state.path / "tree.lock").open("rb+") as lock:
        assert try_lock(lock.fileno())
    os.close(stays)
    os.close(ends)
    os.waitpid(pid, 0)


@pytest.fixture
def signings(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """What `Notary.checkpoint` was asked and did; `done` of the class is set after each."""
    asked: list[object] = []
    checkpoint = Notary.checkpoint

    def watched(self: Notary, *, renew: bool = False) -> object:
        try:
            return checkpoint(self, renew=renew)
        finally:
            asked.append(renew)
            SIGNED.set()

    SIGNED.clear()
    monkeypatch.setattr(checkpointer.Notary, "checkpoint", watched)
    yield asked


SIGNED = threading.Event()


@pytest.mark.parametrize(("delay", "records"), [(0.0, 1000), (1000.0, 3)])
def test_a_checkpoint_follows_without_anybody_waiting_for_it(
    state: StateDirectory, entry: Make, monkeypatch: pytest.MonkeyPatch, signings: list[object],
    delay: float, records: int,
) -> None:  # fmt: skip
    monkeypatch.setattr(schedule, "DELAY", delay)
    monkeypatch.setattr(schedule, "RECORDS", records)

    async def run() -> None:
        log = DurableLog(state)
        await log.append([entry(n=1), entry(n=2), entry(n=3)])
        assert await asyncio.to_thread(SIGNED.wait, 30)
        note = signed(state)
        assert note is not None and Head.parse(note.text).size == 4
        assert signings == [False]
        await log.close()

    asyncio.run(run())


def test_an_idle_log_is_signed_again(
    state: StateDirectory, entry: Make, monkeypatch: pytest.MonkeyPatch, signings: list[object]
) -> None:
    monkeypatch.setattr(schedule, "DELAY", 0.0)
    monkeypatch.setattr(schedule, "HEARTBEAT", 0.01)

    async def run() -> None:
        log = DurableLog(state)
        await log.append([entry(n=1)])
        while len(signings) < 3:
            assert await asyncio.to_thread(SIGNED.wait, 30)
            SIGNED.clear()
        assert signings[:3] == [False, True, True]
        await log.close()

    asyncio.run(run())
    assert bodies(state) == [{"n": 1}]
    assert LogReader(state).verify().status == "proven"


def test_a_checkpoint_that_fails_is_told_once_and_fails_no_append(
    state: StateDirectory, entry: Make, monkeypatch: pytest.MonkeyPatch, signings: list[object],
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    monkeypatch.setattr(schedule, "DELAY", 0.0)
    (state.path / "tree.lock").mkdir()

    async def run() -> None:
        log = DurableLog(state)
        for n in range(3):
            SIGNED.clear()
            await log.append([entry(n=n)])
            assert await asyncio.to_thread(SIGNED.wait, 30)
        assert signed(state) is None
        (state.path / "tree.lock").rmdir()
        await log.close()

    with caplog.at_level(logging.WARNING, "licet"):
        asyncio.run(run())
    (told,) = [record.getMessage() for record in caplog.records]
    assert told.startswith("the log gets no checkpoint: `")
    note = signed(state)
    assert note is not None and Head.parse(note.text).size == 4


def test_a_clock_that_is_set_back_changes_no_order(
    state: StateDirectory, append: Callable[..., object], entry: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    append([entry(n=1)])
    before = signed(state)
    real, real_ns = time.time, time.time_ns
    monkeypatch.setattr(time, "time", lambda: real() - 3600)
    monkeypatch.setattr(time, "time_ns", lambda: real_ns() - 3600 * 10**9)
    append([entry(n=2)])
    after = signed(state)
    assert [record.seq for record in LogReader(state).records()] == [0, 1, 2]
    assert LogReader(state).verify().status == "proven"
    known = seen.of(state.log_id)
    assert before is not None and after is not None and known is not None and known.key is not None
    first, second = before.time_by(known.key), after.time_by(known.key)
    assert first is not None and second is not None and second >= first
