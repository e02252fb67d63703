"""Reports about how code ends and what it prints: the right reason, the right error, the whole output."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest
from licet import Limits, Termination
from licet.backend import GuestError
from licet.errors import InvalidRequest

CPYTHON = "controlled_process"


def test_report_exit_and_exceptions_02_keyboard_interrupt(
    row: Any, on: Any, naive: Any, backend: str
) -> None:
    assert naive(row.code).returncode == -signal.SIGINT  # as if the operator had pressed Ctrl-C
    runtime = on(backend)
    result = runtime.run_sync(row.code)
    assert (result.termination, result.exit_code) == (Termination.exited, 1)
    assert result.error == GuestError("KeyboardInterrupt", "", 1)
    assert runtime.run_sync("1 + 1").value == 2


def test_report_exit_and_exceptions_03_base_exception(row: Any, on: Any, blockers: Any) -> None:
    result = on(CPYTHON).run_sync(row.code)
    assert (result.termination, result.exit_code) == (Termination.exited, 1)
    assert result.error == GuestError("Odd", "x", 3)
    assert blockers(on("monty").run_sync(row.code)) == [("syntax", "class_inheritance", "Monty 1.4 lacks it")]


def test_report_exit_and_exceptions_04_odd_position(row: Any, on: Any, backend: str) -> None:
    result = on(backend).run_sync(row.code)
    assert (result.termination, result.exit_code) == (Termination.exited, 1)
    assert result.error == GuestError("ValueError", "boom", 2)


HOSTILE = {
    "str raises": "def __str__(self): raise RuntimeError('no text')",
    "str exits": "def __str__(self): raise SystemExit(0)",
    "str is no text": "def __str__(self): return 5",
    "str is too deep": "def __str__(self): return str(self)",
}


@pytest.mark.parametrize("method", HOSTILE.values(), ids=HOSTILE)
def test_report_exit_and_exceptions_05_hostile_text(row: Any, on: Any, blockers: Any, method: str) -> None:
    assert HOSTILE["str raises"] in row.code
    code = row.code.replace(HOSTILE["str raises"], method)
    result = on(CPYTHON).run_sync(code)
    assert (result.termination, result.exit_code, result.success) == (Termination.exited, 1, False)
    assert result.error == GuestError("E", "<no message: its text could not be made>", 3)
    assert result.stderr.endswith("\nE: <exception str() failed>\n")
    refused = blockers(on("monty").run_sync(code))
    assert ("syntax", "class_inheritance", "Monty 1.4 lacks it") in refused


def test_report_exit_and_exceptions_07_crash(row: Any, on: Any, naive: Any) -> None:
    assert naive(row.code).returncode == -signal.SIGSEGV
    result = on(CPYTHON).run_sync(row.code)
    assert (result.termination, result.exit_code, result.stdout) == (Termination.exited, 139, "a\n")
    assert result.error == GuestError("SIGSEGV", "the code was ended by signal 11")
    assert result.summary == "SIGSEGV: the code was ended by signal 11"
    assert on("monty").run_sync(row.code).termination is Termination.policy_denied


def test_report_output_capture_02_bytes_that_are_no_text(row: Any, on: Any, naive: Any) -> None:
    with pytest.raises(UnicodeDecodeError):
        naive(row.code, encoding="utf-8")
    runtime = on(CPYTHON)
    for ending, exit_code in (("None", 0), ("sys.exit(3)", 3)):
        result = runtime.run_sync(row.code + ending)
        assert (result.termination, result.exit_code) == (Termination.exited, exit_code)
        assert result.stdout == "ok \ufffd\ufffd\ufffd end\n"
        assert (result.stdout_kept, result.stderr_kept) == ((b"ok \xff\xfe\x80 end\n", b""), (b"", b""))
        json.dumps(result.as_json()).encode("ascii")


def test_report_output_capture_03_characters_cut_in_two(row: Any, on: Any, backend: str) -> None:
    runtime = on(backend)
    whole = runtime.run_sync(row.code)
    assert whole.stdout == "日" * 50000 + "\n"  # however the pieces were cut on their way
    short = runtime.run_sync(row.code, limits=Limits(stdout=10))
    assert (short.stdout_truncated, short.stdout_bytes) == (True, 150_001)
    assert short.stdout == "日\n… 149994 bytes left out …\n日\n"
    head, tail = short.stdout_kept
    assert len(head + tail) == 10


def test_report_output_capture_04_lone_surrogates(row: Any, on: Any, naive: Any, recorded: Any) -> None:
    with pytest.raises(UnicodeEncodeError):
        naive("input()", input="\ud800", encoding="utf-8")
    runtime = on(CPYTHON)
    said = runtime.run_sync(row.code, metadata={"user": "\ud800"})
    assert (said.success, said.stdout) == (True, "'\\ud800'\n")
    value = runtime.run_sync("['\\ud800', {'\\udfff': 1}]")
    assert value.value == ["\ud800", {"\udfff": 1}]
    error = runtime.run_sync("raise ValueError('\\udc80')")
    assert error.error == GuestError("ValueError", r"\udc80", 1)
    for result in (said, value, error):
        json.loads(json.dumps(result.as_json(), ensure_ascii=False).encode("utf-8"))
    asked = [line["body"]["metadata"] for line in recorded() if line["kind"] == "request"]
    assert asked == [{"user": "\\ud800"}, {}, {}]


def test_report_output_capture_04_lone_surrogates_of_a_request(on: Any, backend: str) -> None:
    runtime = on(backend)
    refused = runtime.run_sync("x = 1\nx = '\ud800'")
    assert refused.termination is Termination.policy_denied
    assert refused.detail == "line 2: the code holds half of a surrogate pair, which is no character"
    json.dumps(refused.as_json(), ensure_ascii=False).encode("utf-8")
    with pytest.raises(InvalidRequest, match="`a` holds half of a surrogate pair, which is no character"):
        runtime.run_sync("a", inputs={"a": "\ud800"})
