"""Checkpoints: what they sign, what they refuse, and that no kill and no other process breaks them."""

import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from licet.errors import AuditUnavailable
from licet.locks import try_lock
from licet.record import Entry, Record
from licet.state import StateDirectory, read_state
from licet_audit import checkpointer, keys, notes, seen, tree
from licet_audit.checkpointer import Notary, signed
from licet_audit.leaves import Snapshot
from licet_audit.notes import Head, Note
from licet_audit.reader import LogReader
from licet_audit.segments import listing
from licet_audit.tiles import GrowingTree, LogHashes, Tile, read_tile
from slow_tree import complete, slow_path, slow_root

Append = Callable[..., list[Record]]
Make = Callable[..., Entry]
PROGRAM = Path(__file__).with_name("checkpoint_process.py")
HOUR = 3600
MOVE_ASIDE = "run `licet audit verify`, then move the state directory aside to start a new log"


def leaves(state: StateDirectory) -> list[bytes]:
    """The leaf of every whole line of a log."""
    lines = b"".join(path.read_bytes() for path in sorted((state.path / "log").iterdir())).split(b"\n")
    return [tree.leaf(line) for line in lines[:-1]]


def head_of(note: Note | None) -> Head:
    assert note is not None
    return Head.parse(note.text)


def time_of(state: StateDirectory, note: Note) -> int:
    at = note.time_by(keys.signer(state).key)
    assert at is not None
    return at


def files(state: StateDirectory, home: Path) -> dict[Path, tuple[int, int]]:
    """What is on disk, by the identity and the last change of each file; the log itself aside."""
    found = (path for top in (state.path, home) for path in top.rglob("*") if path.is_file())
    return {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in found if path.suffix != ".lock"}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    def at(seconds: float) -> None:
        monkeypatch.setattr(checkpointer.time, "time", lambda: seconds)

    return at


@pytest.fixture
def log(state: StateDirectory, append: Append, entry: Make) -> list[bytes]:
    """A log of ten records that was closed well; their leaves."""
    append([entry(n=n) for n in range(1, 10)])
    return leaves(state)


def test_a_checkpoint_signs_all_records_and_is_published_and_remembered(
    state: StateDirectory, log: list[bytes], append: Append, entry: Make, clock: Callable[[float], None]
) -> None:
    clock(2_000_000_000.9)
    append([entry(n=n) for n in range(500)])
    note = Notary(state).checkpoint()
    head = head_of(note)
    assert head == Head(f"licet/{state.log_id}", 510, slow_root(leaves(state)))
    key = keys.published(state)
    assert key is not None and note.signed_by(key) is not None and note.time_by(key) == 2_000_000_000
    assert (signed(state), (state.path / "checkpoint").read_bytes()) == (note, note.data)
    known = seen.of(state.log_id)
    assert known is not None
    assert (known.key, known.checkpoint, known.path) == (key, note, str(state.path))
    assert complete(state, 510)


def test_what_is_signed_is_not_signed_again_unless_the_time_is_to_be_renewed(
    state: StateDirectory, log: list[bytes], home: Path, clock: Callable[[float], None]
) -> None:
    first = signed(state)
    before = files(state, home)
    for notary in (Notary(state), Notary(state)):
        assert notary.checkpoint() == notary.checkpoint() == first
    assert files(state, home) == before
    clock(2_000_000_000)
    renewed = Notary(state).checkpoint(renew=True)
    assert (renewed.text, time_of(state, renewed)) == (head_of(first).text, 2_000_000_000)
    assert signed(state) == renewed
    known = seen.of(state.log_id)
    assert known is not None and known.signed_at == 2_000_000_000


def test_the_time_stands_still_where_the_clock_was_set_back(
    state: StateDirectory, log: list[bytes], append: Append, entry: Make, clock: Callable[[float], None]
) -> None:
    clock(2_000_000_000)
    notary = Notary(state)
    notary.checkpoint(renew=True)
    times = []
    for seconds in (2_000_000_000 - HOUR, 2_000_000_000, 2_000_000_001):
        clock(seconds)
        append([entry()])
        times += [time_of(state, notary.checkpoint()), time_of(state, Notary(state).checkpoint(renew=True))]
    assert times == [2_000_000_000] * 4 + [2_000_000_001] * 2


