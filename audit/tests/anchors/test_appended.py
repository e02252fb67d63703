"""A file on other media takes checkpoints one below the other, and is no link, pipe or missing medium."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from licet.record import AnchorFailure
from licet.settings import Anchors
from licet_audit.anchors import NotAnchored, anchored, appended
from licet_audit.notes import Note
from servers import Grow

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX files of all kinds")


@pytest.fixture
def medium(tmp_path: Path) -> Path:
    (tmp_path / "medium").touch()
    return tmp_path / "medium"


def test_checkpoints_stand_one_below_the_other_each_once(grow: Grow, medium: Path) -> None:
    first, second = grow(10), grow(12)
    for head in (first, first, second):
        assert appended.see(head, medium) == (head.note, None)
    assert medium.read_bytes() == first.note + b"\n" + second.note + b"\n"
    assert [note.data for note in appended.found_in(medium, first.origin)] == [first.note, second.note]
    assert list(appended.found_in(medium, "another")) == []


def test_what_was_cut_or_is_something_else_is_passed_over(grow: Grow, medium: Path) -> None:
    head = grow(10)
    medium.write_bytes(b"notes of an operator\n" + head.note[:-50])
    appended.see(head, medium)
    assert medium.read_bytes().startswith(b"notes of an operator\n" + head.note[:-50] + b"\n\n")
    assert [note.data for note in appended.found_in(medium, head.origin)][-1] == head.note


def test_a_medium_that_is_not_there_is_not_mistaken_for_an_empty_one(grow: Grow, tmp_path: Path) -> None:
    with pytest.raises(NotAnchored, match=r"^there is no file `.*/gone`: is its medium there\?"):
        appended.see(grow(3), tmp_path / "gone")
    assert not (tmp_path / "gone").exists()


@posix_only
def test_links_and_pipes_are_refused(grow: Grow, medium: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(medium)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(NotAnchored, match=r"^`.*/link` can't be used: too many levels of symbolic links$"):
        appended.see(grow(3), tmp_path / "link")
    with pytest.raises(NotAnchored, match=r"^`.*/pipe` can't be used: not a plain file$"):
        appended.see(grow(3), tmp_path / "pipe")
    assert medium.read_bytes() == b""


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file on a file system of its own, of 16 KiB."""
    if sys.platform != "linux" or os.geteuid():
        pytest.skip("needs root on Linux")
    folder = tmp_path / "mounted"
    folder.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16k", "none", folder], capture_output=True
    ).returncode:
        pytest.skip("no file system can be mounted here")
    (folder / "medium").touch()
    yield folder / "medium"
    subprocess.run(["umount", folder], check=True)


def test_a_full_medium_is_a_failure_and_spoils_no_other(grow: Grow, small: Path, medium: Path) -> None:
    head = grow(10)
    wanted = Anchors(files=(small, medium))
    assert [type(one).__name__ for one in anchored(head, wanted)] == ["AnchorReceipt"] * 2
    (small.parent / "filler").write_bytes(b"x" * (3 * 4096 - 1))
    small.write_bytes(b"x" * 4096)
    first, second = anchored(grow(11), wanted)
    assert first == AnchorFailure("file", str(small), "no space left on device")
    assert [Note.parse(second.data)] == list(appended.found_in(medium, head.origin))[1:]  # type: ignore[union-attr]
