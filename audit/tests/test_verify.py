"""Verification: each claim by itself, each attack of the table found or honestly not proven."""

import json
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from licet.errors import AuditUnavailable
from licet.plain import canonical
from licet.record import Entry, Record, leaf_hash
from licet.state import StateDirectory, read_state
from licet_audit import seen
from licet_audit.chain import MAX_LINE
from licet_audit.claims import Verification
from licet_audit.reader import LogReader
from licet_audit.verify import _Runs

Append = Callable[..., list[Record]]
Make = Callable[..., Entry]
Edit = Callable[[list[bytes]], list[bytes]]


def verify(state: StateDirectory) -> Verification:
    return LogReader(state).verify()


def failed(result: Verification) -> dict[str, str]:
    return {claim.name: claim.detail for claim in result.claims if claim.ok is False}


def seen_size(state: StateDirectory) -> int | None:
    known = seen.of(state.log_id)
    return known.head.size if known and known.head else None


def change(segment: Path, edit: Edit) -> None:
    segment.write_bytes(b"".join(edit(segment.read_bytes().splitlines(keepends=True))))


def rehash(lines: list[bytes], log: str | None = None) -> list[bytes]:
    """What a forger who knows the format does: make every line fit the one before."""
    forged, prev = [], ""
    for seq, line in enumerate(lines):
        content = {**json.loads(line), "seq": seq, "prev": prev}
        text = canonical(content if log is None else {**content, "log": log})
        prev = leaf_hash(text)
        forged.append(text + b"\n")
    return forged


def edited(line: bytes, **fields: object) -> bytes:
    return canonical({**json.loads(line), **fields}) + b"\n"


def test_an_honest_log_is_proven_and_says_what_is_not(state: StateDirectory, segment: Path) -> None:
    result = verify(state)
    assert (result.status, result.records, result.first_bad_seq) == ("proven", 10, None)
    assert [(claim.name, claim.ok) for claim in result.claims] == [
        (name, True)
        for name in (
            "bytes", "log", "order", "chain", "segments", "contradictions",
            "start", "tail", "last_seen", "version", "outcomes",
        )
    ]  # fmt: skip
    assert len(result.not_proven) == 2
    assert "no witness" in result.not_proven[0]


def insert_copy(lines: list[bytes]) -> list[bytes]:
    return [*lines[:5], lines[4], *lines[5:]]