def test_what_other_processes_signed_is_continued(
    state: StateDirectory, log: list[bytes], append: Append, entry: Make
) -> None:
    one, other = Notary(state), Notary(state)
    for count in (1, 255, 3, 700, 1):
        append([entry(n=n) for n in range(count)])
        found = one.checkpoint()
        assert other.checkpoint() == found
        assert head_of(found).root == slow_root(leaves(state))
        one, other = other, one
    assert complete(state, head_of(found).size)


def test_what_others_signed_and_made_durable_is_not_synced_again(
    state: StateDirectory, log: list[bytes], append: Append, entry: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    notary = Notary(state)
    notary.checkpoint()
    append([entry(n=n) for n in range(600)])  # closing the log signs it
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    monkeypatch.setattr(checkpointer, "sync", synced.append)
    assert head_of(notary.checkpoint()).size == 610
    assert synced == []


def test_lines_that_could_not_be_synced_are_never_signed(
    state: StateDirectory, log: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    notary = Notary(state)
    (state.path / "sync.lock").unlink()  # nobody vouches for anything, as after a restart
    line = (state.path / "log" / f"seg-{0:020d}.jsonl").read_bytes().splitlines()[-1]
    with (state.path / "log" / f"seg-{0:020d}.jsonl").open("ab") as file:  # as a writer that was killed
        file.write(line.replace(b'"seq":9', b'"seq":10') + b"\n")

    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, "broken")

    with monkeypatch.context() as patch:
        patch.setattr(checkpointer, "sync", fail)
        with pytest.raises(AuditUnavailable, match=r"reported an error$"):
            notary.checkpoint()
    with pytest.raises(AuditUnavailable, match=r"^nothing is signed after a failure: .* reported an error$"):
        notary.checkpoint()
    assert head_of(signed(state)).size == 10
    assert head_of(Notary(state).checkpoint()).size == 11


@pytest.mark.parametrize("lost", [True, False], ids=["after a failure", "in a new process"])
def test_a_damaged_tile_is_named_and_makes_nothing_of_the_log(
    state: StateDirectory, append: Append, entry: Make, monkeypatch: pytest.MonkeyPatch, lost: bool
) -> None:
    append([entry(n=n) for n in range(600)])
    notary = Notary(state)
    notary.checkpoint()

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "full", "tile")

    append([entry()])  # closing the log signs it
    with monkeypatch.context() as patch:
        patch.setattr(checkpointer, "write_tiles", fail)
        with pytest.raises(AuditUnavailable, match=r"^the disk that holds `tile` is full$"):
            notary.checkpoint()
    tile = Tile(1, 0, 2).path(state)
    tile.write_bytes(bytes(32) + tile.read_bytes()[32:])
    append([entry()])
    with pytest.raises(AuditUnavailable) as caught:
        (notary if lost else Notary(state)).checkpoint()
    assert caught.value.message == f"`{tile}` is not the tile that the records make"
    tile.unlink()
    assert head_of(Notary(state).checkpoint()) == Head(f"licet/{state.log_id}", 603, slow_root(leaves(state)))


def test_a_checkpoint_is_kept_wherever_a_segment_ends(
    state: StateDirectory, append: Append, entry: Make
) -> None:
    append(*[[entry(n=n)] for n in range(40)], segment_bytes=2000)
    ends = [segment.first for segment in listing(state)[1:]]
    kept = sorted((state.path / "checkpoints").iterdir())
    assert len(ends) > 4
    assert [path.name for path in kept][: len(ends)] == [f"{end:020d}" for end in ends]
    for path in kept:
        note = Note.parse(path.read_bytes())
        assert note.signed_by(keys.signer(state).key) is not None
        assert head_of(note).root == slow_root(leaves(state)[: head_of(note).size])
    before = {path: path.read_bytes() for path in kept}
    Notary(state).checkpoint(renew=True)
    assert {path: path.read_bytes() for path in (state.path / "checkpoints").iterdir()} == before


