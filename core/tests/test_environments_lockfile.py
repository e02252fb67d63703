"""Lists of packages: pinned and hashed, or refused with line and advice."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from licet.environments.lockfile import LockFile, normalized, parse_lock, read_lock
from licet.errors import InvalidLockFile

A, B = "a" * 64, "b" * 64


def parse(text: str, file: str = "r.txt") -> LockFile:
    return parse_lock(text.encode(), file)


def test_layout_comments_order_and_spelling_mean_nothing() -> None:
    plain = parse(f"numpy==2.1.0 --hash=sha256:{A} --hash=sha256:{B}\nsix==1.0 --hash=sha256:{A}\n")
    other = parse(
        "# made by a tool\n\nSIX == 1.0 \\\n    --hash=sha256:" + A + "  # via numpy\r\n"
        f"Numpy==2.1.0 \\\n    # why\n    --hash=sha256:{B} \\\n    --hash=sha256:{A}\n"
    )
    assert plain.lines == other.lines
    assert plain.digest == other.digest
    assert plain.lines[0] == f"numpy==2.1.0 --hash=sha256:{A} --hash=sha256:{B}"


@pytest.mark.parametrize(
    "text",
    [
        f"numpy==2.1.1 --hash=sha256:{A} --hash=sha256:{B}",
        f"numpy==2.1.0 --hash=sha256:{A}",
        f"numpy[x]==2.1.0 --hash=sha256:{A} --hash=sha256:{B}",
        f"numpy==2.1.0 ; python_version > '3' --hash=sha256:{A} --hash=sha256:{B}",
    ],
)
def test_all_else_is_another_list(text: str) -> None:
    plain = parse(f"numpy==2.1.0 --hash=sha256:{A} --hash=sha256:{B}")
    assert parse(text).digest != plain.digest


def test_extras_and_markers_are_kept() -> None:
    found = parse(f'A.b[X, y]==1 ; sys_platform == "linux" --hash=sha256:{A}')
    assert found.lines == (f'a-b[x,y]==1 ; sys_platform == "linux" --hash=sha256:{A}',)


@pytest.mark.parametrize(
    ("line", "message", "advice"),
    [
        ("numpy==2.1.0", "has no hash", "add `--hash=sha256:…`"),
        (f"numpy>=2 --hash=sha256:{A}", "is not one version", "write `NAME==VERSION`"),
        (f"numpy==2.* --hash=sha256:{A}", "is not one version", "write `NAME==VERSION`"),
        (f"numpy --hash=sha256:{A}", "is not one version", "write `NAME==VERSION`"),
        (f"numpy==1,!=2 --hash=sha256:{A}", "is not one version", "write `NAME==VERSION`"),
        (f"numpy===1 --hash=sha256:{A}", "is not one version", "write `NAME==VERSION`"),
        (f"a @ https://x.example/a.whl --hash=sha256:{A}", "names an address", "by version and hash"),
        (f"./a.whl --hash=sha256:{A}", "names an address or a path", "by version and hash"),
        ("-r more.txt", "the option `-r`", "into one file"),
        ("-e .", "the option `-e`", "build a wheel"),
        ("--index-url https://x.example/packages", "the option `--index-url`", "pip's own configuration"),
        ("--extra-index-url=https://x.example", "the option `--extra-index-url`", "pip's own configuration"),
        ("--find-links /x", "the option `--find-links`", "pip's own configuration"),
        ("--no-binary :all:", "the option `--no-binary`", "nothing else"),
        (f"a==1 --hash=sha256:{A} --config-settings=x", "`--config-settings=x` has no place", "only `--hash"),
        (f"a==1 --hash=sha512:{A}", "is no SHA-256", "64 hexadecimal digits"),
        (f"a==1 --hash=sha256:{A[1:]}", "is no SHA-256", "64 hexadecimal digits"),
        (f"a==1 ; x == `id` --hash=sha256:{A}", "is not one version", "write `NAME==VERSION`"),
        (f"ok==1 --hash=sha256:{B}", "is listed in line 1 already", "once"),
    ],
)
def test_what_is_refused_says_where_and_what_to_do(line: str, message: str, advice: str) -> None:
    with pytest.raises(InvalidLockFile) as problem:
        parse(f"ok==1 --hash=sha256:{A}\n# note\n{line}\n")
    assert message in str(problem.value)
    assert advice in (problem.value.advice or "")
    assert problem.value.where is not None and problem.value.where.line == 3


def test_a_file_that_is_no_list_is_refused(tmp_path: Path) -> None:
    for data, message in (
        (b"", "names no package"),
        (b"# nothing\n", "names no package"),
        (b"a==1 \xff", "not UTF-8 at byte 5"),
        (b"x" * ((4 << 20) + 1), "larger than 4 MiB"),
        (b"lock-version = '1.0'\n", "`pylock.toml` is not read yet"),
    ):
        (tmp_path / "list").write_bytes(data)
        with pytest.raises(InvalidLockFile, match=message):
            read_lock(tmp_path / "list")
    with pytest.raises(InvalidLockFile, match="pylock"):
        parse("", "pylock.dev.toml")
    for path in (tmp_path / "missing", tmp_path):
        with pytest.raises(InvalidLockFile, match="can't be read"):
            read_lock(path)


@given(st.text(alphabet="ab=;#\\ \n\r-[]@/.,:0" + "\x00é", max_size=60))
def test_no_text_is_half_understood(text: str) -> None:
    try:
        found = parse(text)
    except InvalidLockFile:
        return
    assert parse("".join(f"{line}\n" for line in found.lines)).lines == found.lines
    assert all(one.hashes and one.name == normalized(one.name) for one in found.requirements)


@given(st.permutations([f"p{n}=={n} --hash=sha256:{A}" for n in range(6)]), st.integers())
def test_order_never_matters(lines: list[str], seed: int) -> None:
    ends = random.Random(seed).choices(["\n", "\r\n", "\n\n# x\n"], k=len(lines))
    shuffled = parse("".join(line + end for line, end in zip(lines, ends, strict=True)))
    assert shuffled.digest == parse("\n".join(sorted(lines))).digest
