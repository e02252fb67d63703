"""The host's side of `licet.supervise`, with real processes; how runs end is tested with the backend."""

from __future__ import annotations

import ast
import asyncio
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from licet.supervise import (
    Fault,
    InterpreterStatus,
    ProcessOutcome,
    Program,
    Reason,
    Report,
    Snippet,
    Spec,
    Stop,
    can_confine_signals,
    keeper_shortfall,
    probe_interpreter,
    readback,
    run,
    run_blocking,
)
from licet.supervise.bootstrap import HELLO, SPLIT_LIMIT, keep_result
from licet.supervise.channel import Channel

pytestmark = pytest.mark.skipif(
    os.name != "posix" or keeper_shortfall() is not None, reason="needs a POSIX system where a keeper can run"
)

WALL = can_confine_signals()


def start(work: Snippet | Program, **options: Any) -> tuple[ProcessOutcome, bytes]:
    written = bytearray()

    def keep(stream: str, data: bytes) -> bool:
        written.extend(data)
        return True

    spec = Spec(work=work, workdir="/", **{"wall_time": 20.0, "confine_signals": WALL, **options})
    return run_blocking(spec, keep), bytes(written)


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux, whose /proc shows the process")
def test_the_host_looks_at_the_process_before_its_code_begins() -> None:
    for _ in range(20):
        outcome, _ = start(Snippet("1"), memory=1 << 30, cpu_time=5.0)
        assert set(outcome.seen) == {
            "working_directory",
            "process_isolation",
            "privilege_drop",
            "syscall_filter",
            "memory_limit",
            "cpu_time_limit",
        }
    assert outcome.seen["working_directory"] == "in /"
    assert outcome.seen["process_isolation"].endswith("no new privileges: 1")
    assert outcome.seen["memory_limit"] == f"soft {1 << 30}, hard {1 << 30}"
    assert outcome.seen["cpu_time_limit"] == "soft 5, hard 6"


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux, which shows the limits of a process")
def test_a_limit_that_the_system_did_not_take_lets_no_code_begin(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    read, given = readback.read, str(1 << 30).encode()
    monkeypatch.setattr(readback, "read", lambda path: read(path).replace(given, b"unlimited"))
    mark = tmp_path / "ran"
    outcome, _ = start(Snippet(f"open({str(mark)!r}, 'w')"), memory=1 << 30)
    told = f"memory_limit was set to {1 << 30}, and the system has unlimited"
    assert (outcome.reason, outcome.detail, mark.exists()) == (Reason.launch_failed, told, False)


def test_a_snippet_reports_its_value() -> None:
    outcome, written = start(Snippet("print(a)\na * 2", {"a": 4}))
    assert (outcome.reason, outcome.exit_code, outcome.signal, outcome.swept) == (
        Reason.exited,
        0,
        None,
        True,
    )
    assert outcome.report == Report(8, "8", None)
    assert written == b"4\n"


@pytest.mark.skipif(sys.platform != "linux", reason="walls of Linux")
def test_the_walls_that_stand_are_told() -> None:
    outcome, _ = start(Snippet("1"), confine_signals=False)
    assert outcome.applied == ("own session", "subreaper", "no new privileges")
    outcome, _ = start(Snippet("1"), cpu_time=2.5)
    assert "limit 0 at 3" in outcome.applied
    assert ("signals confined" in outcome.applied) is WALL


def test_a_program_is_run_without_a_shell() -> None:
    argv = (sys.executable, "-I", "-c", "import sys; print(sys.argv[1:]); sys.exit(3)", "$HOME; *")
    outcome, written = start(Program(argv))
    assert (outcome.reason, outcome.exit_code, outcome.report) == (Reason.exited, 3, Report())
    assert written == b"['$HOME; *']\n"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/nowhere/program", "`/nowhere/program` can't be started: no such file or directory"),
        ("/", "`/` can't be started: permission denied"),
    ],
)
def test_a_program_that_is_none_is_a_failed_launch(path: str, why: str) -> None:
    outcome, _ = start(Program((path,)))
    assert (outcome.reason, outcome.detail) == (Reason.launch_failed, why)


@pytest.mark.parametrize(
    ("interpreter", "why"),
    [
        ("/nowhere/python", "`/nowhere/python` can't be started: no such file or directory"),
        ("/", "`/` can't be started: permission denied"),
        ("/bin/true", "the interpreter ended before it ran anything"),
    ],
)
def test_an_interpreter_that_is_none_is_a_failed_launch(interpreter: str, why: str) -> None:
    outcome, _ = start(Snippet("1"), interpreter=interpreter)
    assert (outcome.reason, outcome.detail) == (Reason.launch_failed, why)


def test_a_bad_environment_is_a_failed_launch() -> None:
    outcome, _ = start(Snippet("1"), environment={"A=B": "x"})
    assert outcome.reason is Reason.launch_failed
    outcome, _ = start(Snippet("1"), environment={"A": "x\0"})
    assert outcome.reason is Reason.launch_failed


