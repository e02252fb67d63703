"""Writers that share syncs: what is acknowledged is durable, with all it stands on, whoever fails or dies."""

import contextlib
import errno
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from licet.errors import AuditUnavailable
from licet.record import Entry, Record
from licet.state import StateDirectory, open_state
from licet_audit import ends, growing, writer
from licet_audit.checkpointer import Notary
from licet_audit.drafted import Written
from licet_audit.ends import Ends
from licet_audit.locking import LogLocks
from licet_audit.notes import Head
from licet_audit.reader import LogReader
from licet_audit.segments import listing, snapshot
from licet_audit.writer import ALONE, ChainWriter

Make = Callable[..., Entry]
pytestmark = pytest.mark.skipif(ends._boot() is None, reason="nothing is shared without an id of the boot")
OTHERS_FAILED = r"^another process could not make `.*` durable$"


class Disk:
    """What of each file would outlast a loss of power, as the syncs in `growing` say; an inode is a file.

    A sync that fails loses for good what it was to make durable: later ones report success. If it `tells`, as
    Linux does, whoever had the file open when that happened is told too.
    """

    def __init__(self, patch: pytest.MonkeyPatch, *, tells: bool = True) -> None:
        self._tells = tells
        self.fails: BaseException | None = None
        self.syncs = 0
        self._synced: dict[int, int] = {}
        self._lost: dict[int, int] = {}  # where the first byte is that was lost
        self._errors: dict[int, int] = {}
        self._told: dict[int, int] = {}  # by descriptor
        truncate, switch_to = os.ftruncate, growing.Growing.switch_to

        def cut(descriptor: int, size: int) -> None:
            truncate(descriptor, size)
            inode = os.fstat(descriptor).st_ino
            self._synced[inode] = min(self._synced.get(inode, 0), size)
            if self._lost.get(inode, size) >= size:
                self._lost.pop(inode, None)

        def switched(last: growing.Growing, *args: object, **options: object) -> None:
            switch_to(last, *args, **options)  # type: ignore[arg-type]
            self._told[last.file] = self._errors.get(os.fstat(last.file).st_ino, 0)

        patch.setattr(os, "ftruncate", cut)
        patch.setattr(os, "fsync", lambda descriptor: None)
        patch.setattr(growing, "sync", self.sync)
        patch.setattr(growing.Growing, "switch_to", switched)

    def sync(self, descriptor: int) -> None:
        self.syncs += 1
        found = os.fstat(descriptor)
        problem, self.fails = self.fails, None
        if isinstance(problem, OSError):
            self._errors[found.st_ino] = self._errors.get(found.st_ino, 0) + 1
            self._lost.setdefault(found.st_ino, self._synced.get(found.st_ino, 0))
        elif self._tells and self._errors.get(found.st_ino, 0) > self._told.get(descriptor, 0):
            problem = OSError(errno.EIO, "broken before")
        if problem is not None:
            self._told[descriptor] = self._errors.get(found.st_ino, 0)
            raise problem
        self._synced[found.st_ino] = found.st_size

    def holds(self, path: Path, end: int) -> bool:
        """Whether all up to byte `end` is there after a loss of power."""
        inode = path.lstat().st_ino
        return self._synced.get(inode, 0) >= end and self._lost.get(inode, end) >= end


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def joined(state: StateDirectory, segment_bytes: int = 2**26) -> ChainWriter:
    one = ChainWriter(state, segment_bytes)
    one.prepare()
    one.locks.take()
    try:
        one.join()
    finally:
        one.unlock()
    return one


def write_behind(one: ChainWriter, *entries: Entry) -> Written | None:
    """Write a batch that is not durable yet."""
    one.locks.append.take()
    try:
        return one.append(one.draft([entries]))
    finally:
        one.unlock()


def settle(one: ChainWriter, written: Written | None) -> list[Record]:
    assert written is not None
    one.locks.sync.take()
    try:
        return [record for answer in one.settle(written) for record in answer]  # type: ignore[union-attr]
    finally:
        one.unlock()


