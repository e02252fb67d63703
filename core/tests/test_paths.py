"""Paths: every POSIX row of the corpus, and what links can do to them."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from licet import paths
from licet.errors import InvalidRequest

CORPUS = Path(__file__).parent / "data/paths_hosts.jsonl"
ROWS = [json.loads(line) for line in CORPUS.read_text().splitlines()]


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Path]:
    """The fixture that the corpus describes, with `/sb` mapped to a directory of this test."""
    sb = tmp_path / "sb"
    for directory in ("work/sub", "workspace", "work2", "other"):
        (sb / directory).mkdir(parents=True)
    for file in ("work/a.txt", "work/sub/b.txt", "other/secret.txt", "workspace/c.txt"):
        (sb / file).touch()
    for link, target in {
        "work/in": "sub",
        "work/out": f"{sb}/other",
        "work/up": "..",
        "work/loop": "loop",
        "work/chain": "out",
        "work/dangling": f"{sb}/other/new.txt",
        "work/dang_in": "sub/new.txt",
        "link": f"{sb}/work",
        "work/flink": f"{sb}/other/secret.txt",
        "work/abs_in": f"{sb}/work/sub",
    }.items():
        (sb / link).symlink_to(target)
    yield sb


def mapped(sandbox: Path, path: str) -> str:
    """`/sb` of the corpus, in whatever spelling, becomes the fixture."""
    for spelling in ("//sb/", "/sb/"):
        if path.startswith(spelling):
            return spelling.removesuffix("sb/") + f"{sandbox}/".lstrip("/") + path.removeprefix(spelling)
    return str(sandbox) if path == "/sb" else path


def answer(root: str, path: str, cwd: str) -> str:
    try:
        opened = paths.canonical(root, base=root)
        return "inside" if paths.contains(opened, paths.canonical(path, base=cwd)) else "outside"
    except ValueError:
        return "reject"


@pytest.mark.parametrize("row", [r for r in ROWS if r["class"] == "path-posix"], ids=lambda row: row["id"])
def test_every_posix_row_of_the_corpus(sandbox: Path, row: dict[str, Any]) -> None:
    found = answer(mapped(sandbox, row["root"]), mapped(sandbox, row["path"]), f"{sandbox}/work")
    assert found == row["answer"], row["why"]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("chain/secret.txt", "outside"),
        ("up/other/secret.txt", "outside"),
        ("up/work/a.txt", "inside"),
        ("abs_in/b.txt", "inside"),
        ("loop", "reject"),
        ("loop/x", "reject"),
        ("flink", "outside"),
        ("in/../a.txt", "inside"),  # `in` is `sub`, so `..` is the work directory
        ("out/../work/a.txt", "inside"),  # `out` is elsewhere, so `..` is the parent of that
        ("out/../a.txt", "outside"),  # a lexical reading would say inside
        ("//proc/self/cwd/a.txt", "reject"),
        ("up/up/../../../../../../../../../../../proc/self/cwd", "reject"),
        ("/proc/./thread-self/root", "reject"),
        ("/proc/1/cwd", "reject"),
        ("/proc/mounts", "reject"),  # a link to self/mounts
        ("/dev/fd/3", "reject"),
        ("/dev/stdin", "reject"),
        ("/proc/cpuinfo", "outside"),
    ],
)
def test_links_are_followed_before_anything_is_compared(sandbox: Path, path: str, expected: str) -> None:
    assert answer(f"{sandbox}/work", path, f"{sandbox}/work") == expected


@pytest.mark.parametrize("target", ["/proc/self/cwd", "/dev/fd", "/proc/self"])
def test_a_link_hides_no_magic_link(tmp_path: Path, target: str) -> None:
    (tmp_path / "innocent").symlink_to(target)
    with pytest.raises(ValueError, match=r"^it goes through a link that is different for every process$"):
        paths.canonical("innocent/x", base=str(tmp_path))


def test_loops_are_refused_and_long_chains_like_the_system_does(tmp_path: Path) -> None:
    (tmp_path / "ping").symlink_to("pong")
    (tmp_path / "pong").symlink_to("ping")
    with pytest.raises(ValueError, match=r"^its symbolic links form a loop$"):
        paths.canonical("ping/x", base=str(tmp_path))
    (tmp_path / "hop0").mkdir()
    for hop in range(1, 42):
        (tmp_path / f"hop{hop}").symlink_to(f"hop{hop - 1}")
    assert paths.canonical("hop40", base=str(tmp_path)) == f"{tmp_path}/hop0"
    with pytest.raises(ValueError, match="loop"):
        paths.canonical("hop41", base=str(tmp_path))


def test_links_names_every_link_on_the_way(sandbox: Path) -> None:
    assert paths.links(f"{sandbox}/work/chain/secret.txt") == (f"{sandbox}/work/chain", f"{sandbox}/work/out")
    assert paths.links(f"{sandbox}/work/a.txt") == ()


def test_the_answer_of_the_walk_is_that_of_the_operating_system(sandbox: Path) -> None:
    for start in ("in/b.txt", "out/secret.txt", "chain", "up/up", "abs_in/../a.txt", "dangling", "link/../x"):
        path = f"{sandbox}/work/{start}"
        assert paths.resolve_links(path) == os.path.realpath(path)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("", "it is empty"),
        ("a\0b", "it holds a NUL byte"),
        ("a\ud800", "it holds a character that no file name can hold"),
        ("a" * 256, "one of its names is longer than 255 bytes"),
        ("é" * 128, "one of its names is longer than 255 bytes"),
        ("a/" * 2047 + "ab", "it is longer than 4095 bytes"),
    ],
)
def test_refusals_say_why(path: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"^{reason}$"):
        paths.canonical(path, base="/")


def test_a_short_path_below_a_long_one_is_too_long() -> None:
    base = "/" + "/".join(["d" * 200] * 20)
    assert len(paths.canonical("e" * 70, base=base)) <= paths.PATH_MAX
    with pytest.raises(ValueError, match="longer than 4095 bytes"):
        paths.canonical("e" * 100, base=base)


def test_a_relative_base_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^the base `work` is not absolute$"):
        paths.canonical("a", base="work")


NAMES = st.sampled_from(["a", "b", "ab", "..", ".", "", "c."])
PATHS = st.lists(NAMES, max_size=6).map(lambda names: "/no-such-root/" + "/".join(names))


@given(PATHS)
def test_canonical_is_a_fixed_point(path: str) -> None:
    once = paths.canonical(path, base="/")
    assert paths.canonical(once, base="/") == once
    assert "//" not in once and not {".", ".."} & set(once.split("/")) and (once == "/" or once[-1] != "/")


@given(PATHS, PATHS)
def test_containment_is_that_of_pathlib(left: str, right: str) -> None:
    root, path = paths.canonical(left, base="/"), paths.canonical(right, base="/")
    assert paths.contains(root, path) == Path(path).is_relative_to(root)


# The current directory


def test_the_current_directory_is_where_its_links_lead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.chdir(tmp_path / "link")
    here = paths.current_directory()
    assert here == paths.spelled(here) == paths.canonical(str(tmp_path / "real"), base="/")


def test_a_directory_that_is_different_for_every_process_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^it goes through a link that is different for every process$"):
        paths.spelled("/proc/1/task")
    assert paths.spelled("/process/1") == "/process/1"


def test_a_current_directory_that_is_gone_is_no_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(InvalidRequest, match=r"^the current directory is gone$"):
        paths.current_directory()


def test_a_way_that_leads_back_from_what_is_missing_follows_links_again(sandbox: Path) -> None:
    for path in ("gone/../out/x", "gone/deep/../../out/x", "a.txt/../out/x", "gone/../gone/../out/x"):
        assert paths.canonical(path, base=f"{sandbox}/work") == f"{sandbox}/other/x"
    assert paths.canonical("gone/../in/../gone/b", base=f"{sandbox}/work") == f"{sandbox}/work/gone/b"


def test_nothing_is_looked_for_below_what_is_missing(sandbox: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    readlink = os.readlink
    monkeypatch.setattr(os, "readlink", lambda path: looked.append(path) or readlink(path))
    paths.canonical("gone/in/out", base=f"{sandbox}/work")
    assert looked[-1] == f"{sandbox}/work/gone"