def test_another_copy_of_the_interpreter_gets_the_modules_as_text(tmp_path: Path) -> None:
    link = tmp_path / "python"
    link.symlink_to(Path(sys.executable).resolve())
    outcome, _ = start(Snippet("a", {"a": {1: (2,)}}), interpreter=str(link))
    assert outcome.report.value == {1: (2,)}


def test_stop_ends_a_run_from_another_thread() -> None:
    with Stop() as stop:
        spec = Spec(work=Snippet("print(1)\nwhile True: pass"), workdir="/")

        def on_output(stream: str, data: bytes) -> bool:
            threading.Thread(target=stop.set).start()
            return True

        assert run_blocking(spec, on_output, stop).reason is Reason.cancelled
        stop.set()
    with Stop() as stop:
        stop.set()
        assert run_blocking(spec, lambda stream, data: True, stop).reason is Reason.cancelled


def test_the_first_refusal_of_output_ends_the_run() -> None:
    spec = Spec(work=Snippet("while True: print('x' * 100)"), workdir="/")
    assert run_blocking(spec, lambda stream, data: False).reason is Reason.output_limit


def test_an_input_that_cannot_cross_starts_nothing() -> None:
    with pytest.raises(ValueError, match=r"`a.b` is a `builtin_function_or_method`"):
        start(Snippet("1", {"a": {"b": len}}))


def test_memory_too_small_to_go_on_is_still_an_answer() -> None:
    outcome, _ = start(Snippet("x = bytearray(4 << 20)"), memory=1 << 20)
    assert (outcome.reason, outcome.swept) == (Reason.memory_limit, True)


def test_run_is_callable_from_the_package() -> None:
    outcome = asyncio.run(run(Spec(Snippet("2"), "/"), lambda stream, data: True))
    assert outcome.report.value == 2


@pytest.mark.parametrize(
    ("code", "kept"),
    [
        ("x = 1\nx", "x = 1\n_result = (x\n)"),
        ("x = 1; x + x;  # c", "x = 1; _result = (x + x\n)"),
        ("f(a,\n  b)  # c", "_result = (f(a,\n  b)\n)"),
        ("é = 'é'; é", "é = 'é'; _result = (é\n)"),
        ("x = 1\r\nx", "x = 1\n_result = (x\n)"),
        ("x = 1 # end;\nx", "x = 1 # end\n_result = (x\n)"),
        ("*a, b", "_result = (*a, b\n)"),
        ("_result + _result_", "_result__ = (_result + _result_\n)"),
        ("'doc'", "_result = ('doc'\n)"),
    ],
)
def test_the_result_is_kept_where_it_was(code: str, kept: str) -> None:
    kept = kept.replace("# end\n", "# end;\n")
    text, result, undecided = keep_result(code)
    assert (text, undecided) == (kept, False)
    last = ast.parse(text).body[-1]
    assert isinstance(last, ast.Assign)
    assert ast.unparse(last.targets[0]) == result
    assert last.value.lineno == ast.parse(code).body[-1].lineno


def test_the_result_takes_no_name_of_an_input() -> None:
    outcome, _ = start(Snippet("1", {"_result": 2}))
    assert outcome.report.value == 1
    outcome, _ = start(Snippet("x = 1", {"_result": 2}))
    assert outcome.report.value is None


@pytest.mark.parametrize("code", ["", "x = 1", "if x:\n  1", "def f(): pass", "# c"])
def test_no_result_is_kept_where_there_is_none(code: str) -> None:
    assert keep_result(code) == (code, "_result", False)


@pytest.mark.parametrize(
    "code",
    [
        r"'\d'",
        "1if x else 2",
        "def f(:",
        "(" * 5000,
        "-" * 50_000 + "a",
        "a" + ".b" * 20_000,
        "a\0",
        "'\ud800'",
        "a" * (SPLIT_LIMIT + 1),
    ],
)
def test_the_guest_decides_where_the_host_could_have_trouble(code: str) -> None:
    assert keep_result(code) == (code, "_result", True)


@pytest.mark.parametrize(
    "code", ["x = 1\n(yield)", "print('ran')\nawait x", "print('ran')\n(lambda a, a: 0)"]
)
def test_nothing_runs_of_code_whose_last_line_does_not_compile(code: str) -> None:
    outcome, written = start(Snippet(code))
    assert outcome.report.error is not None
    assert (outcome.report.error.type, outcome.report.error.line) == ("SyntaxError", 2)
    assert b"ran" not in written


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("def f():\n  exec('\\n\\n\\n\\n1/0')\n\nf()", 2),
        (
            "from dataclasses import *\n@dataclass\nclass A:\n x: int = "
            "field(default_factory=lambda: 1/0)\nA()",
            4,
        ),
        ("from dataclasses import *\n@dataclass\nclass A:\n  x: int\nA()", 5),
        ("exec('x +')", 1),
        ("def f(n): return f(n + 1)\n\nf(0)", 1),
    ],
)
def test_the_line_of_an_error_is_a_line_of_the_code(code: str, line: int) -> None:
    outcome, _ = start(Snippet(code))
    assert outcome.report.error is not None
    assert outcome.report.error.line == line


