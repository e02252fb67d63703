"""Command lines, environment blocks and limits of jobs: pure, against slow references."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from licet.supervise.windows import commandline, layouts
from licet.supervise.windows.environment import block, upcase
from licet.supervise.windows.limits import JobLimits, kept

TEXTS = st.text(st.characters(exclude_characters="\0") | st.sampled_from('\\\\\\"" \t'), max_size=20)


def split(line: str) -> list[str]:
    """Microsoft's rules for `argv`, read aloud: a slow reference, one character at a time."""
    arguments: list[str] = []
    current: list[str] | None = None
    quoted, slashes = False, 0
    program, _, rest = line[1:].partition('"')
    for character in rest + " ":
        if character == "\\":
            slashes += 1
            current = current if current is not None else []
            continue
        if character == '"':
            current = [*(current or []), *"\\" * (slashes // 2)]
            if slashes % 2:
                current.append('"')
            else:
                quoted = not quoted
        else:
            if slashes:
                current = [*(current or []), *"\\" * slashes]
            if character in " \t" and not quoted:
                if current is not None:
                    arguments.append("".join(current))
                current = None
            else:
                current = [*(current or []), character]
        slashes = 0
    return [program, *arguments]


@given(st.lists(TEXTS, max_size=5))
def test_a_program_gets_exactly_the_arguments_that_were_given(arguments: list[str]) -> None:
    line = commandline.join(("C:\\a b\\python.exe", *arguments))
    assert split(line) == ["C:\\a b\\python.exe", *arguments]


@pytest.mark.parametrize(
    ("argument", "quoted"),
    [
        ("plain", "plain"),
        ("", '""'),
        ("a b", '"a b"'),
        ("a\\", "a\\"),
        ("a b\\", '"a b\\\\"'),
        ('say "hi"', '"say \\"hi\\""'),
        ('\\"', '"\\\\\\""'),
        ("%PATH% & calc ^ |", '"%PATH% & calc ^ |"'),
        ("a \\\n", '"a \\\n"'),
        ("línea\nnueva", '"línea\nnueva"'),
    ],
)
def test_an_argument_is_quoted_as_the_c_runtime_reads_it(argument: str, quoted: str) -> None:
    assert commandline.quote(argument) == quoted


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (('C:\\a"b.exe',), "the path of a program holds a quotation mark"),
        (("C:\\tool.BAT", "a"), "a batch file is run by a shell, which reads arguments by rules of its own"),
        (("C:\\tool.cmd. .",), "a batch file is run by a shell, which reads arguments by rules of its own"),
        (("C:\\a.exe", "\U0001f600" * 16_384), "the command line is longer than 32766 characters"),
    ],
)
def test_what_no_command_line_says_is_refused(arguments: tuple[str, ...], why: str) -> None:
    with pytest.raises(ValueError) as refused:
        commandline.join(arguments)
    assert str(refused.value) == why


def lines(data: bytes) -> list[str]:
    text = data.decode("utf-16-le", "surrogatepass")
    assert text.endswith("\0\0")
    return text[:-2].split("\0") if text != "\0\0" else []


def test_a_block_is_what_is_given_and_what_windows_needs() -> None:
    host = {"SYSTEMROOT": "C:\\Windows", "PATH": "C:\\secret", "TOKEN": "s3cret"}
    assert lines(block({}, host)) == ["SystemRoot=C:\\Windows"]
    assert lines(block({"b": "2", "A": "ü"}, host)) == ["A=ü", "b=2", "SystemRoot=C:\\Windows"]
    assert lines(block({"systemroot": "D:\\"}, host)) == ["systemroot=D:\\"]
    assert lines(block({}, {})) == []


@given(st.dictionaries(TEXTS.filter(lambda name: name and "=" not in name), TEXTS, max_size=6))
def test_a_block_holds_every_variable_once_in_order(given_: dict[str, str]) -> None:
    if len({upcase(name) for name in given_}) < len(given_):
        with pytest.raises(ValueError, match="name the same variable here"):
            block(given_, {})
        return
    found = lines(block(given_, {"SystemRoot": "C:"}))
    names = [line.partition("=")[0] for line in found]
    assert [upcase(name) for name in names] == sorted(upcase(name) for name in names)
    wanted = (
        given_ if any(upcase(name) == "SYSTEMROOT" for name in given_) else {**given_, "SystemRoot": "C:"}
    )
    assert dict(line.split("=", 1) for line in found) == wanted


@pytest.mark.parametrize(
    ("given_", "why"),
    [
        ({"": "x"}, "`` can't be the name of a variable"),
        ({"a=b": "x"}, "`a=b` can't be the name of a variable"),
        ({"a\0": "x"}, "`a\0` can't be the name of a variable"),
        ({"a": "x\0y"}, "the value of `a` holds a NUL"),
        ({"Path": "1", "PATH": "2"}, "`Path` and `PATH` name the same variable here"),
        ({"straße": "1", "STRAßE": "2"}, "`straße` and `STRAßE` name the same variable here"),
    ],
)
def test_what_no_block_holds_is_refused(given_: dict[str, str], why: str) -> None:
    with pytest.raises(ValueError) as refused:
        block(given_, {})
    assert str(refused.value) == why


def test_names_that_only_grow_in_upper_case_stay_different() -> None:
    assert lines(block({"straße": "1", "STRASSE": "2"}, {})) == ["STRASSE=2", "straße=1"]


def test_limits_become_those_of_a_job() -> None:
    always = layouts.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE | layouts.JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION
    assert JobLimits().information().BasicLimitInformation.LimitFlags == always
    wanted = JobLimits(cpu_time=1.5, memory=1 << 20).information()
    assert wanted.BasicLimitInformation.LimitFlags == always | 0x4 | 0x200
    assert wanted.BasicLimitInformation.PerJobUserTimeLimit == 15_000_000
    assert wanted.JobMemoryLimit == 1 << 20
    assert JobLimits(cpu_time=1e-12).information().BasicLimitInformation.PerJobUserTimeLimit == 1


def test_a_limit_counts_only_as_far_as_the_job_reads_back_with_it() -> None:
    asked = JobLimits(cpu_time=2.0, memory=10_000_000)
    assert kept(asked, asked.information()) == asked
    assert kept(asked, layouts.JOBOBJECT_EXTENDED_LIMIT_INFORMATION()) == JobLimits()
    assert kept(asked, JobLimits(memory=9_998_336).information()) == JobLimits(memory=10_000_000)
    assert kept(asked, JobLimits(memory=10_000_001).information()) == JobLimits()
    assert kept(asked, JobLimits(cpu_time=3.0).information()) == JobLimits()
    unflagged = asked.information()
    unflagged.BasicLimitInformation.LimitFlags = 0
    assert kept(asked, unflagged) == JobLimits()
    assert kept(JobLimits(), asked.information()) == JobLimits()
