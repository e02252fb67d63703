"""Parts of a log: accepted as a whole, judged line by line, or scanned in processes, with one result."""

import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path
from typing import Any

import orjson
import pytest
from forging import change, told, verify, without_count
from hypothesis import given, settings
from hypothesis import strategies as st
from licet.record import Entry, Record, from_json
from licet.state import StateDirectory
from licet_audit import keys
from licet_audit.chain import decode
from licet_audit.claims import Verification
from licet_audit.verification import judge, parts, scan, workers
from licet_audit.verification import verify as verifying
from licet_audit.verification.verify import Wanted

Append = Callable[..., list[Record]]
Make = Callable[..., Entry]


@pytest.fixture
def log(state: StateDirectory, append: Append, entry: Make) -> list[Path]:
    """A log of several files, with runs that cross the borders of parts and content of many kinds."""
    runs = [
        [
            entry("request", f"r{n}", text="ä" if n % 7 == 0 else "a", deep=[[[n]]]),
            entry("decision", f"r{n}", effect="deny" if n % 5 == 0 else "allow"),
            *([] if n % 5 == 0 else [entry("execution", f"r{n}", "before")]),
            entry(
                "result",
                f"r{n}",
                "after",
                **({"executed": False} if n % 5 == 0 else {"termination": "unknown"}),
            ),
        ]
        for n in range(120)
    ]
    pairs = [pair for two in zip(runs[::2], runs[1::2], strict=True) for pair in zip_longest(*two)]
    interleaved = [one for pair in pairs for one in pair if one is not None]
    append(*[interleaved[at : at + 30] for at in range(0, len(interleaved), 30)], segment_bytes=40_000)
    return sorted((state.path / "log").iterdir())


AS_SIGNED = "every line is a record: {} stand as the key of the log signed them, {} were spelled again"


def line_by_line(state: StateDirectory, monkeypatch: pytest.MonkeyPatch) -> Verification:
    with monkeypatch.context() as patch:
        patch.setattr(workers, "scan", lambda part, log: None)
        return verifying.verify(state)


def in_parts(
    state: StateDirectory, monkeypatch: pytest.MonkeyPatch, size: int, processes: int = 1
) -> Verification:
    with monkeypatch.context() as patch:
        patch.setattr(parts, "PART", size)
        patch.setattr(workers, "WORTHWHILE", 1)
        return verifying.verify(state, Wanted(workers=processes))