def test_a_line_without_an_end_is_not_signed(state: StateDirectory, log: list[bytes]) -> None:
    with (state.path / "log" / f"seg-{0:020d}.jsonl").open("ab") as file:
        file.write(b'{"body":{}')
    assert head_of(Notary(state).checkpoint(renew=True)).size == len(log)


def test_a_log_without_a_record_has_no_checkpoint(state: StateDirectory, home: Path) -> None:
    with pytest.raises(AuditUnavailable, match=r"^the log holds no record yet$"):
        Notary(state).checkpoint()
    assert signed(state) is None
    assert seen.of(state.log_id) is None


def cut(state: StateDirectory) -> None:
    segment = state.path / "log" / f"seg-{0:020d}.jsonl"
    segment.write_bytes(b"".join(segment.read_bytes().splitlines(keepends=True)[:9]))


def edit(state: StateDirectory) -> None:
    segment = state.path / "log" / f"seg-{0:020d}.jsonl"
    segment.write_bytes(segment.read_bytes().replace(b'"n":5', b'"n":6'))


def wipe(state: StateDirectory) -> None:
    shutil.rmtree(state.path / "log")


def without(name: str) -> Callable[[StateDirectory], None]:
    def remove(state: StateDirectory) -> None:
        if name == "seen":
            path = seen.path_of(state.log_id)
            assert path is not None
            path.unlink()
        else:
            (state.path / name).unlink()

    return remove


@pytest.mark.parametrize("lost", [without("seen"), without("checkpoint"), lambda state: None])
@pytest.mark.parametrize(
    ("attack", "message"),
    [
        (cut, "the log has 9 records, but the checkpoint in `{place}` covers 10"),
        (edit, "the first 10 records have the root {root}, but the checkpoint in `{place}` says {signed}"),
        (wipe, "the log has 0 records, but the checkpoint in `{place}` covers 10"),
    ],
)
def test_what_contradicts_a_checkpoint_is_not_signed(
    state: StateDirectory,
    log: list[bytes],
    lost: Callable[[StateDirectory], None],
    attack: Callable[[StateDirectory], None],
    message: str,
) -> None:
    lost(state)
    attack(state)
    with pytest.raises(AuditUnavailable) as caught:
        Notary(state).checkpoint(renew=True)
    place = state.path / "checkpoint" if seen.of(state.log_id) is None else seen.path_of(state.log_id)
    root = slow_root(leaves(state)) if attack is edit else b""
    assert caught.value.message == message.format(place=place, signed=slow_root(log).hex(), root=root.hex())
    assert caught.value.advice == MOVE_ASIDE


@pytest.mark.parametrize(("attack", "left"), [(cut, 9), (wipe, 0)])
def test_a_process_that_signed_remembers_it(
    state: StateDirectory, log: list[bytes], attack: Callable[[StateDirectory], None], left: int
) -> None:
    notary = Notary(state)
    notary.checkpoint()
    without("seen")(state)
    without("checkpoint")(state)
    attack(state)
    with pytest.raises(AuditUnavailable) as caught:
        notary.checkpoint()
    assert caught.value.message == (
        f"the log has {left} records, but the checkpoint that this process saw last covers 10"
    )


