"""The inventory: each thing that can become of a log, found as what it is, with a real case."""

import asyncio
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from licet.errors import UsageError
from licet.record import Entry, Record
from licet.state import StateDirectory, open_state
from licet_audit import checkpointer, seen
from licet_audit.cli.listing import list_runs
from licet_audit.inventory import KnownLog, inventory, missing
from licet_audit.log import DurableLog
from licet_audit.notes import Head
from licet_audit.reader import LogReader

Append = Callable[..., list[Record]]
Make = Callable[..., Entry]


def the(state: StateDirectory) -> KnownLog:
    """The one row about a log."""
    (found,) = (log for log in inventory() if log.log_id == state.log_id)
    return found


def verdict(state: StateDirectory) -> tuple[str, str, int | None]:
    row = the(state)
    return row.found, row.detail, row.records


@pytest.fixture
def log(state: StateDirectory, segment: Path) -> StateDirectory:
    """A log of ten records that was closed well."""
    return state


def copy(source: Path, target: Path) -> None:
    subprocess.run(["cp", "-a", source, target], check=True)


def test_a_log_that_is_as_it_was_left_is_here(
    log: StateDirectory, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpointer.time, "time", lambda: 2_000_000_000.5)
    checkpointer.Notary(log).checkpoint(renew=True)
    known = seen.of(log.log_id)
    assert known is not None and known.closed is not None
    assert list(inventory()) == [
        KnownLog(
            log.log_id,
            str(log.path),
            "here",
            "it continues the last checkpoint that was seen",
            records=10,
            signed=10,
            signed_at="2033-05-18T03:33:20Z",
            opened=known.opened,
            closed=known.closed,
        )
    ]
    assert missing() == ()


def test_a_log_with_a_living_writer_is_in_use(log: StateDirectory, entry: Make) -> None:
    async def run() -> list[tuple[bool, str]]:
        writer = DurableLog(log)
        await writer.append([entry()])
        found = [(the(log).in_use, the(log).found)]
        await writer.close()
        return [*found, (the(log).in_use, the(log).found)]

    assert asyncio.run(run()) == [(True, "here"), (False, "here")]


def test_the_file_of_a_dead_writer_is_not_in_use(log: StateDirectory) -> None:
    (log.path / "writers" / "0123456789abcdef").write_text("")
    assert not the(log).in_use


def wipe(state: StateDirectory, _: Path) -> None:
    shutil.rmtree(state.path)


def wipe_records(state: StateDirectory, _: Path) -> None:
    shutil.rmtree(state.path / "log")


def wipe_id(state: StateDirectory, _: Path) -> None:
    (state.path / "id").unlink()


def truncate(state: StateDirectory, _: Path) -> None:
    path = state.path / "log" / f"seg-{0:020d}.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:7]))


def rewrite(state: StateDirectory, _: Path) -> None:
    path = state.path / "log" / f"seg-{0:020d}.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"n":5', b'"n":6'))


def start_anew(state: StateDirectory, _: Path) -> None:
    shutil.rmtree(state.path)
    open_state(state.path)


def put_a_copy_back(state: StateDirectory, elsewhere: Path) -> None:
    shutil.copytree(state.path, elsewhere)
    shutil.rmtree(state.path)
    elsewhere.rename(state.path)


def damage(state: StateDirectory, _: Path) -> None:
    path = state.path / "log" / f"seg-{0:020d}.jsonl"
    path.write_bytes(path.read_bytes() + b"{}\n")


def damage_id(state: StateDirectory, _: Path) -> None:
    (state.path / "id").write_text("x")


def lose_the_first_segment(state: StateDirectory, _: Path) -> None:
    path = state.path / "log" / f"seg-{0:020d}.jsonl"
    path.rename(path.with_name(f"seg-{1:020d}.jsonl"))


@pytest.mark.parametrize(
    ("happens", "found", "detail", "records"),
    [
        (wipe, "wiped", "the directory is gone", None),
        (wipe_records, "wiped", "its records are gone", 0),
        (wipe_id, "wiped", "the directory holds no log any more", None),
        (truncate, "shorter", "10 records were signed, 7 are there", 7),
        (rewrite, "rewritten", "its first 10 records are not those that were signed", 10),
        (put_a_copy_back, "replaced", "a copy is in its place", None),
        (start_anew, "replaced", "another log is there, ", None),
        (damage, "unreadable", "the last line of `", None),
        (damage_id, "unreadable", "`", None),
        (lose_the_first_segment, "unreadable", "record #0 is in no segment of the log", None),
    ],
    ids=lambda case: getattr(case, "__name__", None),
)
def test_what_became_of_a_log_is_told(
    log: StateDirectory,
    tmp_path: Path,
    happens: Callable[[StateDirectory, Path], None],
    found: str,
    detail: str,
    records: int | None,
) -> None:
    happens(log, tmp_path / "elsewhere")
    row = the(log)
    assert (row.found, row.records, row.signed, row.path) == (found, records, 10, str(log.path))
    assert row.detail.startswith(detail)
    assert [one.log_id for one in missing()] == [log.log_id]
    assert missing(besides=log.log_id) == ()