ATTACKS: dict[str, tuple[Edit, set[str], int]] = {
    "edit": (lambda x: [*x[:4], edited(x[4], kind="result"), *x[5:]], {"chain"}, 4),
    "edit the link": (lambda x: [*x[:4], edited(x[4], prev="0" * 64), *x[5:]], {"chain"}, 4),
    "edit the first": (lambda x: [edited(x[0], time=""), *x[1:]], {"chain"}, 0),
    "edit the last": (lambda x: [*x[:9], edited(x[9], kind="result")], {"last_seen"}, 9),
    "edit the number": (lambda x: [*x[:4], edited(x[4], seq=5), *x[5:]], {"order", "chain"}, 4),
    "number as text": (lambda x: [*x[:4], edited(x[4], seq="4"), *x[5:]], {"bytes", "chain"}, 4),
    "number as truth": (lambda x: [x[0], edited(x[1], seq=True), *x[2:]], {"bytes", "chain"}, 1),
    "delete": (lambda x: [*x[:4], *x[5:]], {"order", "chain", "last_seen"}, 4),
    "swap": (lambda x: [*x[:4], x[5], x[4], *x[6:]], {"order", "chain"}, 4),
    "repeat": (insert_copy, {"order", "chain", "last_seen"}, 5),
    "other log": (lambda x: [*x[:4], edited(x[4], log="0" * 32), *x[5:]], {"log", "chain"}, 4),
    "other spelling": (lambda x: [*x[:4], x[4].replace(b'":', b'": ', 1), *x[5:]], {"bytes", "chain"}, 4),
    "escaped": (
        lambda x: [*x[:4], x[4].replace("ä".encode(), b"\\u00e4"), *x[5:]], {"bytes", "chain"}, 4
    ),
    "key twice": (
        lambda x: [*x[:4], x[4].replace(b'"kind":', b'"kind":1,"kind":'), *x[5:]], {"bytes", "chain"}, 4
    ),
    "no JSON": (lambda x: [*x[:4], b"\xff\n", *x[5:]], {"bytes", "chain"}, 4),
    "empty line": (lambda x: [*x[:4], b"\n", *x[4:]], {"bytes", "order", "chain", "last_seen"}, 4),
    "deep": (lambda x: [*x[:4], b"[" * 10**6 + b"\n", *x[5:]], {"bytes", "chain"}, 4),
    "long": (lambda x: [*x[:4], b"[" * (2 * MAX_LINE) + b"\n", *x[5:]], {"bytes", "chain"}, 4),
    "long number": (lambda x: [*x[:4], b"9" * 10**5 + b"\n", *x[5:]], {"bytes", "chain"}, 4),
    "body no object": (lambda x: [*x[:4], edited(x[4], body=[]), *x[5:]], {"bytes", "chain"}, 4),
    "no kind": (lambda x: [*x[:4], b"{}\n", *x[5:]], {"bytes", "chain"}, 4),
    "rehash the tail": (lambda x: rehash([*x[:4], edited(x[4], kind="result"), *x[5:]]), {"last_seen"}, 9),
    "delete, rehash": (lambda x: rehash([*x[:4], *x[5:]]), {"last_seen"}, 10),
    "delete, rehash, go on": (lambda x: rehash([*x[:4], *x[5:], x[9], x[9]]), {"last_seen"}, 9),
}  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_is_found_and_placed(state: StateDirectory, segment: Path, attack: str) -> None:
    edit, claims, bad = ATTACKS[attack]
    before = segment.read_bytes().splitlines(keepends=True)
    change(segment, edit)
    result = verify(state)
    assert set(failed(result)) == claims | {"last_seen"}
    if claims == {"last_seen"} and attack == "delete, rehash":
        assert (result.status, result.first_bad_seq) == ("incomplete", None)
        assert failed(result)["last_seen"] == "record #9 was seen before, now the log ends with #8"
        return
    assert (result.status, result.first_bad_seq) == ("tampered", bad)
    if claims != {"last_seen"}:
        assert result.first_bad_byte == sum(map(len, before[:bad]))
        assert any(f"record #{bad} at byte {result.first_bad_byte}" in why for why in failed(result).values())


@pytest.mark.parametrize("kept", range(10))
def test_a_log_that_was_cut_between_records_is_incomplete(
    state: StateDirectory, segment: Path, kept: int
) -> None:
    change(segment, lambda lines: lines[:kept])
    result = verify(state)
    assert result.status == "incomplete"
    assert set(failed(result)) == {"last_seen"}


def test_without_a_pinned_head_a_forger_passes_and_the_answer_says_so(
    state: StateDirectory, segment: Path, home: Path
) -> None:
    change(segment, lambda lines: rehash([*lines[:4], edited(lines[4], kind="result"), *lines[5:]]))
    (home / "seen" / f"{state.log_id}.json").unlink()
    result = verify(state)
    assert result.status == "proven"
    assert {claim.name: claim.ok for claim in result.claims}["last_seen"] is None
    assert result.not_proven[0] == (
        "that the last 10 records are the ones that were written, or that none came after them: "
        "no record was seen by this user before"
    )


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
def test_a_damaged_pin_is_told_and_refuses_appending(
    state: StateDirectory, segment: Path, home: Path, append: Append, content: str
) -> None:
    (home / "seen" / f"{state.log_id}.json").write_text(content)
    result = verify(state)
    assert {claim.name: claim.ok for claim in result.claims}["last_seen"] is None
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
    assert (result.status, set(failed(result))) == ("incomplete", {"start"})


def test_a_missing_file_in_the_middle_is_tampering(state: StateDirectory, files: list[Path]) -> None:
    first = int(files[1].stem[4:])
    files[1].unlink()
    result = verify(state)
    assert (result.status, result.first_bad_seq) == ("tampered", first)
    assert set(failed(result)) == {"segments", "order", "chain", "last_seen"}


