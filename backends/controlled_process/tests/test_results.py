"""What a run yields: value, error, exit status and whole output, for every way in which code can end."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import pytest
from licet.backend import GuestError, Termination
from licet.errors import LaunchFailed
from licet.values import Omitted, Opaque

Run = Callable[..., Any]


@pytest.fixture(params=["first run", "later run"])
def run(request: pytest.FixtureRequest, run: Run, run_first: Run) -> Run:
    """Code goes on in a fork of its keeper, or gets an interpreter of its own; nobody can tell."""
    return run_first if request.param == "first run" else run


@pytest.mark.parametrize(
    ("code", "value", "shown"),
    [
        ("x = 41\nx + 1  # answer\n", 42, "42"),
        ("1;", 1, "1"),
        ("", None, None),
        ("# nothing here\n", None, None),
        ('"doc"', "doc", "'doc'"),
        ("if True:\n  1", None, None),
        ("x = 1\nx = 2", None, None),
        ("None", None, None),
        ("(1,\n 2)", (1, 2), "(1, 2)"),
        ("import math\nmath.inf", float("inf"), "inf"),
        ("10**30", 10**30, str(10**30)),
        ("'\\ud800'", "\ud800", r"'\ud800'"),
        ("{1, 2} | {3}", {1, 2, 3}, "{1, 2, 3}"),
        ("object", Opaque("type", "<class 'object'>"), "<class 'object'>"),
        ("x = []\nx.append(x)\nx", [Omitted("cycle")], "[[...]]"),
        ("# coding: latin-1\n'é'", "é", "'é'"),
        ("a, *b = 1, 2, 3\nb", [2, 3], "[2, 3]"),
        ("\\\n5", 5, "5"),
        ("def f(n):\n    return n * 2\n\nf(\n    4,\n)", 8, "8"),
        ("__name__", "__main__", "'__main__'"),
        ("sorted(k for k in dict(globals()) if not k.startswith('__'))", [], "[]"),
    ],
)
def test_the_value_of_the_final_expression(run: Run, code: str, value: object, shown: str | None) -> None:
    ran = run(code)
    assert (ran.outcome.termination, ran.outcome.exit_code, ran.outcome.error) == (
        Termination.exited,
        0,
        None,
    )
    assert (ran.outcome.value, ran.outcome.value_repr) == (value, shown)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("x = 1\n\n1/0", GuestError("ZeroDivisionError", "division by zero", 3)),
        (
            "def f(a):\n    raise ValueError('boom')\n\nr = f(\n    a=1,\n)\n",
            GuestError("ValueError", "boom", 2),
        ),
        ("def f(:\n    pass\n", GuestError("SyntaxError", "invalid syntax", 1)),
        ("x = 1\nyield x", GuestError("SyntaxError", "'yield' outside function", 2)),
        ("raise KeyboardInterrupt\n", GuestError("KeyboardInterrupt", "", 1)),
        ("class Odd(BaseException):\n    pass\nraise Odd('x')\n", GuestError("Odd", "x", 3)),
        (
            "class E(Exception):\n    def __str__(self): raise RuntimeError('no text')\nraise E\n",
            GuestError("E", "<no message: its text could not be made>", 3),
        ),
        ("raise ValueError('x' * 9999)", GuestError("ValueError", "x" * 1999 + "…", 1)),
        ("raise ValueError('\\ud800')", GuestError("ValueError", r"\ud800", 1)),
        ("input('name? ')", GuestError("EOFError", "EOF when reading a line", 1)),
        ("'(' * 3 + (", GuestError("SyntaxError", "'(' was never closed", 1)),
    ],
)
def test_an_uncaught_exception_is_reported_with_its_line(run: Run, code: str, error: GuestError) -> None:
    ran = run(code)
    assert (ran.outcome.termination, ran.outcome.exit_code) == (Termination.exited, 1)
    assert ran.outcome.error == error
    assert ran.outcome.value is None
    assert ran.stderr != ""


def test_a_traceback_reads_as_cpython_writes_it(run: Run) -> None:
    ran = run("def f():\n    1/0\ntry:\n    f()\nexcept Exception as e:\n    raise KeyError('k') from e")
    assert ran.stderr == (
        "Traceback (most recent call last):\n"
        '  File "<string>", line 4, in <module>\n'
        '  File "<string>", line 2, in f\n'
        "ZeroDivisionError: division by zero\n"
        "\nThe above exception was the direct cause of the following exception:\n\n"
        "Traceback (most recent call last):\n"
        '  File "<string>", line 6, in <module>\n'
        "KeyError: 'k'\n"
    )


@pytest.mark.parametrize(
    ("code", "exit_code", "stdout", "stderr"),
    [
        ("import sys\nprint('a', end='')\nsys.exit()", 0, "a", ""),
        ("raise SystemExit(7)", 7, "", ""),
        ("import sys\nsys.exit('bye')", 1, "", "bye\n"),
        ("import os\nprint('whole', end=' ')\nprint('output', end='')\nos._exit(5)", 5, "whole output", ""),
        (
            "import threading\nt = threading.Thread(target=lambda: (e.wait(), print('thread')))\n"
            "e = threading.Event()\nt.start()\nprint('main')\ne.set()",
            0,
            "main\nthread\n",
            "",
        ),
        (
            "import threading as t\nt.Thread(target=t.Event().wait, daemon=True).start()\nprint('x')",
            0,
            "x\n",
            "",
        ),
        ("import atexit\natexit.register(print, 'last')\nprint('first')", 0, "first\nlast\n", ""),
        ("import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\nprint(bool(pid))", 0, "False\nTrue\n", ""),
        ("import sys\nsys.stdout.buffer.write(b'ok \\xff\\xfe end')\nNone", 0, "ok \ufffd\ufffd end", ""),
    ],
)
def test_every_way_to_exit(run: Run, code: str, exit_code: int, stdout: str, stderr: str) -> None:
    ran = run(code)
    assert (ran.outcome.termination, ran.outcome.exit_code) == (Termination.exited, exit_code)
    assert (ran.outcome.error, ran.outcome.value) == (None, None)
    assert (ran.stdout, ran.stderr) == (stdout, stderr)


def test_an_open_file_is_flushed_at_the_end(run: Run, tmp_path: Any) -> None:
    run("f = open('x.txt', 'w')\nf.write('kept')")
    assert (tmp_path / "x.txt").read_text() == "kept"


def test_a_death_by_signal_is_named_and_keeps_the_output(run: Run) -> None:
    ran = run("import ctypes\nprint('a')\nctypes.string_at(0)")
    assert ran.stdout == "a\n"
    assert (ran.outcome.termination, ran.outcome.exit_code) == (Termination.exited, 139)
    assert ran.outcome.error == GuestError("SIGSEGV", "the code was ended by signal 11")


def test_a_crash_leaves_no_core_file(run: Run, tmp_path: Any) -> None:
    run("import resource\nresource.setrlimit(resource.RLIMIT_CORE, resource.getrlimit(resource.RLIMIT_CORE))")
    run("import os\nos.abort()")
    assert list(tmp_path.iterdir()) == []


def test_surrogates_in_output_are_the_codes_own_error(run: Run) -> None:
    ran = run("print('\\ud800')")
    assert ran.outcome.error is not None
    assert (ran.outcome.error.type, ran.outcome.error.line) == ("UnicodeEncodeError", 1)


def test_inputs_become_names_of_their_own_types(run: Run) -> None:
    inputs = {"orders": [{"n": 1, "x": (2, b"\xff")}], "big": 7**5000, "odd": {1: {2, 3}}, "s": "\u20ac"}
    ran = run("[orders, big, odd, s]", inputs=inputs)
    assert ran.outcome.value == list(inputs.values())


def test_an_input_that_cannot_cross_runs_nothing(run: Run, tmp_path: Any) -> None:
    with pytest.raises(LaunchFailed, match=r"input `orders\[0\]` is a `builtin_function_or_method`"):
        run("open('ran', 'w')", inputs={"orders": [len]})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("stdin", [b"", b"two\nlines", b"x" * (3 << 20), bytes(range(256))])
def test_standard_input_is_exactly_what_is_given(run: Run, stdin: bytes) -> None:
    ran = run("import sys\nimport hashlib\nhashlib.sha256(sys.stdin.buffer.read()).hexdigest()", stdin=stdin)
    assert ran.outcome.value == hashlib.sha256(stdin).hexdigest()


def test_standard_input_that_nobody_reads_does_no_harm(run: Run) -> None:
    assert run("'done'", stdin=b"x" * (4 << 20)).outcome.value == "done"


def test_the_environment_is_exactly_what_is_given(run: Run) -> None:
    code = "import os\n[dict(os.environ), open('/proc/self/environ').read()]"
    assert run(code).outcome.value == [{}, ""]
    given = {"A": "1", "PYTHONPATH": "/nowhere", "PYTHONSTARTUP": "/nowhere", "LC_CTYPE": "C"}
    ran = run(code, environment=given)
    assert ran.outcome.value == [given, "".join(f"{k}={v}\0" for k, v in given.items())]


def test_the_interpreter_is_isolated(run: Run, tmp_path: Any) -> None:
    for name in ("io.py", "csv.py", "site.py", "sitecustomize.py", "usercustomize.py"):
        (tmp_path / name).write_text("raise SystemExit(99)")
    code = (
        "import sys, os, io, csv\n"
        "[sys.flags.isolated, sys.flags.no_site, sys.flags.dont_write_bytecode, sys.flags.utf8_mode,\n"
        " os.getcwd() in sys.path, '' in sys.path, 'site' in sys.modules, os.getcwd(), sys.argv]"
    )
    ran = run(code)
    assert ran.outcome.value == [1, 1, 1, 1, False, False, False, str(tmp_path), ["<string>"]]


def test_only_streams_and_the_channel_are_inherited(run: Run) -> None:
    ran = run("import os\nlen(os.listdir('/proc/self/fd')) - 1")
    assert ran.outcome.value == 4
    child = "import os,sys; print(len(os.listdir('/proc/self/fd')) - 1)"
    ran = run(f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {child!r}]).returncode")
    assert (ran.outcome.value, ran.stdout) == (0, "3\n")


@pytest.mark.parametrize(
    ("name", "why"),
    [("missing", "no such file or directory"), ("file", "not a directory"), ("nul\0", "embedded null byte")],
)
def test_a_working_directory_that_is_none_runs_nothing(run: Run, tmp_path: Any, name: str, why: str) -> None:
    (tmp_path / "file").write_text("")
    path = f"{tmp_path}/{name}"
    outcome = run("1", workdir=path).outcome
    assert outcome.termination is Termination.launch_failed
    assert outcome.detail == f"working directory `{path}` can't be entered: {why}"


def test_multiprocessing_works_where_it_needs_no_main_file(run: Run) -> None:
    ran = run(
        "import multiprocessing as mp\nc = mp.get_context('fork')\nq = c.Queue()\n"
        "p = c.Process(target=q.put, args=(5,))\np.start()\nv = q.get()\np.join()\nv"
    )
    assert ran.outcome.value == 5


def test_usage_is_told(run: Run) -> None:
    usage = run("x = bytearray(64 << 20)\nsum(range(2_000_000))\nNone").outcome.usage
    assert usage.peak_memory is not None
    assert usage.cpu_time is not None
    assert 64 << 20 < usage.peak_memory < 256 << 20
    assert 0 < usage.cpu_time < 10
    assert 0 < usage.wall_time < 10
