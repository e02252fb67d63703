"""The attacks on a log, each found as far as it can be: by who saw the log before, and by who never did."""

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from forging import edited, failed, forge, told, verify
from licet.errors import AuditUnavailable
from licet.plain import canonical
from licet.record import Entry, Kept, Record
from licet.state import StateDirectory
from licet_audit import keys, notes, seen
from licet_audit.notes import Signer
from licet_audit.reader import LogReader
from licet_audit.verification.verify import Wanted
from licet_audit.verification.verify import verify as verified

Append = Callable[..., list[Record]]
Make = Callable[..., Entry]

SIZE = 300  # records, so that there is a tile


@pytest.fixture
def log(state: StateDirectory, append: Append, entry: Make) -> Path:
    append([entry(n=n) for n in range(SIZE - 1)])
    return state.path / "log" / "seg-00000000000000000000.jsonl"


@pytest.fixture
def outsider(home: Path) -> Callable[[], None]:
    """Forget all that this user saw and has of any log."""

    def forget() -> None:
        for name in ("seen", "keys"):
            shutil.rmtree(home / name, ignore_errors=True)

    return forget


def own_key(state: StateDirectory) -> Signer:
    return keys.signer(state)


def other_key(state: StateDirectory) -> Signer:
    return Signer(notes.origin_of(state.log_id), b"\x07" * 32)


def change_one(lines: list[bytes]) -> list[bytes]:
    return [*lines[:100], edited(lines[100], body={"n": "other"}), *lines[101:]]


def leave_one_out(lines: list[bytes]) -> list[bytes]:
    return [*lines[:100], *lines[101:]]


Attack = Callable[[StateDirectory, Path], None]


def edit_one(state: StateDirectory, log: Path) -> None:
    log.write_bytes(b"".join(change_one(log.read_bytes().splitlines(keepends=True))))


def delete_one(state: StateDirectory, log: Path) -> None:
    log.write_bytes(b"".join(leave_one_out(log.read_bytes().splitlines(keepends=True))))


def truncate(state: StateDirectory, log: Path) -> None:
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:200]))


FOUND: dict[str, tuple[Attack, str, set[str], int | None]] = {
    "edit": (edit_one, "tampered", {"chain", "tree"}, 100),
    "edit and rehash the tail": (
        lambda state, log: forge(state, log, change_one), "tampered", {"tree"}, None
    ),
    "delete": (delete_one, "tampered", {"order", "chain", "tree"}, 100),
    "delete and rehash the tail": (
        lambda state, log: forge(state, log, leave_one_out), "incomplete", {"tree"}, None
    ),
    "truncate": (truncate, "incomplete", {"tree"}, None),
}  # fmt: skip
"""What the log's own checkpoint shows, if the attacker leaves it: status, claims, the first bad record."""


@pytest.mark.parametrize("attack", FOUND)
@pytest.mark.parametrize("remembers", [True, False])
def test_what_contradicts_the_checkpoint_is_found_by_anybody(
    state: StateDirectory, log: Path, outsider: Callable[[], None], attack: str, *, remembers: bool
) -> None:
    do, status, claims, bad = FOUND[attack]
    do(state, log)
    if not remembers:
        outsider()
    result = verify(state)
    assert result.status == status
    assert set(failed(result)) == claims | ({"consistency"} if remembers else set())
    assert result.first_bad_seq == bad


def test_a_tile_that_is_left_names_the_record_that_was_rewritten(state: StateDirectory, log: Path) -> None:
    tile = (state.path / "tile" / "0" / "000").read_bytes()
    forge(state, log, change_one)
    (state.path / "tile" / "0" / "000").write_bytes(tile)
    result = verify(state)
    lines = log.read_bytes().splitlines(keepends=True)
    assert (result.status, result.first_bad_seq) == ("tampered", 100)
    assert result.first_bad_byte == sum(map(len, lines[:100]))


