"""Tests of how a run ends: the exact termination, exit code and error for each thing that code can do."""

from __future__ import annotations

from textwrap import indent

import pytest

from licet.backend import GuestError, Termination
from licet.contract import Control
from licet.testing.bench import Bench
from licet.testing.host import RecordingHost

_SLEEP = "import time\ntime.sleep(8)"
_WAIT_FOR_INPUT = "import sys\nsys.stdin.read()\n'no more'"
_DEEP = "def deeper(n):\n    return deeper(n + 1)\n\ndeeper(0)"


class Endings:
    """`exited` has an exit code, everything else has none; a value comes with success alone."""

    @pytest.mark.parametrize("code", ["", "# nothing\n", "x = 1", "pass", "print('out')", "None"])
    def test_a_good_end_without_a_value(self, code: str, bench: Bench) -> None:
        outcome = bench.run(code).outcome
        assert (outcome.termination, outcome.exit_code, outcome.error) == (Termination.exited, 0, None)
        assert (outcome.value, outcome.value_repr) == (None, None)

    @pytest.mark.parametrize(
        ("code", "value"),
        [("6 * 7", 42), ("a = 20\nb = 22\na + b  # sum\n", 42), ("'a' + 'b'", "ab"), ("[1,\n 2]", [1, 2])],
    )
    def test_the_value_of_the_last_expression(self, code: str, value: object, bench: Bench) -> None:
        outcome = bench.run(code).outcome
        assert (outcome.termination, outcome.exit_code, outcome.error) == (Termination.exited, 0, None)
        assert (outcome.value, outcome.value_repr) == (value, repr(value))

    @pytest.mark.parametrize(
        ("code", "error"),
        [
            ("x = 1\n\nraise ValueError('boom')", GuestError("ValueError", "boom", 3)),
            ("def f():\n    raise KeyError\n\nf()", GuestError("KeyError", "", 2)),
            ("\n\nnobody", GuestError("NameError", "name 'nobody' is not defined", 3)),
            ("1 / 0", GuestError("ZeroDivisionError", "division by zero", 1)),
            ("raise KeyboardInterrupt", GuestError("KeyboardInterrupt", "", 1)),
            ("raise TimeoutError('not ours')", GuestError("TimeoutError", "not ours", 1)),
            ("raise MemoryError('not ours')", GuestError("MemoryError", "not ours", 1)),
        ],
    )
    def test_an_uncaught_exception_is_the_codes_own(self, code: str, error: GuestError, bench: Bench) -> None:
        outcome = bench.run(code).outcome
        assert (outcome.termination, outcome.exit_code) == (Termination.exited, 1)
        assert (outcome.error, outcome.value, outcome.value_repr) == (error, None, None)

    @pytest.mark.parametrize(
        ("code", "line"), [("x = 1\nx ==", 2), ("def f(:\n    pass", 1), ("(", 1), ("x = = 1", 1)]
    )
    def test_a_syntax_error_is_the_codes_own(self, code: str, line: int, bench: Bench) -> None:
        ran = bench.run(code)
        assert ran.ended == ("exited", 1)
        assert ran.outcome.error is not None
        assert (ran.outcome.error.type, ran.outcome.error.line) == ("SyntaxError", line)

    @pytest.mark.parametrize(
        ("code", "exit_code", "stderr"),
        [
            ("raise SystemExit", 0, b""),
            ("raise SystemExit()", 0, b""),
            ("raise SystemExit(0)", 0, b""),
            ("raise SystemExit(7)", 7, b""),
            ("raise SystemExit('bye')", 1, b"bye\n"),
        ],
    )
    def test_system_exit_says_the_exit_code(
        self, code: str, exit_code: int, stderr: bytes, bench: Bench
    ) -> None:
        ran = bench.run(f"print('before')\n{code}\nprint('after')")
        assert ran.ended == ("exited", exit_code)
        assert (ran.outcome.error, ran.stdout, ran.stderr) == (None, b"before\n", stderr)

    def test_recursion_without_end_is_the_codes_own_error(self, bench: Bench) -> None:
        ran = bench.run(_DEEP)
        assert ran.ended == ("exited", 1)
        assert ran.outcome.error is not None
        assert ran.outcome.error.type == "RecursionError"

    @pytest.mark.parametrize("act", ["computes", "sleeps", "catches all"])
    def test_the_deadline_ends_a_run_and_keeps_its_output(self, act: str, bench: Bench) -> None:
        bench.claims(Control.timeout)
        deaf = f"try:\n{indent(bench.busy, '    ')}except BaseException:\n    pass\n{bench.busy}"
        code = {"computes": bench.busy, "sleeps": _SLEEP, "catches all": deaf}[act]
        ran = bench.run(f"print('before', flush=True)\n{code}", limits={"wall_time": 1.0})
        assert ran.ended == ("timeout", None)
        assert (ran.outcome.error, ran.outcome.value, ran.stdout) == (None, None, b"before\n")

    def test_waiting_for_input_does_not_outlast_the_deadline(self, bench: Bench) -> None:
        bench.claims(Control.timeout)
        bench.needs(_WAIT_FOR_INPUT, stdin=True)
        ran = bench.run(_WAIT_FOR_INPUT, limits={"wall_time": 5.0})
        assert ran.ended in {("exited", 0), ("timeout", None)}

    def test_the_limit_of_output_ends_a_run(self, bench: Bench) -> None:
        host = RecordingHost(output=100_000)
        ran = bench.run(bench.flood, host)
        assert ran.ended == ("output_limit", None)
        assert (ran.outcome.error, ran.outcome.value) == (None, None)
        assert host.late == 0

    def test_a_fault_of_the_host_is_raised(self, bench: Bench) -> None:
        """The trail can't be written, say: the run ends, and whoever called it hears why."""

        def fail(data: bytes) -> None:
            raise LookupError("no room left")

        with pytest.raises(LookupError, match=r"^no room left$"):
            bench.run(bench.flood, RecordingHost(on_write=fail))
        bench.works()

    def test_what_a_run_used_is_told(self, bench: Bench) -> None:
        usage = bench.run("sum([number * number for number in range(200000)])").outcome.usage
        assert usage.wall_time > 0
        for measured in (usage.cpu_time, usage.peak_memory, usage.bytes_written):
            assert measured is None or measured >= 0

    def test_what_was_observed_is_about_controls(self, bench: Bench) -> None:
        claimed = {control.value for control, _ in bench.descriptor.sandbox_enforcement_contract.items()}
        observed = bench.run("1").outcome.observed
        assert set(observed) - claimed == set()
        assert all(isinstance(text, str) for text in observed.values())
