"""What a supervised run yields on Windows: value, error, output, exit code, environment; or under Wine."""

from __future__ import annotations

import asyncio
import ctypes
import hashlib
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from licet.supervise import (
    Fault,
    InterpreterStatus,
    Program,
    Reason,
    Report,
    Snippet,
    Spec,
    Stop,
    probe_interpreter,
    run_blocking,
)
from licet.supervise import run as run_async
from licet.supervise.spec import INTERPRETER

if sys.platform != "win32":
    pytest.skip("needs Windows; `.ci/wine` runs it under Wine", allow_module_level=True)


def test_a_snippet_reports_its_value(run: Any) -> None:
    ran = run(Snippet("print(a)\na * 2", {"a": 4}))
    assert (ran.outcome.reason, ran.outcome.exit_code, ran.outcome.swept) == (Reason.exited, 0, True)
    assert (ran.outcome.report, ran.outcome.applied) == (Report(8, "8"), ("job object", "handle list"))
    assert (ran.stdout, ran.stderr) == (b"4\n", b"")


@pytest.mark.parametrize("value", [7**5000, {1: (2, b"\xff")}, [float("inf"), None], {"schlüssel": {2, 3}}])
def test_values_cross_whole_in_both_directions(run: Any, value: object) -> None:
    assert run(Snippet("value", {"value": value})).outcome.report.value == value


def test_half_of_a_surrogate_pair_comes_back_as_it_is(run: Any) -> None:
    assert run("'\\ud800'").outcome.report == Report("\ud800", r"'\ud800'")


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ("x = 1\n\n1/0", Fault("ZeroDivisionError", "division by zero", 3)),
        ("raise ValueError('\\ud800')", Fault("ValueError", r"\ud800", 1)),
        ("print('\\ud800')", Fault("UnicodeEncodeError", None, 1)),  # type: ignore[arg-type]
        ("def f(:\n    pass\n", Fault("SyntaxError", "invalid syntax", 1)),
        ("raise KeyboardInterrupt", Fault("KeyboardInterrupt", "", 1)),
        ("input('name? ')", Fault("EOFError", "EOF when reading a line", 1)),
    ],
)
def test_an_uncaught_exception_is_reported_with_its_line(run: Any, code: str, fault: Fault) -> None:
    outcome = run(code).outcome
    found = outcome.report.error
    assert (outcome.reason, outcome.exit_code, found.type, found.line) == (
        Reason.exited,
        1,
        fault.type,
        fault.line,
    )
    assert fault.message in (None, found.message)


@pytest.mark.parametrize(
    ("code", "exit_code", "stdout", "stderr"),
    [
        ("import sys\nprint('a', end='')\nsys.exit()", 0, b"a", b""),
        ("raise SystemExit(7)", 7, b"", b""),
        ("raise SystemExit(-1)", 0xFFFFFFFF, b"", b""),
        ("import sys\nsys.exit('bye')", 1, b"", b"bye\n"),
        ("import os\nprint('whole', end=' ')\nprint('output', end='')\nos._exit(5)", 5, b"whole output", b""),
        ("import atexit\natexit.register(print, 'last')\nprint('first')", 0, b"first\nlast\n", b""),
        (
            "import threading as t\nt.Thread(target=t.Event().wait, daemon=True).start()\nprint('x')",
            0,
            b"x\n",
            b"",
        ),
        ("import sys\nsys.stdout.buffer.write(b'ok \\xff\\r\\n')\nNone", 0, b"ok \xff\r\n", b""),
        ("import os, signal\nos.kill(os.getpid(), 77)", 77, b"", b""),
    ],
)
def test_every_way_to_exit(run: Any, code: str, exit_code: int, stdout: bytes, stderr: bytes) -> None:
    ran = run(code)
    assert (ran.outcome.reason, ran.outcome.exit_code) == (Reason.exited, exit_code)
    assert (ran.outcome.report, ran.stdout, ran.stderr) == (Report(), stdout, stderr)


def test_a_crash_is_an_exit_with_its_status_and_keeps_the_output(run: Any) -> None:
    code = (
        "import ctypes\nprint('a')\nctypes.windll.kernel32.TerminateProcess(ctypes.c_void_p(-1), 0xC0000005)"
    )
    ran = run(code)
    assert (ran.outcome.reason, ran.outcome.exit_code, ran.stdout) == (Reason.exited, 0xC0000005, b"a\n")


