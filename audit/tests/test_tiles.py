"""Tiles: named and filled as C2SP says, and the hashes that come from them those of the slow tree."""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from licet.errors import AuditUnavailable
from licet.files import make_folder
from licet.state import StateDirectory
from licet_audit import tree
from licet_audit.leaves import Snapshot
from licet_audit.segments import Segment
from licet_audit.tiles import (
    HASH,
    WIDTH,
    DamagedTile,
    GrowingTree,
    LogHashes,
    Tile,
    ends_complete,
    read_tile,
    write_tiles,
)
from slow_tree import complete, slow_root, some_leaves

Lay = Callable[..., tuple[Snapshot, list[bytes]]]


@pytest.fixture
def lay(state: StateDirectory) -> Lay:
    """Lay lines into segments of the given lengths, as a snapshot of them, and say what their leaves are."""

    def write(*lengths: int, torn: bytes = b"") -> tuple[Snapshot, list[bytes]]:
        shutil.rmtree(state.path / "log", ignore_errors=True)
        make_folder(state.path / "log")
        found, first = [], 0
        for length in lengths:
            path = state.path / "log" / f"seg-{first:020d}.jsonl"
            data = b"".join(b"%d\n" % number for number in range(first, first + length))
            path.write_bytes(data + (torn if first + length == sum(lengths) else b""))
            found.append(Segment(path, first, path.stat().st_size))
            first += length
        return Snapshot(tuple(found), first, sealed=False), some_leaves(first)

    return write


def grown(state: StateDirectory, leaves: list[bytes]) -> GrowingTree:
    """The tree of some leaves, its tiles written."""
    found = GrowingTree()
    found.extend(leaves)
    write_tiles(state, found.tiles())
    return found


def names(state: StateDirectory) -> list[str]:
    top = state.path / "tile"
    return sorted(path.relative_to(top).as_posix() for path in top.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("tile", "name"),
    [
        (Tile(0, 0), "0/000"),
        (Tile(0, 999), "0/999"),
        (Tile(0, 1000), "0/x001/000"),
        (Tile(2, 1234067), "2/x001/x234/067"),
        (Tile(63, 5, 255), "63/005.p/255"),
        (Tile(3, 1234067, 1), "3/x001/x234/067.p/1"),
    ],
)
def test_a_tile_is_named_as_c2sp_names_it(tile: Tile, name: str) -> None:
    assert tile.name == name


def digest(*parts: bytes) -> str:
    return hashlib.sha256(b"".join(parts)).hexdigest()


def test_a_tree_of_70000_leaves_has_the_tiles_that_go_computes(state: StateDirectory, lay: Lay) -> None:
    """The digests were made with `golang.org/x/mod/sumdb/tlog` 0.7.0, with tiles of height 8."""
    snapshot, leaves = lay(70_000)
    found = GrowingTree()
    found.extend(leaves)
    assert found.root().hex() == "1a4cdfcb66374a0c0dcbef49acbd4976d13ee864fb3cb241fc943cad04f02f7e"
    tiles = found.tiles()
    lowest = [data for tile, data in tiles.items() if tile.level == 0]
    assert (len(lowest), digest(*lowest)) == (
        273, "2405d927b1158401c6c5c5ff354d7ce9205fc9fbb228c26d6e9fb43e8062f2d7"
    )  # fmt: skip
    assert {tile.name: digest(data) for tile, data in tiles.items() if tile.level > 0} == {
        "1/000": "ea7b038bc73489c89c31a27ac355aaca65a4ed73f0dd7484e68deb29d30f10a2",
        "1/001.p/17": "adfaca2731630fe7944a4b98a0f98ef3e98685eafda09e6f81070218fb759ce4",
        "2/000.p/1": "f0113c8bad855b49f9a5dd661d50012cd94f19aae87a45eb8334666835e3caea",
    }
    write_tiles(state, tiles)
    hashes = LogHashes(state, snapshot)
    assert [digest(*tree.consistency(hashes, *sizes)) for sizes in ((65535, 70_000), (256, 65536))] == [
        "6b601bcdffd786cc87e031f47e1bff054df8b8ab3b492bbcd329133ac0a36b3a",
        "5096cc2f7679a87056c63619feb933ddec21f707ca3aea5ee308928619ea78d4",
    ]
    assert [digest(*tree.inclusion(hashes, index, 70_000)) for index in (0, 65535, 69_999)] == [
        "834e90bf94e0793f400559c4912e0ea1e6265be0e53eb0ef946aceac71f62881",
        "f28ab759f69c32d0a5668eb3e45b21dd05ae827916cd894222a106d20f8f61d8",
        "06840adeb9aef6246e85c1dd08b547ca4a0b6f7c20da6a20ceed1be00bebfe4c",
    ]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(1, 400), min_size=1, max_size=5), st.data())
