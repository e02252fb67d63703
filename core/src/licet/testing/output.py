"""Tests of output: every byte arrives, once, in order, on its own stream, before the run is over."""

from __future__ import annotations

import hashlib

import pytest

from licet.testing.bench import Bench
from licet.testing.host import RecordingHost

_LINES = "count = 0\nwhile count < 20000:\n    print('line', count)\n    count += 1\n"
_BLOCK = "x" * 65535
_RAW = "import sys\ntry:\n    write = sys.stdout.buffer.write\nexcept AttributeError:\n    raise SystemExit\n"


class Output:
    """What code prints is what its host gets."""

    @pytest.mark.parametrize(
        ("code", "written"),
        [
            ("print()", "\n"),
            ("print('no break', end='')", "no break"),
            ("print('a', end='')\nprint('b')", "ab\n"),
            (r"print('a\x00b')", "a\0b\n"),
            (r"print('\x1b[31mred\r\n')", "\x1b[31mred\r\n\n"),
            ("print('ünï ©ödé 日本 \N{GRINNING FACE}')", "ünï ©ödé 日本 \N{GRINNING FACE}\n"),
            ("print('é' * 70001, end='')", "é" * 70001),
        ],
    )
    def test_text_arrives_as_utf_8(self, code: str, written: str, bench: Bench) -> None:
        ran = bench.run(code)
        assert ran.ended == ("exited", 0)
        assert ran.stdout == written.encode()
        assert ran.stderr == b""

    def test_many_lines_arrive_in_order(self, bench: Bench) -> None:
        assert bench.run(_LINES).stdout == b"".join(b"line %d\n" % number for number in range(20000))

    def test_streams_are_kept_apart(self, bench: Bench) -> None:
        ran = bench.run(
            "import sys\ncount = 0\nwhile count < 500:\n"
            "    print('out', count)\n    print('err', count, file=sys.stderr)\n    count += 1\n"
        )
        for word, found in ((b"out", ran.stdout), (b"err", ran.stderr)):
            assert found == b"".join(b"%s %d\n" % (word, number) for number in range(500))

    @pytest.mark.parametrize("blocks", [1, 16, 160])
    def test_every_byte_is_counted(self, blocks: int, bench: Bench) -> None:
        host = RecordingHost(output=64 << 20)
        code = (
            f"text = 'x' * 65535\ncount = 0\nwhile count < {blocks}:\n    print(text)\n    count += 1\n'end'"
        )
        ran = bench.run(code, host)
        assert (ran.outcome.value, host.total) == ("end", blocks * 65536)
        expected = hashlib.sha256(f"{_BLOCK}\n".encode() * blocks).hexdigest()
        assert hashlib.sha256(host.stdout).hexdigest() == expected

    @pytest.mark.parametrize("ending", ["1 / 0", "raise SystemExit", "print('last', end='')"])
    def test_nothing_is_lost_at_the_end(self, ending: str, bench: Bench) -> None:
        ran = bench.run(f"{_LINES}{ending}")
        assert ran.stdout.startswith(b"line 0\n")
        assert ran.stdout.endswith((b"line 19999\n", b"line 19999\nlast"))

    def test_nothing_comes_after_the_end(self, bench: Bench) -> None:
        host = RecordingHost()
        bench.run(_LINES, host)
        assert host.late == 0

    def test_a_surrogate_is_printed_or_refused_in_the_code(self, bench: Bench) -> None:
        ran = bench.run(r"print('\ud800')")
        if ran.ended == ("exited", 0):
            assert ran.stdout
        else:
            assert ran.ended == ("exited", 1)
            assert ran.outcome.error is not None
            assert ran.outcome.error.type == "UnicodeEncodeError"

    def test_bytes_that_are_no_text_arrive_as_they_are(self, bench: Bench) -> None:
        ran = bench.run(_RAW + "write(b'ok \\xff\\xfe\\x00\\xc3 end')\n'wrote'")
        if ran.outcome.value is None and bench.descriptor.language.modules is not None:
            pytest.skip(f"{bench.descriptor.language.name} lacks `sys.stdout.buffer`")
        assert (ran.outcome.value, ran.stdout) == ("wrote", b"ok \xff\xfe\x00\xc3 end")

    def test_a_message_of_any_size_does_no_harm(self, bench: Bench) -> None:
        ran = bench.run("raise ValueError('x' * 3000000)")
        assert ran.ended == ("exited", 1)
        assert ran.outcome.error is not None
        assert ran.outcome.error.type == "ValueError"
        assert ran.outcome.error.message.startswith("x" * 1000)
        assert len(ran.outcome.error.message) <= 10_000
