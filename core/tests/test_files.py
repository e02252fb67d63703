"""Plain files: no pipe is waited on, no link followed unasked, and nothing is seen half made."""

import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from licet.files import create_each, create_once, drop_drafts, make_folder, open_plain, read_plain, replace

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX files of all kinds")


def bind(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


def test_a_plain_file_is_read_up_to_the_limit(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    assert read_plain(tmp_path / "file", 4) == b"1234"
    assert read_plain(tmp_path / "file", 9) == b"12345"


@posix_only
@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (os.mkfifo, "not a plain file"),
        (lambda path: path.symlink_to("/dev/zero"), "not a plain file"),
        (os.mkdir, "Is a directory"),
        (bind, "No such device or address"),
    ],
    ids=["pipe", "device", "directory", "socket"],
)
@pytest.mark.parametrize("follow", [True, False])
def test_what_is_no_plain_file_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None], reason: str, follow: bool
) -> None:
    monkeypatch.chdir(tmp_path)  # the name of a socket is short
    path = Path("file")
    make(path)
    before = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0
    with pytest.raises(OSError) as problem:
        open_plain(path, os.O_RDONLY, follow=follow)
    assert problem.value.strerror == (
        "Too many levels of symbolic links" if path.is_symlink() and not follow else reason
    )
    assert problem.value.filename == str(path) or problem.value.filename == path
    assert (len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0) == before


@posix_only
def test_a_link_is_followed_only_if_asked(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to("file")
    assert read_plain(tmp_path / "link", 9, follow=True) == b"x"
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        read_plain(tmp_path / "link", 9)


def test_what_is_made_once_is_never_made_again(tmp_path: Path) -> None:
    assert create_once(tmp_path / "file", b"first")
    assert not create_once(tmp_path / "file", b"second")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("file", b"first")]
    replace(tmp_path / "file", b"third")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("file", b"third")]


def test_drafts_of_killed_processes_are_dropped_and_nothing_else(tmp_path: Path) -> None:
    draft, other = f".file-{'0' * 16}", f".other-{'0' * 16}"
    kept = [".file", "file", f"file-{'0' * 16}", f".file-{'0' * 15}", f".file-{'x' * 16}"]
    for name in (draft, other, *kept):
        (tmp_path / name).write_text("")
    drop_drafts(tmp_path, "file")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([other, *kept])
    drop_drafts(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(kept)


def test_files_that_are_made_together_are_whole_private_and_never_replaced(tmp_path: Path) -> None:
    make_folder(tmp_path / "a" / "b")
    make_folder(tmp_path / "a" / "b")
    one, two = tmp_path / "a" / "one", tmp_path / "a" / "b" / "two"
    assert create_each({one: b"1", two: b"2"}) == []
    assert create_each({one: b"x", two.with_name("three"): b"3"}) == [one]
    assert [path.read_bytes() for path in (one, two, two.with_name("three"))] == [b"1", b"2", b"3"]
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "b", "one", "three", "two"]
    if sys.platform != "win32":
        modes = [path.stat().st_mode & 0o777 for path in (tmp_path / "a", tmp_path / "a" / "b", one, two)]
        assert modes == [0o700, 0o700, 0o600, 0o600]