def test_every_hash_is_that_of_the_slow_tree(
    state: StateDirectory, lay: Lay, lengths: list[int], data: st.DataObject
) -> None:
    snapshot, leaves = lay(*lengths, torn=b"half a li")
    shutil.rmtree(state.path / "tile", ignore_errors=True)
    tiled = data.draw(st.integers(0, snapshot.size))
    grown(state, leaves[:tiled])
    hashes = LogHashes(state, snapshot)
    level = data.draw(st.integers(0, snapshot.size.bit_length() - 1))
    index = data.draw(st.integers(0, (snapshot.size >> level) - 1))
    assert hashes.hash_at(level, index) == slow_root(leaves[index << level : (index + 1) << level])
    size = data.draw(st.integers(0, snapshot.size))
    assert tree.root(hashes, size) == slow_root(leaves[:size])


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 700), min_size=1, max_size=6))
def test_a_tree_that_grows_in_steps_has_the_root_of_all_leaves(steps: list[int]) -> None:
    leaves = some_leaves(sum(steps))
    found, size = GrowingTree(), 0
    for step in steps:
        found.extend(leaves[size : size + step])
        size += step
        assert (found.size, found.root()) == (size, slow_root(leaves[:size]))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 900), st.integers(0, 900))
def test_a_tree_that_is_resumed_from_disk_goes_on_as_if_it_had_never_stopped(
    state: StateDirectory, lay: Lay, before: int, after: int
) -> None:
    shutil.rmtree(state.path / "tile", ignore_errors=True)
    snapshot, leaves = lay(before + after + 1)
    grown(state, leaves[:before])
    resumed = GrowingTree.at(LogHashes(state, snapshot), before)
    resumed.extend(leaves[before:])
    write_tiles(state, resumed.tiles())
    kept = (
        {name: (state.path / "tile" / name).read_bytes() for name in names(state)} if before + after else {}
    )
    assert resumed.root() == slow_root(leaves)
    shutil.rmtree(state.path / "tile", ignore_errors=True)
    grown(state, leaves)
    if before + after:
        assert kept == {name: (state.path / "tile" / name).read_bytes() for name in names(state)}


def test_upper_tiles_are_kept_while_they_grow_and_give_way_to_wider_ones(state: StateDirectory) -> None:
    leaves = some_leaves(WIDTH * WIDTH)
    found = GrowingTree()
    for size, expected in ((255, []), (256, ["0/000", "1/000.p/1"]), (800, ["1/000.p/3"])):
        found.extend(leaves[found.size : size])
        write_tiles(state, found.tiles())
        assert [name for name in names(state) if name in expected or name.startswith("1/")] == expected
    found.extend(leaves[800:])
    write_tiles(state, found.tiles())
    assert [name for name in names(state) if not name.startswith("0/")] == ["1/000", "2/000.p/1"]
    assert not (state.path / "tile" / "1" / "000.p").exists()
    assert (complete(state, found.size), ends_complete(state, found.size)) == (True, True)


def test_leaves_of_pruned_segments_are_found_in_tiles_alone(state: StateDirectory, lay: Lay) -> None:
    snapshot, leaves = lay(300, 300, 100)
    grown(state, leaves)
    snapshot.segments[0].path.unlink()
    pruned = LogHashes(state, Snapshot(snapshot.segments[1:], snapshot.size, sealed=False))
    assert [pruned.hash_at(0, index) for index in range(700)] == leaves
    shutil.rmtree(state.path / "tile")
    bare = LogHashes(state, Snapshot(snapshot.segments[1:], snapshot.size, sealed=False))
    with pytest.raises(LookupError, match=r"^record #256 is in no segment of the log$"):
        bare.hash_at(0, 299)
    assert bare.hash_at(0, 512) == leaves[512]