@pytest.mark.parametrize("stdin", [b"", b"two\r\nlines", b"x" * (3 << 20), bytes(range(256))])
def test_standard_input_is_exactly_what_is_given(run: Any, stdin: bytes) -> None:
    code = "import sys, hashlib\nhashlib.sha256(sys.stdin.buffer.read()).hexdigest()"
    assert run(code, stdin=stdin).outcome.report.value == hashlib.sha256(stdin).hexdigest()


def test_standard_input_that_nobody_reads_does_no_harm(run: Any) -> None:
    assert run("'done'", stdin=b"x" * (4 << 20)).outcome.report.value == "done"


def test_no_standard_stream_is_a_console(run: Any) -> None:
    assert run("import os\n[os.isatty(n) for n in range(3)]").outcome.report.value == [False] * 3


def visible(environment: dict[str, str]) -> dict[str, str]:
    """An environment without what Wine adds to each of its processes."""
    own = {"SYSTEMDRIVE"} if "WINECONFIGDIR" in environment else set()
    return {k: v for k, v in environment.items() if not k.startswith("WINE") and k not in own}


def test_the_environment_is_what_is_given_and_what_windows_needs(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CANARY", "leaked")
    needed = {"SYSTEMROOT": os.environ["SYSTEMROOT"]}
    code = "import os\ndict(os.environ)"
    assert visible(run(code).outcome.report.value) == needed
    given = {"A": "1", "PYTHONPATH": "C:\\nowhere", "Grün": "ß 漢 \U0001f600"}
    found = visible(run(code, environment=given).outcome.report.value)
    assert found == {**needed, "A": "1", "PYTHONPATH": "C:\\nowhere", "GRÜN": "ß 漢 \U0001f600"}
    twin = subprocess.run(
        [sys.executable, "-c", "import os; print(os.environ['CANARY'])"], capture_output=True, check=True
    )
    assert twin.stdout.split() == [b"leaked"]


@pytest.mark.parametrize(
    ("environment", "why"),
    [
        ({"A=B": "x"}, "`A=B` can't be the name of a variable"),
        ({"A": "x\0"}, "the value of `A` holds a NUL"),
        ({"Path": "1", "PATH": "2"}, "`Path` and `PATH` name the same variable here"),
    ],
)
def test_a_bad_environment_is_a_failed_launch(run: Any, environment: dict[str, str], why: str) -> None:
    outcome = run("1", environment=environment).outcome
    assert (outcome.reason, outcome.detail) == (
        Reason.launch_failed,
        f"`{INTERPRETER}` can't be started: {why}",
    )


def test_the_interpreter_is_isolated(run: Any, tmp_path: Path) -> None:
    for name in ("io.py", "csv.py", "site.py", "sitecustomize.py"):
        (tmp_path / name).write_text("raise SystemExit(99)")
    code = (
        "import sys, os, io, csv\n"
        "[sys.flags.isolated, sys.flags.no_site, sys.flags.dont_write_bytecode, sys.flags.utf8_mode,\n"
        " os.getcwd() in sys.path, '' in sys.path, 'site' in sys.modules, os.getcwd(), sys.argv]"
    )
    found = run(code).outcome.report.value
    assert found == [1, 1, 1, 1, False, False, False, str(tmp_path), ["<string>"]]


def test_paths_arguments_and_code_may_be_of_any_script(run: Any, tmp_path: Path) -> None:
    folder = tmp_path / "données ü 漢字 \U0001f40d"
    folder.mkdir()
    (folder / "ñ.txt").write_text("¡hola!", "utf-8")
    code = "import os\n[os.path.basename(os.getcwd()), open('ñ.txt', encoding='utf-8').read()]"
    assert run(code, workdir=str(folder)).outcome.report.value == [folder.name, "¡hola!"]
    arguments = ("a b", 'say "hi"', "back\\slash\\", "\\\\unc\\x y\\", "", "%PATH% & ^|", "漢字 \U0001f40d")
    show = "import sys; sys.stdout.buffer.write(ascii(sys.argv[1:]).encode()); sys.exit(3)"
    ran = run(Program((sys.executable, "-I", "-X", "utf8", "-c", show, *arguments)))
    assert (ran.outcome.reason, ran.outcome.exit_code) == (Reason.exited, 3)
    assert ran.stdout.decode() == ascii(list(arguments))


@pytest.mark.parametrize(
    ("name", "why"), [("missing", "no such file or directory"), ("file", "not a directory")]
)
def test_a_working_directory_that_is_none_runs_nothing(run: Any, tmp_path: Path, name: str, why: str) -> None:
    (tmp_path / "file").write_text("")
    path = str(tmp_path / name)
    outcome = run("1", workdir=path).outcome
    assert (outcome.reason, outcome.detail) == (
        Reason.launch_failed,
        f"working directory `{path}` can't be entered: {why}",
    )


def test_what_is_no_program_is_a_failed_launch(run: Any, tmp_path: Path) -> None:
    plain = tmp_path / "plain.exe"
    plain.write_text("no program")
    for path, why in (
        (r"C:\nowhere\python.exe", "no such file or directory"),
        (str(plain), "exec format error"),
        (
            str(tmp_path / "a.bat"),
            "a batch file is run by a shell, which reads arguments by rules of its own",
        ),
    ):
        for options in ({"work": Program((path,))}, {"work": Snippet("1"), "interpreter": path}):
            outcome = run(**options).outcome
            assert (outcome.reason, outcome.detail) == (
                Reason.launch_failed,
                f"`{path}` can't be started: {why}",
            )


def test_an_input_that_cannot_cross_starts_nothing(run: Any) -> None:
    with pytest.raises(ValueError, match=r"`a.b` is a `builtin_function_or_method`"):
        run(Snippet("1", {"a": {"b": len}}))


FIND_CHANNEL = """\
import os
def is_open(fd):
    try:
        return bool(os.fstat(fd))
    except OSError:
        return False
fd = next(n for n in range(3, 4096) if is_open(n))
def frame(text, size=None):
    data = text.encode()
    os.write(fd, (len(data) if size is None else size).to_bytes(4, 'big') + data)
"""


@pytest.mark.parametrize(
    ("attack", "why"),
    [
        ("frame('{', 1)", "what the code reported is unusable: Expecting property name"),
        ("frame('', 1 << 31)", "what the code reported is unusable: a frame of 2147483648 bytes"),
        (
            "os.write(fd, b'\\0\\0\\0\\xff' + b'x'); os.close(fd)",
            "what the code reported is unusable: the last",
        ),
    ],
)
def test_a_spoilt_report_loses_the_value_and_nothing_else(run: Any, attack: str, why: str) -> None:
    ran = run(FIND_CHANNEL + "print('before')\n" + attack + "\n'the value'")
    assert (ran.outcome.exit_code, ran.outcome.report, ran.stdout) == (0, Report(), b"before\n")
    assert ran.outcome.detail.startswith(why)


def test_a_channel_flood_does_not_block_the_code(run: Any) -> None:
    flood = "for _ in range(200): os.write(fd, bytes(65536))\nprint('on')\n1"
    ran = run(FIND_CHANNEL + flood)
    assert (ran.outcome.exit_code, ran.stdout, ran.outcome.report) == (0, b"on\n", Report())


def test_a_flood_of_output_is_drained_whole_or_ends_the_run(run: Any) -> None:
    flood = "import os\nblock = b'x' * 65536\nfor _ in range({}): os.write({}, block)\n'end'"
    ran = run(flood.format(512, 1))
    assert (ran.outcome.report.value, len(ran.stdout)) == ("end", 32 << 20)
    seen = bytearray()

    def keep(stream: str, data: bytes) -> bool:
        seen.extend(data)
        return len(seen) <= 1 << 20

    ran = run(flood.format(1 << 20, 2), on_output=keep)
    assert ran.outcome.reason is Reason.output_limit
    assert 1 << 20 < len(seen) < 4 << 20


def test_both_streams_are_drained_at_once_and_empty_writes_are_no_end(run: Any) -> None:
    code = (
        "import os, threading\ndef flood(fd):\n"
        "    for _ in range(64): os.write(fd, b''); os.write(fd, b'x' * 65536)\n"
        "t = threading.Thread(target=flood, args=(2,))\nt.start()\nflood(1)\nt.join()\n'end'"
    )
    ran = run(code)
    assert (ran.outcome.report.value, len(ran.stdout), len(ran.stderr)) == ("end", 4 << 20, 4 << 20)


def test_a_fault_of_the_host_ends_the_run_and_is_raised(run: Any) -> None:
    def fail(stream: str, data: bytes) -> bool:
        raise LookupError("disk full")

    with pytest.raises(LookupError, match="disk full"):
        run("import time\nprint(1)\nwhile True: time.sleep(60)", on_output=fail)


def test_only_streams_and_the_channel_are_inherited(run: Any) -> None:
    event = ctypes.windll.kernel32.CreateEventW(None, True, False, None)
    os.set_handle_inheritable(event, True)
    try:
        code = f"import ctypes; print(ctypes.windll.kernel32.SetEvent({event}))"
        twin = [sys.executable, "-I", "-c", code]
        assert subprocess.run(twin, capture_output=True, close_fds=False, check=True).stdout.split() == [b"1"]
        assert ctypes.windll.kernel32.ResetEvent(event) == 1
        run(code)
        assert ctypes.windll.kernel32.WaitForSingleObject(event, 0) == 258
    finally:
        ctypes.windll.kernel32.CloseHandle(event)


def test_a_child_of_the_code_does_not_get_the_channel(run: Any) -> None:
    child = "import os, sys; print(os.get_handle_inheritable(int(sys.argv[1])))"
    code = (
        FIND_CHANNEL + "import msvcrt, subprocess, sys\nhandle = msvcrt.get_osfhandle(fd)\n"
        f"done = subprocess.run([sys.executable, '-c', {child!r}, str(handle)], close_fds=False,\n"
        "    stderr=subprocess.PIPE)\n[done.returncode, b'WinError 6' in done.stderr]"
    )
    assert run(code).outcome.report.value == [1, True]


def test_limits_that_the_host_keeps_stand_and_others_are_named(run: Any) -> None:
    from licet.supervise.windows.job import kept_limits

    outcome = run("1", memory=1 << 30, cpu_time=30.0).outcome
    kept = kept_limits()
    assert outcome.report.value == 1
    for name, limit, stands in (
        ("memory", 1 << 30, kept.memory is not None),
        ("cpu_time", 30.0, kept.cpu_time is not None),
    ):
        assert (f"limit {name} at {limit}" in outcome.applied) is stands
        assert (name in outcome.dropped) is not stands


def keeps_limits() -> bool:
    if sys.platform != "win32":
        return False
    from licet.supervise.windows.job import kept_limits

    return None not in (kept_limits().memory, kept_limits().cpu_time)


@pytest.mark.skipif(not keeps_limits(), reason="needs a Windows whose jobs keep limits, which Wine's do not")
def test_limits_that_stand_are_enforced(run: Any) -> None:
    assert run("x = bytearray(1 << 30)", memory=256 << 20).outcome.reason is Reason.memory_limit
    assert run("while True: pass", cpu_time=0.5).outcome.reason is Reason.cpu_limit


def test_nothing_is_leaked(run: Any) -> None:
    codes = ["1", "1/0", "print('x')", "import os; os._exit(1)", "import time; time.sleep(60)"]
    run("1")
    before = holdings()
    for number in range(15):
        run(codes[number % len(codes)], wall_time=0.3, stdin=b"x" * (number % 2))
        run("1", workdir=r"C:\nowhere")
        run(Program((r"C:\nowhere\a.exe",)))
    assert holdings() == before


def holdings() -> tuple[int, int]:
    count = ctypes.c_uint32()
    assert ctypes.windll.kernel32.GetProcessHandleCount(ctypes.c_void_p(-1), ctypes.byref(count))
    return count.value, threading.active_count()


def test_runs_in_several_threads(run: Any, tmp_path: Path) -> None:
    values: list[Any] = []

    def work(number: int) -> None:
        spec = Spec(Snippet(f"print({number})\n{number}"), str(tmp_path), wall_time=60.0)
        written = bytearray()
        outcome = run_blocking(spec, lambda stream, data: written.extend(data) is None)
        values.append((outcome.report.value, bytes(written)))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(values) == [(number, b"%d\n" % number) for number in range(4)]


def test_a_run_in_an_event_loop(tmp_path: Path) -> None:
    outcome = asyncio.run(run_async(Spec(Snippet("2"), str(tmp_path)), lambda stream, data: True))
    assert outcome.report.value == 2


def test_stop_that_is_thrown_before_the_start_ends_the_run(run: Any) -> None:
    with Stop() as stop:
        stop.set()
        stop.set()
        outcome = run("import time\nwhile True: time.sleep(60)", stop=stop).outcome
    assert (outcome.reason, outcome.swept) == (Reason.cancelled, True)
    stop.set()


def test_probing_names_what_is_wrong(tmp_path: Path) -> None:
    found = probe_interpreter(sys.executable, startup_time=60.0)
    assert (found.status, found.version) == (InterpreterStatus.ok, sys.version_info[:3])
    broken = tmp_path / "python.exe"
    broken.write_text("no program")
    assert probe_interpreter(str(broken)).status is InterpreterStatus.launch_failed
    assert probe_interpreter(r"C:\nowhere\python.exe").status is InterpreterStatus.not_found
    assert probe_interpreter("C:\\").status is InterpreterStatus.not_executable
    assert probe_interpreter("").status is InterpreterStatus.empty_path