def damaged(lines: list[bytes], seed: int) -> list[bytes]:
    """One of the ways in which a file can be wrong."""
    random_ = random.Random(seed)
    at = random_.randrange(len(lines))
    line = lines[at]
    ways: list[list[bytes]] = [
        [*lines[:at], *lines[at + 1 :]],
        [*lines[:at], line, *lines[at:]],
        [*lines[:at], line.replace(b'"time":"2026', b'"time":"2027'), *lines[at + 1 :]],
        [*lines[:at], line[: len(line) // 2]],
        [*lines[:at], line.replace(b'"v":1', b'"v":2'), *lines[at + 1 :]],
        [*lines[:at], b"\n", *lines[at:]],
        [*lines[:at], line[:-2] + b',"x":1.5}\n', *lines[at + 1 :]],
        [line for line in lines if b'"execution"' not in line],
    ]
    return random_.choice(ways)


def sign_half(state: StateDirectory) -> int:
    """Put an older checkpoint back; return how many records it covers."""
    kept = sorted((state.path / "checkpoints").iterdir())
    middle = len(kept) // 2
    shutil.copy(kept[middle], state.path / "checkpoint")
    for path in kept[middle + 1 :]:
        path.unlink()
    return int(kept[middle].name)


@pytest.mark.parametrize("seed", range(16))
def test_a_log_is_judged_alike_in_whatever_way_it_is_read(
    state: StateDirectory, log: list[Path], monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    if seed % 2:
        sign_half(state)
    if seed:
        change(log[7 * seed % len(log)], lambda lines: damaged(lines, seed))
    expected = line_by_line(state, monkeypatch)
    assert (expected.status == "proven") == (seed == 0)
    for size, processes in [(700, 1), (9_000, 1), (parts.PART, 1), (3_000, 1 if seed % 4 else 3)]:
        found = in_parts(state, monkeypatch, size, processes)
        if seed == 0:
            assert told(found, "bytes") == (True, AS_SIGNED.format(461, 0))
        if told(expected, "tree")[0] is False:  # then nothing counts that was taken as signed
            assert found == expected
        assert without_count(found) == without_count(expected)


def test_lines_after_the_checkpoint_are_spelled_again(
    state: StateDirectory, log: list[Path], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = sign_half(state)
    key = keys.signer(state).key
    shutil.rmtree(home / "seen")
    monkeypatch.setattr(parts, "PART", 3_000)
    found = verifying.verify(state, Wanted(key=key))
    assert (found.status, found.records) == ("proven", 461)
    assert told(found, "bytes") == (True, AS_SIGNED.format(size, 461 - size))
    assert told(found, "unsigned_tail")[1].startswith(f"{461 - size} records are not signed yet")


def test_an_honest_log_is_accepted_without_a_closer_look(
    state: StateDirectory, log: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "PART", 3_000)
    monkeypatch.setattr(judge.Judge, "check", None)
    result = verify(state)
    assert result.status == "proven"
    assert {claim.name: claim.detail for claim in result.claims}["outcomes"].endswith("; 96 ended as unknown")


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX programs")
@pytest.mark.parametrize(
    "program", ["", "/bin/false", "/nonexistent", "#!/bin/sh\nprintf '\\0\\0\\0\\0\\0\\0\\0\\0'; read part\n"]
)
def test_processes_that_do_not_start_or_die_are_done_without(
    state: StateDirectory, log: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    if program.startswith("#!"):
        script = tmp_path / "dies"
        script.write_text(program)
        script.chmod(0o700)
        program = str(script)
    monkeypatch.setattr(sys, "executable", program)
    assert in_parts(state, monkeypatch, 3_000, processes=2).status == "proven"


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**54), 2**54)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("ab.é{[", max_size=3), inner, max_size=3)
    ),
    max_leaves=12,
)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(
    value=values,
    depth=st.integers(0, 34),
    fields=st.dictionaries(
        st.sampled_from(["v", "seq", "prev", "kind", "phase", "kept", "mono_ns", "time", "other", "span_id"]),
        st.sampled_from([1, True, None, "", "1", "²", 0, {}, [], 1.5, {"code": "x"}, "0" * 20]),
        max_size=2,
    ),
)
def test_what_is_accepted_is_what_nothing_is_found_in(value: Any, depth: int, fields: dict[str, Any]) -> None:
    for _ in range(depth):
        value = [value]
    content = {
        "v": 1, "log": "l", "seq": 0, "prev": "", "writer": {}, "kind": "request", "run_id": "r",
        "time": "", "mono_ns": "1", "body": {"x": value}, **fields,
    }  # fmt: skip
    try:
        line = orjson.dumps(content, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # nothing that could stand in a file
        return
    try:
        from_json(decode(line))
        good = content["v"] is not True
    except ValueError:
        good = False
    found = scan.accepted(line + b"\n", "l", lambda committed: "intact")
    if found is not None:
        assert good
    elif good:  # a field that is unknown or says nothing takes the longer way
        assert "other" in fields or None in fields.values()


@pytest.mark.parametrize(
    "text", [b'{"a":1,"a":1}', b"1e16", b"-0", b"1E5", b'"\\u00e4"', b'"\\/"', b"[1 ]", b"1.0"]
)
def test_another_spelling_is_not_accepted(text: bytes) -> None:
    line = (
        b'{"body":{"x":%b},"kind":"request","log":"l","mono_ns":"1","prev":"","run_id":"r","seq":0,"time":"",'
        b'"v":1,"writer":{}}\n'
    )
    assert scan.accepted(line % b"1", "l", lambda committed: "intact") is not None
    assert scan.accepted(line % text, "l", lambda committed: "intact") is None


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="looks at processes in /proc")
def test_an_interrupt_ends_it_and_leaves_no_process(state: StateDirectory, log: list[Path]) -> None:
    program = (
        "import sys; from pathlib import Path; from licet.state import read_state;"
        "from licet_audit.verification import parts, verify, workers; parts.PART = 1000;"
        "workers.WORTHWHILE = 1;"
        "hear = lambda total: total is None and (print(flush=True), input());"
        "verify.verify(read_state(Path(sys.argv[1])), verify.Wanted(workers=2, hear=hear))"
    )
    verifier = subprocess.Popen(
        [sys.executable, "-c", program, state.path],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert verifier.stdout is not None
    verifier.stdout.readline()  # the first part is done, and the others are under way
    assert len(processes_of(state)) == 2
    verifier.send_signal(signal.SIGINT)
    _, errors = verifier.communicate(timeout=30)
    assert errors.strip().endswith(b"KeyboardInterrupt")
    assert processes_of(state) == []


def processes_of(state: StateDirectory) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if os.fsencode(state.path) in path.read_bytes().split(b"\0"):
                found.append(path.parent.name)
        except OSError:
            continue
    return found