def write(one: ChainWriter, *entries: Entry) -> list[Record]:
    one.locks.take()
    try:
        return [record for answer in one.write(one.draft([entries])) for record in answer]  # type: ignore[union-attr]
    finally:
        one.unlock()


def broken() -> OSError:
    return OSError(errno.EIO, "broken")


def numbers(state: StateDirectory) -> list[object]:
    return [one.entry.body["n"] for one in LogReader(state).records() if "n" in one.entry.body]


@pytest.fixture
def three(state: StateDirectory, disk: Disk, entry: Make) -> list[ChainWriter]:
    """Three writers of one log, who agree on its end."""
    found = [joined(state) for _ in range(3)]
    for n, one in enumerate(found):
        write(one, entry(n=n))
    for n, one in enumerate(found, 3):
        assert settle(one, write_behind(one, entry(n=n)))
    disk.syncs = 0
    return found


def test_one_sync_makes_the_lines_of_all_durable(
    state: StateDirectory, disk: Disk, three: list[ChainWriter], entry: Make
) -> None:
    written = [write_behind(one, entry(n=n)) for n, one in enumerate(three, 6)]
    assert disk.syncs == 0
    found = [settle(one, batch) for one, batch in zip(three, written, strict=True)]
    assert disk.syncs == 1
    assert [record.seq for records in found for record in records] == [7, 8, 9]
    assert numbers(state) == list(range(9))
    for one in three:
        one.close()
    assert LogReader(state).verify().status == "proven"


def held_in_syncs(disk: Disk, monkeypatch: pytest.MonkeyPatch, one: ChainWriter) -> list[bool]:
    """Whether the lock for appending is held in each sync from now on."""
    found: list[bool] = []

    def sync(descriptor: int) -> None:
        found.append(one.locks.append.held)
        disk.sync(descriptor)

    monkeypatch.setattr(growing, "sync", sync)
    return found


