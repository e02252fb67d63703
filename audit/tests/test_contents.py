"""Kept content: stored durably, believed only as committed, deleted whole, and never outside its folder."""

import os
import sys
from pathlib import Path

import pytest
from licet.errors import AuditUnavailable
from licet.record import Kept
from licet.state import StateDirectory
from licet_audit import contents


def test_what_was_stored_is_read_back_and_nobody_else_may_read_it(state: StateDirectory) -> None:
    kept = [Kept("code", b"print(1)"), Kept("stdin", b""), Kept("stdout", os.urandom(3 << 20))]
    contents.store(state, kept)
    for one in kept:
        assert contents.read(state, one.commitment) == one.data
        assert contents.state_of(state, one.commitment) == "intact"
        path = contents.path_of(state, one.commitment)
        if sys.platform != "win32":
            assert path.stat().st_mode & 0o777 == 0o600
            assert path.parent.stat().st_mode & 0o777 == path.parent.parent.stat().st_mode & 0o777 == 0o700
    assert list(contents.stored(state)) == sorted(one.commitment for one in kept)


def test_equal_content_has_unequal_names(state: StateDirectory) -> None:
    one, other = Kept("code", b"x"), Kept("code", b"x")
    contents.store(state, [one, other])
    assert one.commitment != other.commitment
    assert contents.delete(state, [one.commitment]) == 1
    assert contents.read(state, other.commitment) == b"x"


def test_storing_again_repairs_what_was_cut_short(state: StateDirectory) -> None:
    one = Kept("code", b"print(1)")
    contents.store(state, [one])
    os.truncate(contents.path_of(state, one.commitment), 35)
    assert contents.state_of(state, one.commitment) == "altered"
    assert contents.read(state, one.commitment) is None
    contents.store(state, [one])
    assert contents.read(state, one.commitment) == b"print(1)"


@pytest.mark.parametrize("position", [0, 31, 32, 39])
def test_no_changed_byte_is_believed(state: StateDirectory, position: int) -> None:
    one = Kept("code", b"print(1)")
    contents.store(state, [one])
    path = contents.path_of(state, one.commitment)
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)
    assert contents.read(state, one.commitment) is None
    assert contents.state_of(state, one.commitment) == "altered"


def test_a_batch_that_fails_leaves_nothing(state: StateDirectory) -> None:
    first, second = Kept("code", b"1"), Kept("stdin", b"2")
    contents.path_of(state, second.commitment).mkdir(parents=True)
    with pytest.raises(OSError):
        contents.store(state, [first, second])
    assert contents.state_of(state, first.commitment) == "missing"


@pytest.mark.parametrize("name", ["", "..", "../" * 21 + "a", "A" * 64, "a" * 63, "a" * 64 + "\n", "é" * 64])
def test_a_name_that_is_no_commitment_touches_no_file(state: StateDirectory, name: str) -> None:
    for act in (contents.read, contents.state_of, contents.path_of):
        with pytest.raises(ValueError, match="is no commitment"):
            act(state, name)
    with pytest.raises(ValueError, match="is no commitment"):
        contents.delete(state, [name])


@pytest.mark.parametrize("linked", ["content", "folder"])
def test_a_link_in_the_place_of_a_folder_is_never_followed(
    state: StateDirectory, tmp_path: Path, linked: str
) -> None:
    one = Kept("code", b"x")
    contents.store(state, [one])
    path = contents.path_of(state, one.commitment)
    folder = path.parent if linked == "folder" else path.parent.parent
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(AuditUnavailable, match="symbolic link"):
        contents.read(state, one.commitment)
    for act in (lambda: contents.store(state, [one]), lambda: contents.delete(state, [one.commitment])):
        with pytest.raises(OSError):
            act()
    assert len([found for found in (tmp_path / "elsewhere").rglob("*") if found.is_file()]) == 1


def test_a_link_in_the_place_of_content_is_not_read_but_deleted(
    state: StateDirectory, tmp_path: Path
) -> None:
    one = Kept("code", b"x")
    contents.store(state, [one])
    path = contents.path_of(state, one.commitment)
    path.rename(tmp_path / "precious")
    path.symlink_to(tmp_path / "precious")
    with pytest.raises(AuditUnavailable, match="symbolic link"):
        contents.read(state, one.commitment)
    assert contents.delete(state, [one.commitment]) == 1
    assert (tmp_path / "precious").exists()


def test_what_cannot_be_deleted_keeps_nothing_else(state: StateDirectory) -> None:
    one, other = sorted((Kept("code", b"x"), Kept("code", b"y")), key=lambda kept: kept.commitment)
    contents.store(state, [other])
    contents.path_of(state, one.commitment).mkdir(parents=True)
    assert contents.state_of(state, one.commitment) == "altered"
    with pytest.raises(OSError):
        contents.delete(state, [one.commitment, other.commitment])
    assert contents.state_of(state, other.commitment) == "missing"


def test_orphans_are_what_no_record_names(state: StateDirectory) -> None:
    one, other = Kept("code", b"x"), Kept("code", b"y")
    contents.store(state, [one, other])
    (contents.path_of(state, one.commitment).parent / "notes.txt").write_text("not ours")
    assert contents.orphans(state, {one.commitment}) == [other.commitment]


def test_a_log_without_kept_content_has_no_folder_for_it(state: StateDirectory) -> None:
    contents.store(state, [])
    assert not (state.path / "content").exists()
    assert list(contents.stored(state)) == []
    assert contents.delete(state, ["a" * 64]) == 0