def test_a_missing_last_file_is_incomplete(state: StateDirectory, files: list[Path]) -> None:
    files[-1].unlink()
    result = verify(state)
    assert (result.status, set(failed(result))) == ("incomplete", {"last_seen"})


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
    assert failed(result)["last_seen"] == "record #9 was seen before, now the log holds no record"


def test_an_unknown_version_is_unverifiable(state: StateDirectory, segment: Path, home: Path) -> None:
    (home / "seen" / f"{state.log_id}.json").unlink()
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


def test_what_was_denied_and_executed_is_a_contradiction(
    state: StateDirectory, append: Append, entry: Make
) -> None:
    append([entry("decision", "a", effect="deny"), entry("execution", "b", "before"), entry("result", "b")])
    assert verify(state).status == "proven"
    append([entry("execution", "a", "before"), entry("result", "a")])
    result = verify(state)
    assert (result.status, result.first_bad_seq) == ("tampered", 4)
    assert failed(result) == {
        "contradictions": f"record #4 at byte {result.first_bad_byte} of seg-{0:020d}.jsonl: "
        "run `a` was denied before"
    }


def test_denied_runs_are_forgotten_with_their_results() -> None:
    runs = _Runs()
    tracemalloc.start()
    try:
        for number in range(20_000):
            runs.contradicts({"kind": "decision", "run_id": f"{number:026}", "body": {"effect": "deny"}})
            runs.contradicts({"kind": "result", "run_id": f"{number:026}", "body": {}})
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 10_000


def test_a_later_decision_counts(state: StateDirectory, append: Append, entry: Make) -> None:
    append([entry("decision", "a", effect="deny"), entry("decision", "a", effect="allow")])
    append([entry("execution", "a", "before"), entry("result", "a", termination="unknown")])
    result = verify(state)
    assert result.status == "proven"
    assert {claim.name: claim.detail for claim in result.claims}["outcomes"] == (
        "every run that began has a result; 1 ended as unknown"
    )


def test_an_open_run_is_an_unknown_outcome(state: StateDirectory, append: Append, entry: Make) -> None:
    append([entry("execution", "a", "before")])
    claim = next(claim for claim in verify(state).claims if claim.name == "outcomes")
    assert (claim.ok, claim.detail) == (None, "1 runs began and have no result yet, 0 ended as unknown")


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX resource limits")
def test_memory_does_not_grow_with_the_log(state: StateDirectory, segment: Path) -> None:
    lines = segment.read_bytes().splitlines(keepends=True)
    segment.write_bytes(
        b"".join(rehash([*lines, *(edited(lines[9], body={"x": "y" * 9000}) for _ in range(3000))]))
    )
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
    assert grown_kib < 8 * 1024


def mutations() -> st.SearchStrategy[tuple[str, float, int]]:
    where = st.floats(0, 1, exclude_max=True)
    return st.tuples(st.sampled_from(["set", "insert", "delete"]), where, st.integers(0, 255))


@settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)
@given(st.lists(mutations(), min_size=1, max_size=3))
def test_no_mutation_of_bytes_passes(
    state: StateDirectory, segment: Path, changes: list[tuple[str, float, int]]
) -> None:
    original = segment.with_suffix(".original")
    if not original.exists():
        original.write_bytes(segment.read_bytes())
    good = original.read_bytes()
    data = bytearray(good)
    for what, where, byte in changes:
        place = int(where * len(data))
        if what == "insert":
            data.insert(place, byte)
        elif what == "delete":
            del data[place]
        else:
            data[place] = byte
    segment.write_bytes(data)
    result = verify(state)
    assert (result.status == "proven") == (bytes(data) == good)
    if bytes(data) != good:
        assert result.status in ("tampered", "incomplete")


def test_the_check_in_the_readme_works(state: StateDirectory, segment: Path) -> None:
    readme = Path(__file__).parents[1] / "README.md"
    code = readme.read_text().split("```python\n")[1].split("```")[0]
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, cwd=state.path.parent, check=False).returncode == 0
    change(segment, lambda lines: [*lines[:4], *lines[5:]])
    failed_check = subprocess.run(command, cwd=state.path.parent, capture_output=True, check=False)
    assert failed_check.stderr.endswith(b"AssertionError\n")
