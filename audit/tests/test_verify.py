"""Verification: each claim by itself, and the place of what is wrong."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from forging import Edit, change, edited, failed, forge, rehash, told, verify
from licet.errors import AuditUnavailable
from licet.record import Entry, Record
from licet.state import StateDirectory, read_state
from licet_audit import seen
from licet_audit.chain import MAX_LINE
from licet_audit.reader import LogReader
from licet_audit.verification.verify import Wanted
from licet_audit.verification.verify import verify as verified

Append = Callable[..., list[Record]]
Make = Callable[..., Entry]


def seen_size(state: StateDirectory) -> int | None:
    known = seen.of(state.log_id)
    return known.head.size if known and known.head else None


def test_an_honest_log_is_proven_and_says_what_is_not(state: StateDirectory, segment: Path) -> None:
    result = verify(state)
    assert (result.status, result.records, result.first_bad_seq) == ("proven", 10, None)
    assert {claim.name: claim.ok for claim in result.claims} == {
        **dict.fromkeys(("bytes", "log", "order", "chain", "segments", "contradictions", "start"), True),
        **dict.fromkeys(("tail", "gaps", "tree", "signatures", "consistency", "unsigned_tail"), True),
        **dict.fromkeys(("content", "quarantine", "version", "outcomes"), True),
        "anchors": None,
        "clock": None,  # the times of these records are made up, save that of the first
    }  # fmt: skip
    assert len(result.not_proven) == 3
    assert "no anchor outside this host has seen it" in result.not_proven[1]


def insert_copy(lines: list[bytes]) -> list[bytes]:
    return [*lines[:5], lines[4], *lines[5:]]


ATTACKS: dict[str, tuple[Edit, set[str], int]] = {
    "edit": (lambda x: [*x[:4], edited(x[4], kind="selection"), *x[5:]], {"chain"}, 4),
    "edit the link": (lambda x: [*x[:4], edited(x[4], prev="0" * 64), *x[5:]], {"chain"}, 4),
    "edit the first": (lambda x: [edited(x[0], time=""), *x[1:]], {"chain"}, 0),
    "edit the last": (lambda x: [*x[:9], edited(x[9], kind="selection")], set(), None),
    "edit the number": (lambda x: [*x[:4], edited(x[4], seq=5), *x[5:]], {"order", "chain"}, 4),
    "number as text": (lambda x: [*x[:4], edited(x[4], seq="4"), *x[5:]], {"bytes", "chain"}, 4),
    "number as truth": (lambda x: [x[0], edited(x[1], seq=True), *x[2:]], {"bytes", "chain"}, 1),
    "delete": (lambda x: [*x[:4], *x[5:]], {"order", "chain"}, 4),
    "swap": (lambda x: [*x[:4], x[5], x[4], *x[6:]], {"order", "chain"}, 4),
    "repeat": (insert_copy, {"order", "chain"}, 5),
    "other log": (lambda x: [*x[:4], edited(x[4], log="0" * 32), *x[5:]], {"log", "chain"}, 4),
    "other spelling": (lambda x: [*x[:4], x[4].replace(b'":', b'": ', 1), *x[5:]], {"bytes", "chain"}, 4),
    "escaped": (
        lambda x: [*x[:4], x[4].replace("ä".encode(), b"\\u00e4"), *x[5:]], {"bytes", "chain"}, 4
    ),
    "key twice": (
        lambda x: [*x[:4], x[4].replace(b'"kind":', b'"kind":1,"kind":'), *x[5:]], {"bytes", "chain"}, 4
    ),
    "no JSON": (lambda x: [*x[:4], b"\xff\n", *x[5:]], {"bytes", "chain"}, 4),
    "empty line": (lambda x: [*x[:4], b"\n", *x[4:]], {"bytes", "order", "chain"}, 4),
    "deep": (lambda x: [*x[:4], b"[" * 10**6 + b"\n", *x[5:]], {"bytes", "chain"}, 4),
    "long": (lambda x: [*x[:4], b"[" * (2 * MAX_LINE) + b"\n", *x[5:]], {"bytes", "chain"}, 4),
    "long number": (lambda x: [*x[:4], b"9" * 10**5 + b"\n", *x[5:]], {"bytes", "chain"}, 4),
    "body no object": (lambda x: [*x[:4], edited(x[4], body=[]), *x[5:]], {"bytes", "chain"}, 4),
    "no kind": (lambda x: [*x[:4], b"{}\n", *x[5:]], {"bytes", "chain"}, 4),
}  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_is_found_and_placed(state: StateDirectory, segment: Path, attack: str) -> None:
    edit, claims, bad = ATTACKS[attack]
    before = segment.read_bytes().splitlines(keepends=True)
    change(segment, edit)
    result = verify(state)
    assert set(failed(result)) == claims | {"tree", "consistency"}
    assert (result.status, result.first_bad_seq) == ("tampered", bad)
    if claims:
        assert result.first_bad_byte == sum(map(len, before[:bad]))
        assert any(f"record #{bad} at byte {result.first_bad_byte}" in why for why in failed(result).values())


@pytest.mark.parametrize("kept", range(10))
def test_a_log_that_was_cut_between_records_is_incomplete(
    state: StateDirectory, segment: Path, kept: int
) -> None:
    change(segment, lambda lines: lines[:kept])
    result = verify(state)
    assert result.status == "incomplete"
    assert set(failed(result)) == {"tree", "consistency"}


def test_verifying_pins_what_it_saw(state: StateDirectory, segment: Path, home: Path) -> None:
    (home / "seen" / f"{state.log_id}.json").unlink()
    assert verify(state).status == "proven"
    change(segment, lambda lines: lines[:9])
    assert verify(state).status == "incomplete"
    assert seen_size(state) == 10


def test_a_failed_verification_pins_nothing(state: StateDirectory, segment: Path, home: Path) -> None:
    (home / "seen" / f"{state.log_id}.json").unlink()
    change(segment, lambda lines: [*lines[:4], *lines[5:]])
    assert verify(state).status == "tampered"
    assert seen_size(state) is None


def test_a_copy_is_held_against_the_original_and_never_speaks_for_it(
    state: StateDirectory, segment: Path, tmp_path: Path, append: Append, entry: Make
) -> None:
    subprocess.run(["cp", "-r", state.path, tmp_path / "copy"], check=True)
    copy = read_state(tmp_path / "copy")
    assert verify(copy).status == "proven"
    pinned = seen.of(state.log_id)
    lines = (copy.path / "log" / segment.name).read_bytes().splitlines(keepends=True)
    (copy.path / "log" / segment.name).write_bytes(b"".join(rehash([*lines, lines[9], lines[9]])))
    assert verify(copy).status == "proven"
    assert seen.of(state.log_id) == pinned
    append([entry()])
    assert verify(state).status == "proven"


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"key":1,"checkpoint":null,"opened":"","closed":null,"path":""}']
)
def test_a_damaged_memory_is_told_and_refuses_appending(
    state: StateDirectory, segment: Path, home: Path, append: Append, content: str
) -> None:
    memory = home / "seen" / f"{state.log_id}.json"
    memory.write_text(content)
    result = verify(state)
    assert (result.status, set(failed(result))) == ("unverifiable", {"signatures", "consistency"})
    assert "does not say what was seen of the log" in failed(result)["consistency"]
    assert memory.read_text() == content
    with pytest.raises(AuditUnavailable, match="does not say what was seen"):
        append([])


@pytest.fixture
def files(state: StateDirectory, append: Append, entry: Make) -> list[Path]:
    """A log of several files."""
    append(*[[entry(n=n)] for n in range(12)], segment_bytes=1200)
    found = sorted((state.path / "log").iterdir())
    assert len(found) > 3
    return found


def test_a_missing_first_file_is_incomplete(state: StateDirectory, files: list[Path]) -> None:
    files[0].unlink()
    result = verify(state)
    assert (result.status, set(failed(result))) == ("incomplete", {"start", "tree", "consistency"})


def test_a_missing_file_in_the_middle_is_tampering(state: StateDirectory, files: list[Path]) -> None:
    first = int(files[1].stem[4:])
    files[1].unlink()
    result = verify(state)
    assert (result.status, result.first_bad_seq) == ("tampered", first)
    assert set(failed(result)) == {"segments", "order", "tree", "consistency"}
    last = int(files[2].stem[4:]) - 1
    assert f"record #{first}: records #{first} to #{last} are missing" in failed(result)["order"]


def test_a_missing_last_file_is_incomplete(state: StateDirectory, files: list[Path]) -> None:
    files[-1].unlink()
    result = verify(state)
    assert (result.status, set(failed(result))) == ("incomplete", {"tree", "consistency"})


def test_a_file_cut_in_the_middle_of_the_log_is_tampering(state: StateDirectory, files: list[Path]) -> None:
    os.truncate(files[1], files[1].stat().st_size - 5)
    assert verify(state).status == "tampered"


def test_a_split_file_is_noticed(state: StateDirectory, files: list[Path]) -> None:
    *kept, last = files[0].read_bytes().splitlines(keepends=True)
    files[0].write_bytes(b"".join(kept))
    files[0].with_name(f"seg-{len(kept):020d}.jsonl").write_bytes(last)
    assert set(failed(verify(state))) == {"segments"}


def test_other_files_are_not_read(state: StateDirectory, files: list[Path]) -> None:
    (state.path / "log" / "seg-1.jsonl").write_text("x")
    (state.path / "log" / "notes.txt").write_text("x")
    os.mkfifo(state.path / "log" / "seg-00000000000000000099.jsonl")
    (state.path / "log" / "seg-00000000000000000098.jsonl").symlink_to("/dev/zero")
    assert verify(state).status == "proven"


def test_no_log_is_unverifiable(state: StateDirectory) -> None:
    result = verify(state)
    assert (result.status, result.records, failed(result)) == (
        "unverifiable",
        0,
        {"readable": "there is no log"},
    )
    assert list(LogReader(state).records()) == []


def test_a_wiped_log_is_incomplete(state: StateDirectory, segment: Path) -> None:
    segment.unlink()
    result = verify(state)
    assert (result.status, result.records) == ("incomplete", 0)
    assert failed(result)["consistency"] == "10 records were seen before, now the log holds no record"


def test_an_unknown_version_is_unverifiable(state: StateDirectory, segment: Path, home: Path) -> None:
    (home / "seen" / f"{state.log_id}.json").unlink()
    (state.path / "checkpoint").unlink()
    change(segment, lambda lines: rehash([*lines[:9], edited(lines[9], v=2, new={"field": 1})]))
    result = verify(state)
    assert (result.status, set(failed(result))) == ("unverifiable", {"version"})
    assert "record #9" in failed(result)["version"]


def test_an_unreadable_log_is_unverifiable(state: StateDirectory, segment: Path) -> None:
    segment.rename(state.path / "kept")
    (state.path / "log").rmdir()
    (state.path / "log").write_text("")
    result = verify(state)
    assert (result.status, failed(result)) == (
        "unverifiable", {"readable": f"`{state.path / 'log'}`: not a directory"}
    )  # fmt: skip


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX resource limits")
def test_memory_does_not_grow_with_the_log(state: StateDirectory, segment: Path) -> None:
    lines = segment.read_bytes().splitlines(keepends=True)
    forge(state, segment, lambda _: [*lines, *[edited(lines[9], body={"x": "y" * 9000})] * 3000])
    program = (
        "import resource, sys; from pathlib import Path; from licet.state import read_state;"
        "from licet_audit.reader import LogReader; reader = LogReader(read_state(Path(sys.argv[1])));"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss;"
        "print(reader.verify().records, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, state.path], capture_output=True, text=True, check=True, timeout=60
    )
    records, grown_kib = map(int, done.stdout.split())
    assert records == 3010
    assert segment.stat().st_size > 25 * 2**20
    assert grown_kib < 24 * 1024  # the parts that are read at a time, and what reading them loads


def test_the_check_in_the_readme_works(state: StateDirectory, segment: Path) -> None:
    readme = Path(__file__).parents[1] / "README.md"
    code = readme.read_text().split("```python\n")[1].split("```")[0]
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, cwd=state.path.parent, check=False).returncode == 0
    change(segment, lambda lines: [*lines[:4], *lines[5:]])
    failed_check = subprocess.run(command, cwd=state.path.parent, capture_output=True, check=False)
    assert failed_check.stderr.endswith(b"AssertionError\n")


def test_a_key_that_is_given_counts_before_the_one_beside_the_log(
    state: StateDirectory, segment: Path, home: Path
) -> None:
    known = seen.of(state.log_id)
    assert known is not None
    (home / "seen" / f"{state.log_id}.json").unlink()
    (state.path / "log.vkey").write_text("nonsense")
    result = verify(state)
    assert (result.status, set(failed(result))) == ("unverifiable", {"signatures"})
    result = verified(state, Wanted(key=known.key))
    assert (result.status, told(result, "signatures")[0]) == ("proven", True)
    assert seen.of(state.log_id) is not None


@pytest.mark.parametrize("damage", [b"", b"\xff", b"x\n\n\xe2\x80\x94 x AAAAAAA=\n", None])
def test_a_checkpoint_that_is_damaged_or_gone_is_told(
    state: StateDirectory, segment: Path, damage: bytes | None
) -> None:
    checkpoint = state.path / "checkpoint"
    checkpoint.unlink() if damage is None else checkpoint.write_bytes(damage)
    result = verify(state)
    assert (result.status, set(failed(result))) == (
        "incomplete" if damage is None else "tampered",
        {"signatures"},
    )


def test_an_anchor_can_be_required(state: StateDirectory, segment: Path) -> None:
    result = verified(state, Wanted(require_anchor=True))
    assert (result.status, failed(result)) == (
        "incomplete",
        {"anchors": "no anchor outside this host has seen this log"},
    )


def test_time_that_went_back_is_told_where(state: StateDirectory, segment: Path) -> None:
    def at(second: str) -> str:
        return f"2026-11-29T17:00:{second}.000000000Z"

    times = [at("05"), at("05"), at("04"), at("01"), at("09"), at("07"), *[at("08")] * 4]
    forge(state, segment, lambda lines: [edited(x, time=t) for x, t in zip(lines, times, strict=True)])
    ok, detail = told(verify(state), "clock")
    assert ok is None
    assert "record #3 at byte" in detail
    assert f"{at('04')} is followed by {at('01')} (and 1 more)" in detail