def rolled_back(state: StateDirectory, log: Path, append: Append, entry: Make) -> None:
    """Cut the log, and bring back the checkpoint of then: the same as restoring a backup."""
    backup = state.path.with_name("backup")
    shutil.copytree(state.path, backup)
    append([entry(n=n) for n in range(50)])
    assert verify(state).records == SIZE + 50
    for name in ("log", "tile", "checkpoint"):
        target, source = state.path / name, backup / name
        shutil.rmtree(target) if target.is_dir() else target.unlink()
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)


def test_a_restored_backup_is_found_by_who_saw_more(
    state: StateDirectory, log: Path, append: Append, entry: Make, outsider: Callable[[], None]
) -> None:
    rolled_back(state, log, append, entry)
    result = verify(state)
    assert (result.status, set(failed(result))) == ("incomplete", {"consistency"})
    assert failed(result)["consistency"] == "350 records were seen before, now the log ends with #299"
    assert result.not_proven[0].endswith(": they do not continue what this user saw before")
    outsider()
    result = verify(state)
    assert result.status == "proven"
    assert told(result, "consistency") == (None, "this user never saw a checkpoint of this log before")
    assert "that the last 300 records are the ones that were written" in result.not_proven[0]


def test_wiping_and_starting_again_is_found_by_who_knows_the_key(
    state: StateDirectory, log: Path, outsider: Callable[[], None]
) -> None:
    genuine = own_key(state).key
    forge(state, log, lambda lines: lines[:100], other_key(state))
    result = verify(state)
    assert (result.status, set(failed(result))) == ("tampered", {"signatures", "consistency"})
    assert "is not signed by the key of this log" in failed(result)["signatures"]
    outsider()
    result = verified(state, Wanted(key=genuine))
    assert (result.status, set(failed(result))) == ("tampered", {"signatures", "tree"} & set(failed(result)))
    result = verify(state)
    assert result.status == "proven"
    ok, detail = told(result, "signatures")
    assert ok is None
    assert (
        f"compare its fingerprint with its owner's; SHA-256 of the key {other_key(state).key.fingerprint}"
        in detail
    )
    known = seen.of(state.log_id)
    assert known is not None
    assert known.key == other_key(state).key  # pinned at first use, and the answer said so


@pytest.mark.parametrize("what", [change_one, leave_one_out, lambda lines: [*change_one(lines), lines[5]]])
def test_a_rewrite_with_the_stolen_key_is_found_by_another_verifier(
    state: StateDirectory,
    log: Path,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    what: Callable[[list[bytes]], list[bytes]],
) -> None:
    other = tmp_path / "other"
    shutil.copytree(home / "seen", other / "licet" / "seen")
    forge(state, log, what, own_key(state))
    shutil.rmtree(home / "seen")
    assert verify(state).status == "proven"  # who can write the log and this directory can do this
    other.chmod(0o700)
    (other / "licet").chmod(0o700)
    monkeypatch.setenv("XDG_STATE_HOME", str(other))
    result = verify(state)
    assert result.status == ("incomplete" if what is leave_one_out else "tampered")
    assert set(failed(result)) == {"consistency"}


def test_a_line_that_was_signed_in_another_spelling_is_found_by_who_does_not_trust_the_key(
    state: StateDirectory, log: Path, outsider: Callable[[], None]
) -> None:
    genuine = own_key(state)

    def spaced(content: dict[str, Any]) -> bytes:
        line = canonical(content)
        return line.replace(b'"kind":', b'"kind": ') if content["seq"] == 100 else line

    forge(state, log, lambda lines: lines, genuine, spaced)
    outsider()
    result = verify(state)
    assert (result.status, result.first_bad_seq) == ("tampered", 100)
    assert {name: why.split(": ")[1] for name, why in failed(result).items()} == {
        "bytes": "it is not in canonical form"
    }
    result = verified(state, Wanted(key=genuine.key))
    assert result.status == "proven"
    assert told(result, "bytes") == (
        True,
        "every line is a record: 300 stand as the key of the log signed them, 0 were spelled again",
    )
    for read in (lambda: list(LogReader(state).records()), lambda: LogReader(state).records_of("r")):
        with pytest.raises(AuditUnavailable, match="is no record: it is not in canonical form"):
            read()