def test_who_is_alone_for_a_while_lets_nobody_write_behind_its_lines(
    state: StateDirectory, disk: Disk, three: list[ChainWriter], entry: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, _ = three
    write(first, entry(n=6))
    held = held_in_syncs(disk, monkeypatch, first)
    for n in range(7, 7 + ALONE + 2):
        write(first, entry(n=n))
    assert held == [False] * ALONE + [True] * 2
    write(second, entry(n=-1))
    held.clear()
    write(first, entry(n=-2))
    assert held == [False]  # there is somebody
    assert numbers(state) == [*range(7 + ALONE + 2), -1, -2]
    for one in three:
        one.close()
    assert LogReader(state).verify().status == "proven"


@pytest.mark.parametrize("stopped", [False, True], ids=["the disk fails", "it is interrupted"])
def test_others_go_on_from_what_was_durable_when_one_fails_that_took_itself_to_be_alone(
    state: StateDirectory,
    disk: Disk,
    three: list[ChainWriter],
    entry: Make,
    monkeypatch: pytest.MonkeyPatch,
    stopped: bool,
) -> None:
    first, second, _ = three
    for n in range(6, 6 + ALONE + 2):
        write(first, entry(n=n))
    if stopped:
        first.locks.take()
        (path,) = (segment.path for segment in listing(state))
        line = path.read_bytes()
        monkeypatch.setattr(growing, "sync", lambda descriptor: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            first.write(first.draft([[entry(n=99)]]))
        assert path.read_bytes() == line
        first.unlock()
        monkeypatch.setattr(growing, "sync", disk.sync)
    else:
        disk.fails = broken()
        with pytest.raises(AuditUnavailable, match=r"reported an error$"):
            write(first, entry(n=99))
    assert write(second, entry(n=-1))[0].seq == 1 + 6 + ALONE + 2
    assert numbers(state) == [*range(6 + ALONE + 2), -1]
    for one in three:
        one.close()
    assert LogReader(state).verify().status == "proven"


def test_a_sync_covers_nothing_that_was_written_after_it_began(
    state: StateDirectory, disk: Disk, three: list[ChainWriter], entry: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = write_behind(three[0], entry(n=6))
    late: list[Written | None] = []

    def sync(descriptor: int) -> None:
        disk.sync(descriptor)
        if not late:
            late.append(write_behind(three[1], entry(n=7)))

    monkeypatch.setattr(growing, "sync", sync)
    settle(three[0], first)
    (path,) = (segment.path for segment in listing(state))
    assert not disk.holds(path, path.stat().st_size)
    settle(three[1], late[0])
    assert disk.syncs == 2
    assert disk.holds(path, path.stat().st_size)


@pytest.mark.parametrize("busy", [False, True], ids=["cut at once", "cut by the next"])
def test_after_a_shared_sync_that_failed_nobody_acknowledges_what_it_lost(
    state: StateDirectory, disk: Disk, three: list[ChainWriter], entry: Make, busy: bool
) -> None:
    first, second, third = three
    mine, its = write_behind(first, entry(n=6)), write_behind(second, entry(n=7))
    disk.fails = broken()
    first.locks.sync.take()
    if busy:  # so that who fails can't cut what it lost
        third.locks.append.take()
    with pytest.raises(AuditUnavailable, match=r"reported an error$"):
        first.settle(mine)  # type: ignore[arg-type]
    first.unlock()
    assert (numbers(state) == list(range(6))) is not busy
    with pytest.raises(AuditUnavailable, match=OTHERS_FAILED):  # though the disk would say yes now
        settle(second, its)
    for one in (first, second):
        with pytest.raises(AuditUnavailable, match="the log was given up after a failure"):
            one.append(one.draft([[entry(n=-1)]]))
    if busy:
        assert third.append(third.draft([[entry(n=8)]])) is None
        third.unlock()
    assert write(third, entry(n=8))[0].seq == 7
    assert settle(third, write_behind(third, entry(n=9)))[0].seq == 8
    assert numbers(state) == [*range(6), 8, 9]
    for one in three:
        one.close()
    assert LogReader(state).verify().status == "proven"


def test_what_a_sync_lost_is_not_signed(
    state: StateDirectory, disk: Disk, three: list[ChainWriter], entry: Make
) -> None:
    first, second, third = three
    mine = write_behind(first, entry(n=6))
    third.locks.append.take()  # who fails can't cut what it lost
    disk.fails = broken()
    with pytest.raises(AuditUnavailable, match=r"reported an error$"):
        settle(first, mine)
    assert sum(1 for _ in LogReader(state).records()) == 7 + 1
    assert Head.parse(Notary(state).checkpoint().text).size == 7
    third.unlock()
    assert write(second, entry(n=7))[0].seq == 7


def test_lines_that_wait_for_a_sync_are_not_signed(
    state: StateDirectory, disk: Disk, three: list[ChainWriter], entry: Make
) -> None:
    written = write_behind(three[0], entry(n=6))
    assert Head.parse(Notary(state).checkpoint().text).size == 7
    settle(three[0], written)
    assert Head.parse(Notary(state).checkpoint().text).size == 8


def test_an_interruption_of_one_fails_no_other(
    state: StateDirectory, disk: Disk, three: list[ChainWriter], entry: Make
) -> None:
    first, second, _ = three
    mine, its = write_behind(first, entry(n=6)), write_behind(second, entry(n=7))
    disk.fails = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        settle(first, mine)
    assert settle(second, its)[0].seq == 8  # it stands on a line whose writer was told nothing
    alone = write_behind(second, entry(n=8))
    disk.fails = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        settle(second, alone)
    assert numbers(state) == list(range(8))  # nobody stood on that


def test_a_new_segment_begins_when_all_before_is_durable(
    state: StateDirectory, disk: Disk, entry: Make
) -> None:
    first, second = joined(state, 1_500), joined(state, 1_500)
    write(first, entry(n=0))
    write(second, entry(n=1))
    mine = write_behind(first, entry(n=2, text="x" * 600))  # and seals the segment
    assert write_behind(second, entry(n=3)) is None
    assert write(second, entry(n=3))[0].seq == 5
    old, new = (segment.path for segment in listing(state))
    assert disk.holds(old, old.stat().st_size) and disk.holds(new, new.stat().st_size)
    before = disk.syncs
    assert settle(first, mine)[0].seq == 3
    assert disk.syncs == before
    assert numbers(state) == [0, 1, 2, 3]


DIES = """
import os, sys
from pathlib import Path
from licet.record import Entry
from licet.state import open_state
from licet_audit import growing
from licet_audit.ends import Ends
from licet_audit.writer import ChainWriter
one = ChainWriter(open_state(Path(sys.argv[1])), 2**26)
one.prepare()
one.locks.take()
one.join()
entry = lambda n: Entry("request", "r", {"n": n}, "", 1)
one.write(one.draft([[entry(6)]]))
one.unlock()
die = lambda *_: os.kill(os.getpid(), 9)
if sys.argv[2] == "sync":
    growing.sync = die
else:
    Ends.say_written = die
one.locks.append.take()
written = one.append(one.draft([[entry(7)]]))
one.unlock()
one.locks.sync.take()
one.settle(written)
"""


@pytest.mark.parametrize("moment", ["write", "sync"])
def test_a_writer_that_is_killed_while_others_wait_holds_up_nobody(
    state: StateDirectory, disk: Disk, three: list[ChainWriter], entry: Make, moment: str
) -> None:
    died = subprocess.run([sys.executable, "-c", DIES, state.path, moment], timeout=60, check=False)
    assert died.returncode == -9
    written = write_behind(three[0], entry(n=8))
    assert (written is None) is (moment == "write")  # its line stands there and it did not say so
    records = write(three[0], entry(n=8)) if written is None else settle(three[0], written)
    assert records[0].seq == 9
    (path,) = (segment.path for segment in listing(state))
    assert disk.holds(path, path.stat().st_size)
    assert numbers(state) == list(range(9))
    for one in three:
        one.close()
    assert LogReader(state).verify().status == "proven"


DIES_ALONE = """
import os, sys
from pathlib import Path
from licet.record import Entry
from licet.state import open_state
from licet_audit import growing
from licet_audit.ends import Ends
from licet_audit.writer import ALONE, ChainWriter
one = ChainWriter(open_state(Path(sys.argv[1])), 2**26)
one.prepare()
one.locks.take()
one.join()
entry = lambda n: Entry("request", "r", {"n": n}, "", 1)
for n in range(ALONE + 1):
    one.write(one.draft([[entry(6 + n)]]))
    one.unlock()
    one.locks.take()
die = lambda *_: os.kill(os.getpid(), 9)
if sys.argv[2] == "sync":
    growing.sync = die
else:
    Ends.say_both = die
one.write(one.draft([[entry(7 + ALONE)]]))
"""


@pytest.mark.parametrize("moment", ["sync", "word"])
def test_whole_lines_of_one_that_is_killed_alone_are_made_durable_by_the_next(
    state: StateDirectory, disk: Disk, three: list[ChainWriter], entry: Make, moment: str
) -> None:
    died = subprocess.run([sys.executable, "-c", DIES_ALONE, state.path, moment], timeout=60, check=False)
    assert died.returncode == -9
    assert write_behind(three[0], entry(n=8 + ALONE)) is None  # a line stands there that it did not say
    assert write(three[0], entry(n=8 + ALONE))[0].seq == 9 + ALONE
    (path,) = (segment.path for segment in listing(state))
    assert disk.holds(path, path.stat().st_size)
    assert numbers(state) == list(range(9 + ALONE))
    for one in three:
        one.close()
    assert LogReader(state).verify().status == "proven"


GARBAGE = [b"", b"x", bytes(96), b"\xff" * 96, b"{}\n" * 1000]


@pytest.mark.parametrize("garbage", GARBAGE, ids=["empty", "short", "zeros", "ones", "long"])
def test_garbage_in_the_shared_file_is_believed_by_nobody(
    state: StateDirectory, disk: Disk, three: list[ChainWriter], entry: Make, garbage: bytes
) -> None:
    first, second, third = three
    mine, its = write_behind(first, entry(n=6)), write_behind(second, entry(n=7))
    (state.path / "sync.lock").write_bytes(garbage)
    assert settle(first, mine)
    assert settle(second, its)
    (path,) = (segment.path for segment in listing(state))
    assert disk.holds(path, path.stat().st_size)
    (state.path / "sync.lock").write_bytes(garbage)
    assert write_behind(third, entry(n=8)) is None
    assert write(third, entry(n=8))
    assert write_behind(first, entry(n=9)) is None
    assert write(first, entry(n=9))
    assert settle(third, write_behind(third, entry(n=10)))  # they agree again
    assert numbers(state) == list(range(11))


def test_garbage_and_a_cut_together_acknowledge_nothing(
    state: StateDirectory, disk: Disk, three: list[ChainWriter], entry: Make
) -> None:
    mine = write_behind(three[0], entry(n=6))
    (path,) = (segment.path for segment in listing(state))
    os.truncate(path, path.stat().st_size - 1)
    (state.path / "sync.lock").write_bytes(b"")
    with pytest.raises(AuditUnavailable, match=OTHERS_FAILED):
        settle(three[0], mine)


def test_what_is_said_of_another_file_or_start_of_the_system_counts_for_nothing(
    state: StateDirectory, disk: Disk, three: list[ChainWriter], entry: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ends.durable_part(state) == snapshot(state)
    (path,) = (segment.path for segment in listing(state))
    content = path.read_bytes()
    path.unlink()
    path.with_name("other").write_bytes(content)
    path.with_name("other").rename(path)
    assert ends.durable_part(state) is None
    written, durable = three[0].locks.ends.read()
    assert written == durable is not None
    monkeypatch.setattr(ends, "_boot", lambda: b"later   ")
    later = LogLocks(state)
    assert later.ends.read() == (None, None)
    later.close()


def test_more_behind_what_a_sync_lost_than_anybody_said_is_not_cut(
    state: StateDirectory, disk: Disk, three: list[ChainWriter], entry: Make
) -> None:
    first, second, third = three
    mine = write_behind(first, entry(n=6))
    (path,) = (segment.path for segment in listing(state))
    with path.open("ab") as file:
        file.write(path.read_bytes().splitlines(True)[-1])
    disk.fails = broken()
    with pytest.raises(AuditUnavailable, match=r"reported an error$"):
        settle(first, mine)
    size = path.stat().st_size
    for one in (second, third):
        with pytest.raises(AuditUnavailable, match=r"^what follows byte \d+ of `.*` may not be durable"):
            write(one, entry(n=7))
    assert path.stat().st_size == size


# -- all of it in any order


class Writers:
    """Three places for writers, what each wrote and nobody acknowledged, and the leaves that were."""

    def __init__(self, state: StateDirectory, disk: Disk) -> None:
        self.state, self.disk = state, disk
        self.writers: list[ChainWriter | None] = [None, None, None]
        self.waiting: list[Written | None] = [None, None, None]
        self.acknowledged: set[str] = set()
        self.n = 0

    def entry(self) -> Entry:
        self.n += 1
        return Entry("request", "r", {"n": self.n, "text": "x" * 100}, "", 1)

    def take(self, place: int) -> ChainWriter:
        one = self.writers[place]
        if one is None or not one.sound:
            self.die(place)
            one = self.writers[place] = joined(self.state, 4_000)
        return one

    def append(self, place: int) -> None:
        if self.waiting[place] is None:
            one = self.take(place)
            self.waiting[place] = write_behind(one, self.entry())
            if self.waiting[place] is None:
                self.note(write(one, self.entry()))

    def alone(self, place: int) -> None:
        if self.waiting[place] is None:
            self.note(write(self.take(place), self.entry()))

    def settle(self, place: int) -> None:
        written, self.waiting[place] = self.waiting[place], None
        if written is not None:
            self.note(settle(self.writers[place], written))  # type: ignore[arg-type]

    def note(self, records: list[Record]) -> None:
        self.acknowledged |= {record.leaf for record in records}

    def die(self, place: int) -> None:
        one, self.writers[place], self.waiting[place] = self.writers[place], None, None
        if one is not None:
            one.abandon()

    def unsaid(self, place: int) -> None:
        """Die after a write, before it is said."""
        if self.waiting[place] is None:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Ends, "say_written", lambda *_: None)
                write_behind(self.take(place), self.entry())
        self.die(place)

    def torn(self, place: int) -> None:
        """Die in the middle of a write."""
        self.die(place)
        if listed := listing(self.state):
            with listed[-1].path.open("ab") as file:
                file.write(b'{"body":{"n"')

    def check(self) -> None:
        """That all that was acknowledged would be there after a loss of power now."""
        missing = set(self.acknowledged)
        for segment in listing(self.state):
            lines = segment.path.read_bytes().splitlines(keepends=True)
            end = 0
            for line in lines:
                end += len(line)
                leaf = writer.segments.leaf_hash(line[:-1])
                if leaf in missing:
                    missing.remove(leaf)
                    assert self.disk.holds(segment.path, end), f"{segment.path} at {end}"
        assert not missing


@contextlib.contextmanager
def fresh_writers(*, tells: bool = False) -> Iterator[Writers]:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", f"{folder}/home")
        state = open_state(Path(folder) / ".licet")
        found = Writers(state, Disk(patch, tells=tells))
        yield found
        for place in range(3):
            found.die(place)


def follow(writers: Writers, steps: list[tuple[str, int]]) -> None:
    for what, place in steps:
        if what == "garble":
            (writers.state.path / "sync.lock").write_bytes(GARBAGE[place])
        elif what in ("fail", "interrupt"):
            writers.disk.fails = broken() if what == "fail" else KeyboardInterrupt()
        else:
            able = [n for n in range(3) if (writers.waiting[n] is not None) is (what == "settle")]
            place = able[place % len(able)] if able and what in ("append", "settle") else place
            with contextlib.suppress(AuditUnavailable, KeyboardInterrupt):
                getattr(writers, what)(place)
        writers.check()
    writers.disk.fails = None


STEPS = [
    "append",
    "append",
    "append",
    "append",
    "settle",
    "settle",
    "settle",
    "alone",
    "die",
    "unsaid",
    "torn",
]
PLACES = st.integers(0, 2)
KEPT = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))


@KEPT
@example([("append", 0), ("append", 1), ("fail", 0), ("settle", 0), ("settle", 0)], False)
@given(
    st.lists(st.tuples(st.sampled_from([*STEPS, "fail", "interrupt"]), PLACES), min_size=10, max_size=40),
    st.booleans(),
)
def test_what_is_acknowledged_outlasts_disks_that_fail_and_writers_that_die(
    steps: list[tuple[str, int]], tells: bool
) -> None:
    with fresh_writers(tells=tells) as writers:
        for place in range(3):
            writers.alone(place)
        follow(writers, steps)


@KEPT
@given(
    st.lists(st.tuples(st.sampled_from([*STEPS, "garble", "interrupt"]), PLACES), min_size=10, max_size=40)
)
def test_what_is_acknowledged_outlasts_garbage_in_the_shared_file(steps: list[tuple[str, int]]) -> None:
    with fresh_writers() as writers:
        for place in range(3):
            writers.alone(place)
        follow(writers, steps)
        for place in range(3):
            writers.die(place)
        writers.alone(0)  # garbage stops nobody
        writers.check()
