"""Opening the directory of a run: the one that the path names, and nothing that a link leads to."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from licet.supervise.descriptors import Descriptors

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs a POSIX host")


def test_a_directory_is_opened_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    with Descriptors() as fds:
        for path in (f"{tmp_path}/a/b", f"{tmp_path}//a/./b/", f"{tmp_path}/a/b/../b", "/"):
            opened, named = os.fstat(fds.folder(path)), os.stat(path)
            assert (opened.st_dev, opened.st_ino) == (named.st_dev, named.st_ino)


@pytest.mark.parametrize("path", ["link", "link/inside", "real/up", "dangling", "loop"])
def test_no_link_is_followed(tmp_path: Path, path: str) -> None:
    (tmp_path / "real" / "inside").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "real" / "up").symlink_to("..")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    with Descriptors() as fds, pytest.raises(OSError, match="a symbolic link is on the way") as refused:
        fds.folder(f"{tmp_path}/{path}")
    assert refused.value.errno == errno.ELOOP


@pytest.mark.parametrize(
    ("path", "problem"), [("nowhere", FileNotFoundError), ("file", NotADirectoryError), ("a\0b", ValueError)]
)
def test_what_is_no_directory_is_said(tmp_path: Path, path: str, problem: type[Exception]) -> None:
    (tmp_path / "file").write_text("")
    before = len(os.listdir("/dev/fd"))
    with Descriptors() as fds, pytest.raises(problem):
        fds.folder(f"{tmp_path}/{path}")
    assert len(os.listdir("/dev/fd")) == before


def test_a_path_begins_at_the_root() -> None:
    with Descriptors() as fds, pytest.raises(ValueError, match="it is not absolute"):
        fds.folder("tmp")
