"""Windows paths in one spelling: pure, so that they are tested everywhere."""

from __future__ import annotations

import json
import ntpath
from pathlib import Path

import pytest
from licet import drives


@pytest.mark.parametrize(
    ("path", "spelled"),
    [
        ("c:\\Users\\x", "C:/Users/x"),
        ("C:/Users/x/", "C:/Users/x"),
        ("c:\\", "C:/"),
        ("\\\\?\\C:\\long", "C:/long"),
        ("\\\\server\\share\\x\\", "//SERVER/SHARE/x"),
    ],
)
def test_a_path_has_one_spelling(path: str, spelled: str) -> None:
    assert drives.spell(path) == spelled
    assert drives.spell(spelled) == spelled
    assert drives.is_absolute(spelled)


@pytest.mark.parametrize(
    ("root", "path", "inside"),
    [
        ("/", "C:/x", True),
        ("/", "//SERVER/SHARE/x", True),
        ("C:/", "C:/x", True),
        ("C:/", "C:/", True),
        ("C:/work", "C:/WORK/data", True),
        ("C:/work", "C:/workspace", False),
        ("C:/work", "C:/", False),
        ("C:/work", "D:/work/x", False),
        ("C:/", "/", False),
    ],
)
def test_containment_compares_whole_names_without_case(root: str, path: str, inside: bool) -> None:
    assert drives.contains(root, path) is inside


@pytest.mark.parametrize("path", ["x", "..\\x", "C:\\a b\\.hidden", "C:/x/../y", "/", "CONSOLE", "a.com1"])
def test_plain_paths_pass(path: str) -> None:
    drives.check(path)


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("\\\\?\\C:\\x", "it has a prefix that changes how Windows reads it"),
        ("//./pipe/x", "it has a prefix that changes how Windows reads it"),
        ("C:x", "it is relative to a drive, whose current directory nobody knows"),
        ("C:", "it is relative to a drive, whose current directory nobody knows"),
        ("\\x", "it begins at the current drive, which may be any"),
        ("/x", "it begins at the current drive, which may be any"),
        ("C:\\a?.txt", "it holds a character that no file name can hold"),
        ("C:\\a\nb", "it holds a character that no file name can hold"),
        ("data\\NUL", "`NUL` is a device, whatever directory it seems to be in"),
        ("com1.txt", "`com1.txt` is a device, whatever directory it seems to be in"),
        ("a.txt:stream", "it names a stream of a file"),
        ("C:\\secret.\\x", "one of its names ends in a dot or a space, which Windows drops"),
        ("C:\\secret ", "one of its names ends in a dot or a space, which Windows drops"),
    ],
)
def test_what_windows_reads_as_something_else_is_refused(path: str, why: str) -> None:
    with pytest.raises(ValueError) as refused:
        drives.check(path)
    assert str(refused.value) == why


ROWS = [
    row
    for line in (Path(__file__).parents[1] / "data/paths_hosts.jsonl").read_text("utf-8").splitlines()
    if (row := json.loads(line))["class"] == "path-windows"
]


def answer(root: str, path: str) -> str:
    """What becomes of a path below `root`, on a machine with the junction that the corpus tells of."""
    try:
        drives.check(path)
    except ValueError:
        return "reject"
    resolved = ntpath.normpath(ntpath.join(root, path)).replace("\\work\\junction", "\\other")
    return "inside" if drives.contains(drives.spell(root), drives.spell(resolved)) else "outside"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_every_windows_row_of_the_corpus(row: dict[str, str]) -> None:
    """What the corpus calls outside may be refused before anybody asks where it lies."""
    allowed = {row["answer"], "reject"} if row["answer"] == "outside" else {row["answer"]}
    assert answer(row["root"], row["path"]) in allowed, row["why"]


@pytest.mark.parametrize("path", ["x", "C:x", "\\x", "..\\x", ""])
def test_what_is_not_absolute_is_no_base(path: str) -> None:
    assert not drives.is_absolute(path)


def test_spelling_keeps_what_joining_makes() -> None:
    assert drives.spell(ntpath.join("C:/work", "D:\\other")) == "D:/other"
    assert drives.spell(ntpath.normpath(ntpath.join("C:/work", "..\\other"))) == "C:/other"
