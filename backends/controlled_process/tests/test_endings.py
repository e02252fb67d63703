"""Odd endings, odd values, odd streams, odd source: for each the right reason and the whole output."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from typing import Any

import pytest
from licet import values
from licet.backend import GuestError, Termination
from licet.values import Omitted, Opaque

Run = Callable[..., Any]
UNTOLD = "<no message: its text could not be made>"


def ended(ran: Any) -> tuple[object, ...]:
    """What the code itself did; that it did exit is asserted here."""
    assert ran.outcome.termination is Termination.exited
    return ran.outcome.exit_code, ran.outcome.error, ran.stdout, ran.stderr


# Exit


@pytest.mark.parametrize(
    ("argument", "exit_code", "stderr"),
    [
        ("", 0, ""),
        ("None", 0, ""),
        ("False", 0, ""),
        ("True", 1, ""),
        ("255", 255, ""),
        ("300", 44, ""),
        ("-1", 255, ""),
        ("256", 255, ""),
        ("-512", 255, ""),
        ("10**30", 255, ""),
        ("2.5", 1, "2.5\n"),
        ("''", 1, "\n"),
        ("[1, 2]", 1, "[1, 2]\n"),
        ("(3, 4)", 1, "(3, 4)\n"),
        ("'\\ud800'", 1, "\\ud800\n"),
        ("type('X', (), {'__str__': lambda self: 1/0})()", 1, "\n"),
    ],
)
def test_system_exit_with_anything(run: Run, argument: str, exit_code: int, stderr: str) -> None:
    ran = run(f"print('whole')\nraise SystemExit({argument})\n")
    assert ended(ran) == (exit_code, None, "whole\n", stderr)
    assert ran.outcome.value is None


@pytest.mark.parametrize(("number", "exit_code"), [(0, 0), (3, 3), (300, 44), (-1, 255)])
def test_an_exit_at_once_keeps_what_was_printed(run: Run, number: int, exit_code: int) -> None:
    code = f"import os, sys\nsys.stdout.write('no line end')\nsys.stderr.write('e')\nos._exit({number})\n7"
    ran = run(code)
    assert ended(ran) == (exit_code, None, "no line end", "e")
    assert ran.outcome.value is None


@pytest.mark.parametrize("number", [1, 4, 6, 7, 8, 9, 11, 13, 14, 15, 24, 31, 40], ids=str)
def test_death_by_each_signal(run: Run, number: int) -> None:
    code = (
        f"import os, signal\nprint('a')\nif {number} != 9: signal.signal({number}, signal.SIG_DFL)\n"
        f"os.kill(os.getpid(), {number})\nprint('b')"
    )
    name = signal.Signals(number).name if number < 32 else f"SIG{number}"
    error = GuestError(name, f"the code was ended by signal {number}")
    assert ended(run(code)) == (128 + number, error, "a\n", "")


def test_signals_that_end_nothing(run: Run) -> None:
    code = "import os\nr, w = os.pipe()\nos.close(r)\nos.write(w, b'x')"
    assert run(code).outcome.error == GuestError("BrokenPipeError", "[Errno 32] Broken pipe", 4)
    interrupted = run("import os\nos.kill(os.getpid(), 2)\nwhile True: pass").outcome
    assert (interrupted.exit_code, interrupted.error.type) == (1, "KeyboardInterrupt")
    stopped = run("import os\nprint('a')\nos.kill(os.getpid(), 19)", limits={"wall_time": 0.4})
    assert (stopped.outcome.termination, stopped.stdout) == (Termination.timeout, "a\n")


# Errors


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("raise ValueError(10**5000)", GuestError("ValueError", UNTOLD, 1)),
        ("raise ValueError('a\\nb')", GuestError("ValueError", "a\nb", 1)),
        ("raise KeyError('\\udfff')", GuestError("KeyError", r"'\udfff'", 1)),
        ("raise 5", GuestError("TypeError", "exceptions must derive from BaseException", 1)),
        ("raise GeneratorExit('g')", GuestError("GeneratorExit", "g", 1)),
        (
            "raise ExceptionGroup('many', [ValueError('a'), TypeError('b')])",
            GuestError("ExceptionGroup", "many (2 sub-exceptions)", 1),
        ),
        (
            "raise BaseExceptionGroup('many', [SystemExit(0)])",
            GuestError("BaseExceptionGroup", "many (1 sub-exception)", 1),
        ),
        (
            "def f(): return f()\nf()",
            GuestError("RecursionError", "maximum recursion depth exceeded", 1),
        ),
        ("import sys\nsys.exit = print\n1/0", GuestError("ZeroDivisionError", "division by zero", 3)),
        (
            "import sys\ndel sys.modules['__main__']\n1/0",
            GuestError("ZeroDivisionError", "division by zero", 3),
        ),
        ("import sys\nsys.stderr = None\n1/0", GuestError("ZeroDivisionError", "division by zero", 3)),
        ("import sys\nsys.stderr.close()\n1/0", GuestError("ZeroDivisionError", "division by zero", 3)),
        ("import os\nos.close(2)\n1/0", GuestError("ZeroDivisionError", "division by zero", 3)),
        ("return 5", GuestError("SyntaxError", "'return' outside function", 1)),
        ("await f()", GuestError("SyntaxError", "'await' outside function", 1)),
        ("eval('1 +')", GuestError("SyntaxError", "invalid syntax", 1)),
    ],
)
def test_errors_of_every_kind(run: Run, code: str, error: GuestError) -> None:
    outcome = run(code).outcome
    assert (outcome.exit_code, outcome.error) == (1, error)


def test_an_exception_group_is_printed_whole(run: Run) -> None:
    stderr = run("raise ExceptionGroup('many', [ValueError('a'), TypeError('b')])").stderr
    assert all(part in stderr for part in ("ValueError: a", "TypeError: b", 'File "<string>", line 1'))


def test_a_hook_of_the_code_prints_its_errors(run: Run) -> None:
    error = GuestError("ZeroDivisionError", "division by zero", 3)
    ran = run("import sys\nsys.excepthook = lambda *a: print('hooked')\n1/0")
    assert ended(ran) == (1, error, "hooked\n", "")
    assert ended(run("import sys, os\nsys.excepthook = lambda *a: os._exit(7)\n1/0"))[:2] == (7, error)


# Values


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("10**5000", 10**5000),
        ("-10**5000", -(10**5000)),
        ("{'a': [10**6000], 10**5000: 1}", {"a": [10**6000], 10**5000: 1}),
        ("1 << (1 << 24)", Omitted("budget", 1 << 22)),
        ("['\\ud800', {'\\udfff': '\\ud83d\\ude00'}]", ["\ud800", {"\udfff": "\ud83d\ude00"}]),
        ("b'\\xff\\0'", b"\xff\0"),
        ("'x' * (5 << 20)", Omitted("budget", 5 << 20)),
        (
            "class R:\n    def __repr__(self): return str(10**5000)\nR()",
            Opaque("R", "<R whose repr raised ValueError>"),
        ),
        ("class R:\n    def __repr__(self): raise SystemExit(9)\nR()", Omitted("error", None)),
    ],
    ids=lambda item: item[:20] if isinstance(item, str) else "",
)
def test_values_of_every_kind(run: Run, code: str, value: object) -> None:
    outcome = run(code).outcome
    assert (outcome.exit_code, outcome.error) == (0, None)
    assert outcome.value == value
    json.dumps(values.encode(outcome.value), ensure_ascii=False).encode("utf-8")
    assert isinstance(outcome.value_repr, str)
    outcome.value_repr.encode("utf-8")


def test_a_number_that_is_too_long_to_print_is_the_codes_error(run: Run) -> None:
    error = run("print(10**5000)").outcome.error
    assert (error.type, error.line) == ("ValueError", 1)
    assert error.message.startswith("Exceeds the limit (4300 digits) for integer string conversion")


# Streams


@pytest.mark.parametrize(
    ("code", "stdout", "stderr"),
    [
        ("import os\nos.write(1, b'raw ')\nprint('p', end=' ')\nos.write(1, b'raw')\n5", "raw p raw", ""),
        ("import os\nos.write(2, b'a\\xff')\n5", "", "a\ufffd"),
        ("import sys\nprint('a')\nsys.stdout.close()\n5", "a\n", ""),
        ("import os\nprint('a')\nos.close(1)\n5", "a\n", ""),
        ("import sys\nsys.stdout = None\nprint('x')\n5", "", ""),
        ("import sys, io\nsys.stdout = io.StringIO()\nprint('x')\n5", "", ""),
        ("import sys\nsys.stdout = sys.stderr\nprint('x')\n5", "", "x\n"),
        ("import sys\nsys.stdout = sys.__stdout__ = open('f', 'w')\nprint('x')\n5", "", ""),
        ("print('\\ud800', file=__import__('sys').stderr)\n5", "", "\\ud800\n"),
        ("import os\nos.dup2(2, 1)\nprint('x')\n5", "", "x\n"),
        ("print('a\\rb\\0c\\x1b[31m')\n5", "a\rb\0c\x1b[31m\n", ""),
    ],
)
def test_streams_that_are_bent(run: Run, code: str, stdout: str, stderr: str) -> None:
    ran = run(code)
    assert ended(ran) == (0, None, stdout, stderr)
    assert ran.outcome.value == 5


def test_a_stream_that_cannot_be_flushed_is_a_failure_as_in_cpython(run: Run) -> None:
    broken = "class B:\n    def write(self, x): pass\n    def flush(self): raise OSError('no flush')\n"
    ran = run(f"import sys\n{broken}sys.stdout = B()\n5")
    assert (ran.outcome.exit_code, ran.outcome.error, ran.outcome.value) == (120, None, None)
    assert ran.stderr.endswith("OSError: no flush\n")


@pytest.mark.parametrize(
    ("code", "stdin", "value"),
    [
        ("import sys\nsys.stdin.read()", b"", ""),
        ("try:\n    input()\nexcept EOFError:\n    x = 'end'\nx", b"", "end"),
        ("import sys\n[input(), sys.stdin.readline()]", b"a\r\nb", ["a\r", "b"]),
        ("import sys\nsys.stdin.buffer.read()", b"\xff\0z", b"\xff\0z"),
        ("import sys\nsys.stdin.read()", b"\xff\0z", "\udcff\0z"),
        ("import os\n[os.read(0, 9), os.read(0, 9)]", b"ab", [b"ab", b""]),
        ("import sys\nsys.stdin.close()\n5", b"x" * (1 << 20), 5),
    ],
)
def test_standard_input_in_every_way(run: Run, code: str, stdin: bytes, value: object) -> None:
    assert run(code, stdin=stdin).outcome.value == value


# Threads, forks and exit handlers


def test_daemon_threads_that_print_at_exit_do_no_harm(run: Run) -> None:
    code = (
        "import threading, time\ndef chatter():\n    while True: print('d')\n"
        "for _ in range(3): threading.Thread(target=chatter, daemon=True).start()\n"
        "time.sleep(0.01)\nimport os\nos.write(2, b'END')\n5"
    )
    for _ in range(20):
        ran = run(code)
        assert (ran.outcome.exit_code, ran.outcome.error, ran.outcome.value) == (0, None, 5)
        assert ran.stderr == "END"
        assert set(ran.stdout) <= {"d", "\n"}


@pytest.mark.parametrize(
    ("code", "exit_code", "value", "stderr"),
    [
        ("t.Thread(target=lambda: 1/0).start()\n7", 0, 7, "ZeroDivisionError: division by zero\n"),
        ("t.Thread(target=lambda: sys.exit(3)).start()\n7", 0, 7, ""),
        ("t.Thread(target=lambda: os._exit(9)).start()\nt.Event().wait()\n7", 9, None, ""),
        ("atexit.register(lambda: 1/0)\n7", 0, 7, "ZeroDivisionError: division by zero\n"),
        ("atexit.register(os._exit, 4)\n7", 4, None, ""),
        ("atexit.register(sys.exit, 4)\n7", 0, 7, "SystemExit: 4\n"),
    ],
)
def test_what_happens_beside_and_after_the_code(
    run: Run, code: str, exit_code: int, value: object, stderr: str
) -> None:
    ran = run("import atexit, os, sys, threading as t\n" + code)
    assert (ran.outcome.exit_code, ran.outcome.error, ran.outcome.value) == (exit_code, None, value)
    assert ran.stderr.endswith(stderr)
    assert bool(ran.stderr) == bool(stderr)


DYING = "class D:\n    def __del__(self): print('gone')\n    def me(self): return self\nd = D()\n"


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [("", 0), ("7", 0), ("d", 0), ("d.me", 0), ("raise SystemExit(3)", 3), ("1/0", 1), ("d.d = d", 0)],
)
def test_what_is_left_is_finalised_at_exit(run: Run, code: str, exit_code: int) -> None:
    ran = run(DYING + code)
    assert (ran.outcome.exit_code, ran.stdout) == (exit_code, "gone\n")


@pytest.mark.parametrize(
    ("child", "stdout", "stderr"),
    [
        ("print('child')", "before\nchild\nparent\n", ""),
        ("print('child', end=''); os._exit(3)", "before\nchildparent\n", ""),
        ("1/0", "before\nparent\n", "ZeroDivisionError: division by zero\n"),
    ],
)
def test_a_fork_of_the_code_writes_and_reports_nothing(
    run: Run, child: str, stdout: str, stderr: str
) -> None:
    code = (
        f"import os, sys\nprint('before')\npid = os.fork()\nif pid == 0:\n    {child}\n    sys.exit()\n"
        "os.waitpid(pid, 0)\nprint('parent')\n'value of the parent'"
    )
    ran = run(code)
    assert (ran.outcome.exit_code, ran.outcome.value) == (0, "value of the parent")
    assert ran.stdout == stdout
    assert ran.stderr.endswith(stderr)


# Source


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("x = 1\n\fx + 1", 2),
        ("if True:\n\tx = 1\nx", 1),
        ("x = 1\r\n'''a\r\nb'''", "a\nb"),
        ("x = 1\rx", 1),
        ("x = '" + "a" * 100_000 + "'\nlen(x)", 100_000),
        ("x=1;x;", 1),
        ("'a' 'b'", "ab"),
        ("*[1, 2],", (1, 2)),
        ("(y := 5)", 5),
        ("def d(f): return f\n@d\ndef g(): return 1\ng()", 1),
        ("import asyncio\nasync def f(): return 3\nasyncio.run(f())", 3),
        ("if __name__ == '__main__':\n    x = 5\nx", 5),
        ("from __future__ import annotations\ndef f(a: Nope): return f.__annotations__\nf(1)", {"a": "Nope"}),
        ("'doc'\nfrom __future__ import annotations\n__doc__", "doc"),
        ("ﬁ = 1\nfi", 1),
        ("match 5:\n    case x: pass\nx", 5),
        ("[__name__, __doc__, __package__, __spec__, __loader__]", ["__main__", None, None, None, None]),
    ],
)
def test_source_of_every_shape(run: Run, code: str, value: object) -> None:
    outcome = run(code).outcome
    assert (outcome.error, outcome.value) == (None, value)


def test_a_block_at_the_end_has_no_value(run: Run) -> None:
    ran = run("if __name__ == '__main__':\n    print('main')\n    5")
    assert ended(ran) == (0, None, "main\n", "")
    assert ran.outcome.value is None


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_processes_are_started_in_every_way(run: Run, method: str) -> None:
    code = (
        f"import multiprocessing as mp\nc = mp.get_context({method!r})\nq = c.Queue()\n"
        "p = c.Process(target=q.put, args=(5,))\np.start()\nv = q.get()\np.join()\n[v, p.exitcode]"
    )
    ran = run(code)
    assert (ran.outcome.value, ran.stderr) == ([5, 0], "")