def test_records_after_the_last_checkpoint_can_be_cut_unseen_and_are_counted(
    state: StateDirectory, log: Path
) -> None:
    kept = log.read_bytes()
    checkpoint = (state.path / "checkpoint").read_bytes()
    lines = kept.splitlines(keepends=True)
    extended = forge_on(lines, 7)
    log.write_bytes(b"".join(extended))
    result = verify(state)
    ok, detail = told(result, "unsigned_tail")
    assert (result.status, ok) == ("proven", None)
    assert detail == (
        "7 records are not signed yet, the first of them of 2026-11-29T17:00:00.000000000Z: only the chain "
        "holds them together"
    )
    assert "that the last 7 records are the ones that were written" in result.not_proven[0]
    log.write_bytes(kept)
    assert (state.path / "checkpoint").read_bytes() == checkpoint
    assert verify(state).status == "proven"


def forge_on(lines: list[bytes], count: int) -> list[bytes]:
    from forging import rehash

    return rehash([*lines, *lines[-1:] * count])


@pytest.fixture
def everything(state: StateDirectory, append: Append, entry: Make) -> StateDirectory:
    """A log with several files, kept checkpoints, tiles of two levels, content, and a tail set aside."""
    content = Entry(
        "request", "k", {}, "2026-11-29T17:00:00.000000000Z", 1, kept=(Kept("code", b"print(1)" * 9),)
    )
    append(*[[entry(n=n) for n in range(40)] for _ in range(15)], [content], segment_bytes=64_000)
    newest = sorted((state.path / "log").iterdir())[-1]
    with newest.open("ab") as file:
        file.write(b'{"body":{"half')
    append([entry()], segment_bytes=64_000)
    assert verify(state).status == "proven"
    return state


PROVE_NOTHING = ("log.vkey", ".lock", "log.lock", "sync.lock", "tree.lock", "id")


def mutate(data: bytes, random_: random.Random) -> bytes:
    changed = bytearray(data)
    place = random_.randrange(len(data) + 1)
    what = random_.choice(("set", "insert", "delete"))
    if what == "insert" or place == len(data):
        changed.insert(place, random_.randrange(256))
    elif what == "delete":
        del changed[place]
    else:
        changed[place] ^= random_.randrange(1, 256)
    return bytes(changed)


def try_mutations(state: StateDirectory, numbers: range) -> None:
    files = sorted(path for path in state.path.rglob("*") if path.is_file() and path.stat().st_size)
    remembered = seen.of(state.log_id)
    for number in numbers:
        random_ = random.Random(number)
        path = random_.choice(files)
        good = path.read_bytes()
        path.write_bytes(mutate(good, random_))
        result = LogReader(state).verify()  # opened before, as `id` may be what is changed
        name = path.relative_to(state.path).as_posix()
        if name in PROVE_NOTHING:
            assert result.status == "proven", (number, name)
        else:
            assert result.status in ("tampered", "incomplete"), (number, name, result)
        assert seen.of(state.log_id) == remembered
        path.write_bytes(good)
    assert verify(state).status == "proven"


def test_no_mutation_of_any_file_passes(everything: StateDirectory) -> None:
    names = {path.relative_to(everything.path).parts[0] for path in everything.path.rglob("*")}
    assert {"log", "tile", "checkpoints", "checkpoint", "content", "quarantine", "log.vkey", "id"} <= names
    try_mutations(everything, range(0, 1000, 10))


@pytest.mark.soak
def test_no_mutation_of_any_file_passes_a_thousand_times(everything: StateDirectory) -> None:
    try_mutations(everything, range(1000))


def test_the_key_beside_the_log_decides_nothing_once_a_key_is_known(state: StateDirectory, log: Path) -> None:
    (state.path / "log.vkey").write_text(f"{other_key(state).key}\n")
    result = verify(state)
    assert result.status == "proven"
    assert told(result, "signatures")[1].endswith("; `log.vkey` beside the log is another key")
    os.unlink(state.path / "log.vkey")
    assert verify(state).status == "proven"