def test_what_the_log_does_not_have_has_no_hash(state: StateDirectory, lay: Lay) -> None:
    snapshot, leaves = lay(300)
    grown(state, leaves)
    with pytest.raises(LookupError, match=r"^the log has 300 records, and not all of subtree 8/1$"):
        LogHashes(state, snapshot).hash_at(8, 1)


@pytest.mark.parametrize("size", [0, 31, WIDTH * HASH - 1, WIDTH * HASH + 1, 2 * WIDTH * HASH])
def test_a_file_of_another_size_is_no_tile(state: StateDirectory, lay: Lay, size: int) -> None:
    snapshot, leaves = lay(600)
    grown(state, leaves)
    path = Tile(0, 1).path(state)
    path.write_bytes(bytes(size))
    with pytest.raises(DamagedTile) as caught:
        read_tile(state, 0, 1)
    assert str(caught.value) == f"`{path}` has {min(size, 8193)} bytes, a tile has 8192"
    assert LogHashes(state, snapshot).hash_at(0, 300) == leaves[300]
    assert not complete(state, 600)
    assert (ends_complete(state, 600), ends_complete(state, 511)) == (False, True)


def test_a_tile_is_written_again_but_never_another_in_its_place(state: StateDirectory) -> None:
    grown(state, some_leaves(600))
    grown(state, some_leaves(600))
    before = names(state)
    with pytest.raises(AuditUnavailable) as caught:
        grown(state, [b"x" * 32, *some_leaves(600)])
    assert caught.value.message == f"`{Tile(0, 0).path(state)}` is not the tile that the records make"
    assert names(state) == before


@pytest.mark.parametrize(
    ("name", "length", "message"),
    [("more", 5, "holds more records than it should"), ("fewer", 2, "holds fewer records than it should")],
)
def test_lines_that_do_not_fit_the_numbers_have_no_leaves(
    state: StateDirectory, lay: Lay, name: str, length: int, message: str
) -> None:
    snapshot, _ = lay(3, 3)
    segment = snapshot.segments[0]
    segment.path.write_bytes(b"0\n" * length)
    changed = Segment(segment.path, 0, 2 * length)
    with pytest.raises(LookupError, match=f"{message}$"):
        list(Snapshot((changed, snapshot.segments[1]), 6, sealed=False).leaves(0, 6))


def test_long_lines_are_found_from_the_end(state: StateDirectory) -> None:
    make_folder(state.path / "log")
    path = state.path / "log" / f"seg-{0:020d}.jsonl"
    lines = [bytes([97 + number]) * (number * 40_000 + 1) for number in range(9)]
    path.write_bytes(b"\n".join(lines) + b"\n")
    snapshot = Snapshot((Segment(path, 0, path.stat().st_size),), 9, sealed=False)
    for start in range(9):
        assert list(snapshot.leaves(start, 9)) == [tree.leaf(line) for line in lines[start:]]


def test_a_line_without_an_end_fills_no_memory(state: StateDirectory) -> None:
    make_folder(state.path / "log")
    path = state.path / "log" / f"seg-{0:020d}.jsonl"
    with path.open("wb") as file:
        file.truncate(20 * 2**20)
        file.seek(0, os.SEEK_END)
        file.write(b"\n")
    snapshot = Snapshot((Segment(path, 0, path.stat().st_size),), 1, sealed=False)
    with pytest.raises(LookupError, match=r"has a line of more than 4194304 bytes$"):
        list(snapshot.leaves(0, 1))


def walk(top: Path) -> Iterator[Path]:
    return (path for path in top.rglob("*") if path.is_file())


def test_nothing_but_tiles_is_left_and_all_of_it_is_private(state: StateDirectory) -> None:
    grown(state, some_leaves(1000))
    assert names(state) == ["0/000", "0/001", "0/002", "1/000.p/3"]
    assert {path.stat().st_mode & 0o777 for path in walk(state.path / "tile")} == {0o600}