def test_a_backup_that_was_put_back_in_place_is_shorter(
    log: StateDirectory, tmp_path: Path, append: Append, entry: Make
) -> None:
    copy(log.path, tmp_path / "backup")
    append([entry(n=10), entry(n=11)])
    for name in ("log", "checkpoint"):
        subprocess.run(["rm", "-r", log.path / name], check=True)
        copy(tmp_path / "backup" / name, log.path)
    assert verdict(log) == ("shorter", "12 records were signed, 10 are there", 10)


def test_a_log_that_was_moved_is_found_once_it_was_opened_there(
    log: StateDirectory, tmp_path: Path, entry: Make
) -> None:
    log.path.rename(tmp_path / "moved")
    assert the(log).found == "wiped"
    moved = open_state(tmp_path / "moved")
    assert (the(log).found, the(log).path) == ("here", str(moved.path))


def test_a_copy_elsewhere_changes_nothing(log: StateDirectory, tmp_path: Path) -> None:
    before = list(inventory())
    shutil.copytree(log.path, tmp_path / "copy")
    assert LogReader(StateDirectory(tmp_path / "copy", log.log_id)).verify().status == "proven"
    assert list(inventory()) == before


def test_a_directory_that_nothing_was_written_to_is_not_missed(log: StateDirectory, tmp_path: Path) -> None:
    unused = open_state(tmp_path / "unused")
    for change in (lambda: None, lambda: shutil.rmtree(unused.path)):
        change()
        assert verdict(unused)[0] == "unused"
        assert missing() == ()


def test_a_log_that_this_user_only_verified_is_listed_where_it_was(log: StateDirectory, home: Path) -> None:
    (home / "logs" / f"{log.log_id}.json").unlink()
    assert LogReader(log).verify().status == "proven"
    assert verdict(log) == ("here", "it continues the last checkpoint that was seen", 10)
    shutil.rmtree(log.path)
    assert verdict(log) == ("wiped", "the directory is gone", None)


def test_what_can_not_be_read_hides_no_other_log(log: StateDirectory, home: Path, tmp_path: Path) -> None:
    other = open_state(tmp_path / "other")
    path = home / "seen" / f"{other.log_id}.json"
    path.write_text("{}")
    assert {row.log_id: row.found for row in inventory()} == {log.log_id: "here", other.log_id: "unreadable"}
    assert the(other).detail == f"`{path}` does not say what was seen of the log: it is not what licet writes"
    (home / "logs" / f"{log.log_id}.json").write_text("{}")
    assert the(log).found == "here"


def test_nothing_is_known_where_nothing_was_made(home: Path) -> None:
    assert (list(inventory()), missing()) == ([], ())
    assert not home.exists()


def test_a_time_that_no_calendar_has_is_told_all_the_same(log: StateDirectory, home: Path) -> None:
    signer = checkpointer.keys.signer(log)
    head = Head(signer.key.name, 11, bytes(32))
    seen.remember(log, signer.key, signer.sign(head, 2**63))
    assert the(log).signed_at == f"second {2**63} since 1970"


def test_the_command_lists_all_and_never_fails(
    log: StateDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = open_state(tmp_path / "gone\x1b[31m")
    shutil.copytree(log.path / "log", gone.path / "log")
    wipe(log, tmp_path)
    assert list_runs.main(["--logs", "--json"], standalone_mode=False) == 0
    rows = {row["log_id"]: row for row in json.loads(capsys.readouterr().out)}
    assert (rows[log.log_id]["found"], rows[gone.log_id]["found"]) == ("wiped", "unreadable")
    assert list_runs.main(["--logs"], standalone_mode=False) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    (line,) = (line for line in out.splitlines() if line.startswith(log.log_id[:12]))
    assert line.split()[1:4] == ["wiped", "-", "10"]


@pytest.mark.parametrize("option", ["--state", "--policy"])
def test_the_list_of_logs_is_about_no_single_one(option: str) -> None:
    with pytest.raises(UsageError, match=r"^`--logs` is about all logs$"):
        list_runs.main(["--logs", option, "x"], standalone_mode=False)