def test_a_backup_that_was_put_back_is_not_signed(
    state: StateDirectory, log: list[bytes], append: Append, entry: Make, tmp_path: Path
) -> None:
    subprocess.run(["cp", "-a", state.path, tmp_path / "backup"], check=True)
    append([entry(n=10)])
    for name in ("log", "checkpoint"):  # in place, so that the directory is the registered one
        subprocess.run(["rm", "-r", state.path / name], check=True)
        subprocess.run(["cp", "-a", tmp_path / "backup" / name, state.path], check=True)
    with pytest.raises(AuditUnavailable, match=r"^the log has 10 records, .* covers 11$"):
        Notary(state).checkpoint()
    with pytest.raises(AuditUnavailable, match="but record #10 was there before"):
        append([entry()])


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "it is no text with signatures below an empty line"),
        ("x\ny\n\n— z AAAAAAAA\n".encode(), "it has no origin, size and root"),
        (None, "it is one of `licet/other`"),
    ],
)
def test_a_checkpoint_of_somebody_else_is_not_built_upon(
    state: StateDirectory, log: list[bytes], content: bytes | None, why: str
) -> None:
    if content is None:
        signer = notes.Signer("licet/other", bytes(32))
        content = signer.sign(Head("licet/other", 3, bytes(32)), 1).data
    path = state.path / "checkpoint"
    path.write_bytes(content)
    with pytest.raises(AuditUnavailable) as caught:
        Notary(state).checkpoint()
    assert caught.value.message == f"`{path}` holds no checkpoint of this log: {why}"
    path.unlink()
    assert head_of(Notary(state).checkpoint()).size == 10
    assert head_of(signed(state)).size == 10


def test_another_key_of_the_same_name_is_not_believed(state: StateDirectory, log: list[bytes]) -> None:
    forger = notes.Signer(notes.origin_of(state.log_id), bytes(32))
    (state.path / "checkpoint").write_bytes(forger.sign(Head(forger.key.name, 3, bytes(32)), 1).data)
    with pytest.raises(AuditUnavailable, match=f"it is not signed by licet/{state.log_id}"):
        Notary(state).checkpoint()


@pytest.mark.parametrize(
    "change",
    [shutil.rmtree, lambda top: (top / "0" / "001").unlink(), lambda top: os.truncate(top / "0" / "001", 9)],
)
def test_tiles_that_were_lost_are_made_again(
    state: StateDirectory, append: Append, entry: Make, change: Callable[[Path], None]
) -> None:
    append([entry(n=n) for n in range(600)])
    top = state.path / "tile"
    before = {path: path.read_bytes() for path in top.rglob("*") if path.is_file()}
    change(top)
    if (top / "0" / "001").exists():
        with pytest.raises(AuditUnavailable, match=r"001` is not the tile that the records make$"):
            Notary(state).checkpoint()
        (top / "0" / "001").unlink()
    assert Notary(state).checkpoint() == signed(state)
    assert {path: path.read_bytes() for path in top.rglob("*") if path.is_file()} == before


def test_a_copy_signs_nothing(state: StateDirectory, log: list[bytes], tmp_path: Path) -> None:
    subprocess.run(["cp", "-r", state.path, tmp_path / "copy"], check=True)
    with pytest.raises(AuditUnavailable, match="signs nothing: another directory"):
        Notary(read_state(tmp_path / "copy")).checkpoint(renew=True)