@pytest.mark.parametrize("pad", ["", "\n#" + "x" * SPLIT_LIMIT], ids=["host", "guest"])
@pytest.mark.parametrize(
    ("code", "report"),
    [
        ("x = 1\n[x,\n x]", Report([1, 1], "[1, 1]")),
        ("x = 1\n(x /\n 0)", Report(error=Fault("ZeroDivisionError", "division by zero", 2))),
        ("x = 1", Report()),
        ("'doc'", Report("doc", "'doc'")),
        ("x = 1\nx +", Report(error=Fault("SyntaxError", "invalid syntax", 2))),
    ],
)
def test_host_and_guest_split_alike(code: str, report: Report, pad: str) -> None:
    assert start(Snippet(code + pad))[0].report == report


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("-" * 100_000 + "1", "the code is too complex for the parser"),
        ("a" + ".b" * 100_000, "the code is too complex for the parser"),
        ("(" * 5000 + "1" + ")" * 5000, "too many nested parentheses"),
    ],
)
def test_source_that_breaks_parsers_breaks_the_guest_alone(code: str, message: str) -> None:
    outcome, _ = start(Snippet(code), memory=1 << 30)
    assert (outcome.reason, outcome.exit_code, outcome.swept) == (Reason.exited, 1, True)
    assert outcome.report.error is not None
    assert (outcome.report.error.type, outcome.report.error.message) == ("SyntaxError", message)


def frame(text: bytes) -> bytes:
    return len(text).to_bytes(4, "big") + text


def test_a_channel_takes_frames_however_they_are_cut() -> None:
    data = HELLO + frame(b'{"value": [1], "repr": "[1]"}') + b"rest"
    for size in (1, 3, 1000):
        channel = Channel(1000)
        for position in range(0, len(data), size):
            channel.feed(data[position : position + size])
        assert (channel.begun, channel.report, channel.closed) == (True, Report([1], "[1]"), True)


@pytest.mark.parametrize(
    "data",
    [frame(b""), frame(b"{}"), frame(b"[]"), frame(b"null"), frame(b'{"begun": 1}'), b"\xff" * 9, b"\0\0"],
)
def test_a_channel_never_raises(data: bytes) -> None:
    channel = Channel(1000)
    channel.feed(data)
    channel.end()
    assert (channel.closed, channel.report) == (True, Report())
    assert channel.fault is not None


@pytest.fixture
def scripts(tmp_path: Path) -> dict[str, str]:
    def script(name: str, text: str, mode: int) -> str:
        path = tmp_path / name
        path.write_text(text)
        path.chmod(mode)
        return str(path)

    return {
        "plain": script("plain", "", 0o644),
        "broken": script("broken", "no program", 0o755),
        "other": script("other", "#!/bin/sh\necho hello\n", 0o755),
        "loud": script("loud", "#!/bin/sh\nwhile :; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done\n", 0o755),
        "old": script("old", "#!/bin/sh\necho python 2 7 18 CPython\n", 0o755),
        "hanging": script("hanging", "#!/bin/sh\nsleep 600 & exec sleep 600\n", 0o755),
    }


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("plain", InterpreterStatus.not_executable),
        ("broken", InterpreterStatus.launch_failed),
        ("other", InterpreterStatus.invalid_python),
        ("loud", InterpreterStatus.invalid_python),
        ("old", InterpreterStatus.unsupported_version),
        ("hanging", InterpreterStatus.startup_timeout),
    ],
)
def test_probing_names_what_is_wrong(scripts: dict[str, str], name: str, status: InterpreterStatus) -> None:
    assert probe_interpreter(scripts[name], startup_time=0.5).status is status


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("", InterpreterStatus.empty_path),
        (" ", InterpreterStatus.empty_path),
        ("/nowhere/python", InterpreterStatus.not_found),
        ("a\0b", InterpreterStatus.not_found),
        ("/", InterpreterStatus.not_executable),
    ],
)
def test_probing_says_without_running(path: str, status: InterpreterStatus) -> None:
    assert probe_interpreter(path).status is status


@pytest.mark.skipif(os.name != "posix", reason="needs a POSIX host")
def test_a_program_of_somebody_else_is_permission_denied() -> None:
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        path = Path(directory) / "python"
        path.write_text("")
        path.chmod(0o010)  # for its group alone, and the child is not in it
        assert as_somebody(lambda: probe_interpreter(str(path)).status) == "permission_denied"


def as_somebody(question: Callable[[], str]) -> str:
    """Ask in a child that is an ordinary user, which root is not; what is needed is imported already."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            os.write(write, str(question()).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return text


def test_probing_this_interpreter() -> None:
    found = probe_interpreter(sys.executable)
    assert (found.status, found.version) == (InterpreterStatus.ok, sys.version_info[:3])
    assert found.implementation == sys.implementation.name
