"""The state directory: whose it is, and that it is made exactly once."""

import errno
import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from licet import state
from licet.errors import AuditUnavailable

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX owners and modes")
root_only = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="needs root on Linux, to mount a tmpfs"
)

RACE = """
import sys
from pathlib import Path
from licet import state
sys.stdin.readline()
print(state.open_state(Path(sys.argv[1])).log_id, state.host_key().hex())
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    place = tmp_path / "mount"
    place.mkdir()

    def mount(options: str) -> Path:
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", place], check=True)
        return place

    yield mount
    if place.is_mount():
        subprocess.run(["umount", place], check=True)


def refusal(path: Path) -> AuditUnavailable:
    with pytest.raises(AuditUnavailable) as caught:
        state.open_state(path)
    return caught.value


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_missing_directory_is_made_private_and_keeps_its_id(tmp_path: Path) -> None:
    made = state.open_state(tmp_path / ".licet")
    assert mode(made.path) == 0o700
    assert len(made.log_id) == 32
    assert state.open_state(tmp_path / ".licet") == made
    assert state.read_state(tmp_path / ".licet") == made


def test_an_empty_directory_is_taken(tmp_path: Path) -> None:
    (tmp_path / ".licet").mkdir(mode=0o700)
    assert state.open_state(tmp_path / ".licet") == state.read_state(tmp_path / ".licet")


def test_a_deleted_directory_starts_anew(tmp_path: Path) -> None:
    before = state.open_state(tmp_path / ".licet")
    shutil.rmtree(before.path)
    assert state.open_state(tmp_path / ".licet").log_id != before.log_id


def test_a_shipped_directory_is_refused_and_stays_readable(tmp_path: Path) -> None:
    shipped = tmp_path / "checkout" / ".licet"
    shipped.mkdir(parents=True)
    (shipped / "id").write_text("0" * 32 + "\n")
    problem = refusal(shipped)
    assert problem.message == f"`{shipped}` was not made by licet for this user on this host"
    assert problem.advice == "move it aside and run again; `licet audit` still reads it"
    assert sorted(path.name for path in shipped.iterdir()) == ["id"]
    assert state.read_state(shipped).log_id == "0" * 32


def test_a_shipped_configuration_without_an_id_is_refused(tmp_path: Path) -> None:
    shipped = tmp_path / ".licet"
    shipped.mkdir()
    (shipped / "config.toml").write_text('enabled = ["evil"]\n')
    assert "was not made by licet" in refusal(shipped).message
    assert [path.name for path in shipped.iterdir()] == ["config.toml"]


def test_a_copy_of_a_registered_directory_is_refused(tmp_path: Path) -> None:
    made = state.open_state(tmp_path / ".licet")
    shutil.copytree(made.path, tmp_path / "copy")
    problem = refusal(tmp_path / "copy")
    assert problem.message == (
        f"`{tmp_path / 'copy'}` is not written to: its log is registered for `{made.path}`, "
        "and this may be a copy"
    )
    assert problem.advice == (
        "move it back there, or aside to begin a new log here; `licet audit` still reads it"
    )
    assert state.trusted(tmp_path / "copy") is None
    copy = state.read_state(tmp_path / "copy")
    assert (copy.log_id, state.may_pin(copy), state.may_pin(made)) == (made.log_id, False, True)


def test_a_directory_in_the_place_of_a_registered_one_is_refused(tmp_path: Path) -> None:
    made = state.open_state(tmp_path / ".licet")
    made.path.rename(tmp_path / "moved")
    shutil.copytree(tmp_path / "moved", made.path)
    problem = refusal(made.path)
    assert (
        problem.message
        == f"`{made.path}` is a copy of the directory that is registered there, or replaces it"
    )
    assert problem.advice == (
        "put the original back, or move this one aside to begin a new log; `licet audit` still reads it"
    )


def registered(home: Path, log_id: str) -> dict[str, object]:
    found: dict[str, object] = json.loads((home / "licet" / "logs" / f"{log_id}.json").read_text())
    return found


def test_a_moved_directory_stays_what_it_was(tmp_path: Path, home: Path) -> None:
    (tmp_path / "here").mkdir()
    made = state.open_state(tmp_path / "here" / ".licet")
    (tmp_path / "here").rename(tmp_path / "there")
    moved = state.StateDirectory(tmp_path / "there" / ".licet", made.log_id)
    assert state.trusted(moved.path) == moved
    assert state.may_pin(moved)
    assert registered(home, made.log_id)["path"] == str(made.path)  # looking changes nothing
    assert state.open_state(moved.path) == moved
    assert registered(home, made.log_id)["path"] == str(moved.path)
    (tmp_path / "here").mkdir()
    assert state.open_state(made.path).log_id != made.log_id


@posix_only
def test_the_number_of_an_inode_that_was_given_out_again_is_no_move(tmp_path: Path, home: Path) -> None:
    """What a checkout that brings a known id would be, on the freed inode of the deleted original."""
    made = state.open_state(tmp_path / ".licet")
    moved = tmp_path / "elsewhere"
    made.path.rename(moved)
    known = registered(home, made.log_id)["id_changed_ns"]
    while (moved / "id").lstat().st_ctime_ns == known:
        (moved / "id").chmod(0o600)
    assert "its log is registered for" in refusal(moved).message
    assert state.trusted(moved) is None
    moved.rename(made.path)
    assert state.open_state(made.path) == made


@posix_only
def test_a_registration_of_a_process_that_was_killed_is_good_for_its_place_alone(
    tmp_path: Path, home: Path
) -> None:
    made = state.open_state(tmp_path / ".licet")
    content = registered(home, made.log_id)
    del content["id_changed_ns"]
    (home / "licet" / "logs" / f"{made.log_id}.json").write_text(json.dumps(content))
    assert state.open_state(made.path) == state.trusted(made.path) == made
    made.path.rename(tmp_path / "elsewhere")
    assert "its log is registered for" in refusal(tmp_path / "elsewhere").message


def test_looking_makes_nothing(tmp_path: Path, home: Path) -> None:
    assert state.trusted(tmp_path / ".licet") is None
    (tmp_path / ".licet").mkdir(mode=0o700)
    assert state.trusted(tmp_path / ".licet") is None
    (tmp_path / ".licet" / "id").write_text("0" * 32 + "\n")
    assert state.trusted(tmp_path / ".licet") is None
    assert state.user_state_path() == home / "licet"
    assert sorted(path.name for path in tmp_path.rglob("*")) == [".licet", "id"]
    made = state.open_state(tmp_path / "made")
    assert state.trusted(made.path) == made


@posix_only
@pytest.mark.parametrize("path", ["/proc/nowhere/.licet", "/dev/null", "/" + "x" * 5000])
def test_what_can_be_no_state_directory_is_not_trusted(path: str) -> None:
    assert state.trusted(Path(path)) is None


@posix_only
def test_a_state_directory_that_others_may_write_to_is_not_trusted(tmp_path: Path) -> None:
    made = state.open_state(tmp_path / ".licet")
    made.path.chmod(0o770)
    assert state.trusted(made.path) is None


@posix_only
def test_a_user_without_a_home_trusts_no_directory_called_home(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = state.open_state(tmp_path / ".licet")
    shutil.copytree(home / "licet", tmp_path / "~" / ".local" / "state" / "licet")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", "")
    monkeypatch.setenv("HOME", "~")
    # the account's own home counts then, and whatever that is, nothing beside the code is believed
    assert state.user_state_path() != tmp_path / "~" / ".local" / "state" / "licet"
    assert state.trusted(made.path) is None


@posix_only
def test_who_has_no_place_for_keys_is_told_which_variable_names_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null/state")
    with pytest.raises(AuditUnavailable) as problem:
        state.user_state()
    assert problem.value.message == "a part of `/dev/null/state/licet` is not a directory"
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/nowhere")
    with pytest.raises(AuditUnavailable) as problem:
        state.host_key()
    assert problem.value.message == "`/proc/nowhere` can't be used: no such file or directory"
    assert problem.value.advice == "repair that, or point XDG_STATE_HOME at another directory"


@posix_only
def test_what_is_said_of_a_long_path_is_short() -> None:
    problem = refusal(Path("/" + "x" * 5000))
    assert problem.message == f"`/{'x' * 298}…` can't be used: file name too long"


def test_all_registrations_are_listed_and_what_is_none_is_left_out(tmp_path: Path, home: Path) -> None:
    assert state.registered() == ()
    assert not home.exists()
    made = sorted((state.open_state(tmp_path / name) for name in "ab"), key=lambda one: one.log_id)
    assert state.registered() == tuple((one.log_id, one.path) for one in made)
    logs = home / "licet" / "logs"
    (logs / f"{'0' * 32}.json").write_text("{}")
    (logs / "notes.json").write_text("{}")
    (logs / f"{made[0].log_id}.txt").write_text("{}")
    assert state.registered() == tuple((one.log_id, one.path) for one in made)


def test_a_damaged_registration_is_none(tmp_path: Path, home: Path) -> None:
    made = state.open_state(tmp_path / ".licet")
    registration = home / "licet" / "logs" / f"{made.log_id}.json"
    assert json.loads(registration.read_text())["path"] == str(made.path)
    registration.write_text("[]")
    assert "was not made by licet" in refusal(made.path).message


@pytest.mark.parametrize("steps", [["registration"], ["registration", "draft"], ["draft"]])
def test_a_kill_while_it_is_made_locks_nobody_out(tmp_path: Path, home: Path, steps: list[str]) -> None:
    path = tmp_path / ".licet"
    path.mkdir(mode=0o700)
    if "registration" in steps:
        (home / "licet" / "logs").mkdir(parents=True)
        (home / "licet").chmod(0o700)
        (home / "licet" / "logs" / f"{'a' * 32}.json").write_text(json.dumps({"path": str(path)}))
    if "draft" in steps:
        (path / ".id-0123456789abcdef").write_text("half")
    assert state.open_state(path) == state.open_state(path)


@posix_only
def test_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".licet").symlink_to("elsewhere")
    problem = refusal(tmp_path / ".licet")
    assert problem.message == f"`{tmp_path / '.licet'}` is a symbolic link"
    assert problem.advice == "replace it by what it points at"
    assert list((tmp_path / "elsewhere").iterdir()) == []


@posix_only
def test_a_dangling_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".licet").symlink_to("nowhere")
    assert refusal(tmp_path / ".licet").message == f"`{tmp_path / '.licet'}` is a symbolic link"
    assert not (tmp_path / "nowhere").exists()


def test_a_folder_behind_a_link_is_the_folder(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert state.open_state(tmp_path / "link" / ".licet") == state.open_state(tmp_path / "real" / ".licet")


def test_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".licet").write_text("")
    problem = refusal(tmp_path / ".licet")
    assert problem.message == f"a part of `{tmp_path / '.licet'}` is not a directory"
    assert problem.advice == "move that file aside, then run again"


@posix_only
def test_a_directory_that_others_may_write_to_is_refused(tmp_path: Path) -> None:
    made = state.open_state(tmp_path / ".licet")
    made.path.chmod(0o770)
    problem = refusal(made.path)
    assert problem.message == f"other users may write to `{made.path}`"
    assert problem.advice == f"check what is in it, then run `chmod 700 {made.path}`"


@root_only
def test_a_directory_of_another_user_is_refused(tmp_path: Path) -> None:
    made = state.open_state(tmp_path / ".licet")
    os.chown(made.path, 12345, 12345)
    assert refusal(made.path).message == f"`{made.path}` belongs to user 12345, expected 0"


@posix_only
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_an_id_that_is_no_plain_file_neither_hangs_nor_counts(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    (tmp_path / ".licet").mkdir(mode=0o700)
    make(tmp_path / ".licet" / "id")
    assert str(tmp_path / ".licet" / "id") in refusal(tmp_path / ".licet").message
    with pytest.raises(AuditUnavailable):
        state.read_state(tmp_path / ".licet")


def test_an_id_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".licet").mkdir(mode=0o700)
    (tmp_path / ".licet" / "id").write_text("../../etc")
    assert refusal(tmp_path / ".licet").message == f"`{tmp_path / '.licet' / 'id'}` holds no log id"


def test_reading_what_is_missing_says_so(tmp_path: Path) -> None:
    with pytest.raises(AuditUnavailable, match="can't be used: no such file or directory"):
        state.read_state(tmp_path / ".licet")
    (tmp_path / ".licet").mkdir()
    with pytest.raises(AuditUnavailable, match="holds no log"):
        state.read_state(tmp_path / ".licet")
    assert list((tmp_path / ".licet").iterdir()) == []


@root_only
def test_a_read_only_file_system_is_told(mounted: Callable[[str], Path]) -> None:
    problem = refusal(mounted("ro") / ".licet")
    assert problem.message.endswith("/.licet` is on a read-only file system")
    assert problem.advice == "make it writable, or point LICET_HOME at a directory that is"


@root_only
def test_a_full_disk_is_told_and_can_be_recovered_from(mounted: Callable[[str], Path]) -> None:
    place = mounted("size=16k")
    with pytest.raises(OSError) as full, (place / "ballast").open("wb", buffering=0) as ballast:
        while True:
            ballast.write(bytes(4096))
    assert full.value.errno == errno.ENOSPC
    problem = refusal(place / ".licet")
    assert problem.message.endswith("is full")
    assert problem.advice == "free some space on it, then run again"
    (place / "ballast").unlink()
    assert state.open_state(place / ".licet") == state.read_state(place / ".licet")


@posix_only
def test_a_relative_home_is_never_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setenv("XDG_STATE_HOME", "here")
    assert state.user_state().is_absolute()
    assert not (tmp_path / "here").exists()


@posix_only
def test_a_home_that_is_a_link_is_refused(tmp_path: Path, home: Path) -> None:
    home.mkdir()
    (tmp_path / "other").mkdir()
    (home / "licet").symlink_to(tmp_path / "other")
    with pytest.raises(AuditUnavailable, match="is a symbolic link"):
        state.user_state()


@posix_only
def test_the_key_is_made_once_and_kept_private(home: Path) -> None:
    key = state.host_key()
    assert (len(key), state.host_key()) == (32, key)
    assert mode(home / "licet") == 0o700
    assert mode(home / "licet" / "host.key") == 0o600
    assert [path.name for path in (home / "licet").iterdir()] == ["host.key"]


@posix_only
def test_a_key_that_others_may_read_is_refused(home: Path) -> None:
    state.host_key()
    (home / "licet" / "host.key").chmod(0o640)
    with pytest.raises(AuditUnavailable, match="other users may read or own"):
        state.host_key()


def test_a_short_key_is_refused(home: Path) -> None:
    state.host_key()
    (home / "licet" / "host.key").write_bytes(b"short")
    with pytest.raises(AuditUnavailable, match="holds 5 bytes, expected 32"):
        state.host_key()


def test_racing_processes_agree_on_one_id_and_one_key(tmp_path: Path, home: Path) -> None:
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACE, tmp_path / ".licet"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(6)
    ]
    for racer in racers:  # all are started before the first one may go
        assert racer.stdin is not None
        racer.stdin.write("\n")
        racer.stdin.flush()
    answers = {racer.communicate(timeout=30)[0] for racer in racers}
    assert [racer.returncode for racer in racers] == [0] * 6
    assert answers == {f"{state.open_state(tmp_path / '.licet').log_id} {state.host_key().hex()}\n"}
    assert [path.name for path in (tmp_path / ".licet").iterdir()] == ["id"]
    assert len(list((home / "licet" / "logs").iterdir())) == 1


PARTS = st.lists(st.binary(max_size=6), max_size=4)


@given(PARTS, PARTS)
def test_only_equal_lists_of_parts_have_equal_digests(first: list[bytes], second: list[bytes]) -> None:
    same = state.digest(b"k", *first) == state.digest(b"k", *second)
    assert same == (first == second)


def test_a_digest_depends_on_the_key() -> None:
    assert state.digest(b"a", b"x") != state.digest(b"b", b"x")
    # HMAC-SHA-256 over eight bytes of length and one of content, as `openssl dgst -hmac key` computes it.
    assert state.digest(b"key", b"a") == (
        "hmac-sha256:2b2f847a8ddc35a0798156bcd534808ef8cf9fa165daf2d665238a9d7db0f83f"
    )