@pytest.mark.parametrize("name", ["tree.lock", "log.lock"])
def test_a_lock_that_is_never_given_back_hangs_nobody(
    state: StateDirectory, log: list[bytes], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(checkpointer, "_PATIENCE", 0.05)
    (state.path / "sync.lock").unlink()  # else what is durable is known without the lock
    with (state.path / name).open("rb+") as held:
        assert try_lock(held.fileno())
        with pytest.raises(AuditUnavailable) as caught:
            Notary(state).checkpoint()
    assert caught.value.message == f"another process held `{state.path / name}` for 0 s"
    assert Notary(state).checkpoint() == signed(state)


def run(state: StateDirectory, rounds: int, records: int, segment_bytes: int) -> subprocess.Popen[str]:
    command = [sys.executable, PROGRAM, state.path, *map(str, (rounds, records, segment_bytes))]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def check(state: StateDirectory, heads: list[tuple[int, str]]) -> None:
    """That all of what was signed is of one tree, and that tiles and checkpoint are right as they are."""
    found = leaves(state)
    assert all(slow_root(found[:size]).hex() == root for size, root in heads)
    newest = head_of(signed(state))
    known = seen.of(state.log_id)
    assert known is not None and known.head is not None
    assert max(size for size, _ in heads) <= known.head.size <= newest.size <= len(found)
    assert slow_root(found[: newest.size]) == newest.root
    assert complete(state, newest.size)
    fresh = GrowingTree()
    fresh.extend(found[: newest.size])
    for tile, data in fresh.tiles().items():
        kept = read_tile(state, tile.level, tile.number)
        assert kept is not None and kept.startswith(data)  # it may have grown when the process died
        assert {kept[at : at + 32] for at in range(0, len(kept), 32)} <= leaves_above(found, tile.level)


def leaves_above(found: list[bytes], level: int) -> set[bytes]:
    """The hashes that tiles of a level may hold."""
    width = 1 << 8 * level
    return {slow_root(found[at : at + width]) for at in range(0, len(found) - width + 1, width)}


def heads_in(output: str) -> list[tuple[int, str]]:
    """What the program said; a line that its death cut off was not said."""
    return [(int(size), root) for size, root in (line.split() for line in output.split("\n")[:-1])]


def kill_at(state: StateDirectory, chance: random.Random) -> None:
    process = run(state, 1000, chance.choice([1, 40, 300]), chance.choice([20_000, 2**26]))
    assert process.stdout is not None
    said = [process.stdout.readline() for _ in range(chance.randint(1, 8))]
    time.sleep(chance.random() / 50)  # the moment is the case, it is not waited for anything
    process.send_signal(signal.SIGKILL)
    rest, _ = process.communicate(timeout=60)
    check(state, heads_in("".join(said) + rest))


@pytest.mark.parametrize(
    "seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(4, 60))]
)
def test_a_kill_at_any_moment_leaves_what_the_next_process_goes_on_from(
    state: StateDirectory, append: Append, entry: Make, seed: int
) -> None:
    chance = random.Random(seed)
    for _ in range(3):
        kill_at(state, chance)
    append([entry()])
    assert not [path for path in state.path.iterdir() if path.name.startswith(".")]
    found = leaves(state)
    assert head_of(signed(state)) == Head(f"licet/{state.log_id}", len(found), slow_root(found))
    assert LogReader(state).verify().status == "proven"


def test_processes_that_sign_at_once_sign_one_tree(state: StateDirectory) -> None:
    processes = [run(state, 12, 30, 20_000) for _ in range(3)]
    heads = [head for process in processes for head in heads_in(process.communicate(timeout=120)[0])]
    assert len(heads) == 36
    assert [process.returncode for process in processes] == [0, 0, 0]
    check(state, heads)
    assert head_of(signed(state)).size == len(leaves(state))
    kept = sorted(int(path.name) for path in (state.path / "checkpoints").iterdir())
    assert [segment.first for segment in listing(state)[1:]] == kept[: len(listing(state)) - 1]


def test_a_log_whose_old_segments_are_gone_goes_on(
    state: StateDirectory, append: Append, entry: Make
) -> None:
    append(*[[entry(n=n) for n in range(90)] for _ in range(12)], segment_bytes=40_000)
    found = leaves(state)
    gone, *kept = listing(state)
    size = kept[0].first
    assert size < len(found) // 256 * 256
    gone.path.unlink()
    append([entry(n=n) for n in range(700)])
    notary = Notary(state)
    found += leaves(state)[len(found) - size :]
    assert head_of(notary.checkpoint()) == Head(f"licet/{state.log_id}", len(found), slow_root(found))
    snapshot = Snapshot.of(listing(state), state.log_id)
    assert tree.inclusion(LogHashes(state, snapshot), 3, len(found)) == slow_path(3, found)
    shutil.rmtree(state.path / "tile")
    with pytest.raises(AuditUnavailable, match=r"can't be computed: record #0 is in no segment of the log$"):
        Notary(state).checkpoint(renew=True)
