"""Erasure: what was chosen is gone for good, everything else stays, and the log says so and still proves."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kept import Trail
from licet.record import Kept
from licet.state import StateDirectory, user_state
from licet_audit import contents, removals
from licet_audit.identity import account
from licet_audit.reader import LogReader
from licet_audit.retention import removal
from licet_audit.retention.choosing import Choice, Run, choice_of

WHY = ("--reason", "request 17 of Ada", "--yes")


@pytest.fixture
def trail(state: StateDirectory, capsys: pytest.CaptureFixture[str]) -> Trail:
    return Trail(state, capsys)


def test_what_is_chosen_goes_and_the_rest_stays(trail: Trail) -> None:
    trail.run("R1", id="ada", tenant="a")
    trail.run("R2", id="bot", on_behalf_of="ada", tenant="b")
    trail.run("R3", id="eve", tenant="a", time="2026-06-01T10:00:00.000000000Z")
    trail.run("R4", id="eve", tenant="a")
    assert trail("erase", "--subject", "ada", *WHY).code == 0
    assert [trail.states(run) for run in ("R1", "R2", "R3", "R4")] == [{"missing"}] * 2 + [{"intact"}] * 2
    assert trail("erase", "--tenant", "a", "--before", "2026-05-02", *WHY).code == 0
    assert [trail.states(run) for run in ("R3", "R4")] == [{"intact"}, {"missing"}]
    assert trail("erase", "r3", *WHY).code == 0
    assert trail.states("R3") == {"missing"}


def test_the_record_says_what_went_why_and_who_asked(trail: Trail) -> None:
    committed = trail.run("R1")
    ran = trail("erase", "R1", *WHY, "--json")
    (record,) = trail.records("erased")
    body = record.entry.body
    assert record.entry.run_id == ""
    assert body["reason"] == "request 17 of Ada"
    assert body["by"] == account()
    assert body["commitments"] == [
        {"run_id": "R1", "seq": 1, "kept": {"code": committed["code"]}},
        {"run_id": "R1", "seq": 4, "kept": {"stdout": committed["stdout"]}},
    ]
    assert (body["orphans"], body["altered"]) == ([], [])
    assert ran.json["records"] == [record.seq]
    assert (ran.json["contents"], ran.json["runs"], ran.json["bytes"]) == (2, ["R1"], 64 + 11 + 2)


def test_the_log_still_proves(trail: Trail) -> None:
    trail.run("R1")
    before = [record.leaf for record in trail.records()]
    trail("erase", "R1", *WHY)
    assert LogReader(trail.state).verify().status == "proven"
    assert [record.leaf for record in trail.records()][: len(before)] == before
    assert LogReader(trail.state).content(trail.committed["R1"]["code"]) is None


def test_nothing_holds_it_any_more(trail: Trail) -> None:
    canary = b"cAnArY-4711"
    committed = trail.run("R1", content={"code": b"x = '%b'" % canary, "inputs": canary})
    salts = [contents.path_of(trail.state, one).read_bytes()[:32] for one in committed.values()]
    assert _files_with(trail.state, canary)
    for command in ("list", "verify"):
        trail(command)
    trail("erase", "R1", *WHY)
    for secret in (canary, *salts):
        assert _files_with(trail.state, secret) == []


def _files_with(state: StateDirectory, secret: bytes) -> list[Path]:
    found = []
    for top in (state.path, user_state(), Path(os.environ["XDG_CACHE_HOME"])):
        found += [one for one in top.rglob("*") if one.is_file() and secret in one.read_bytes()]
    return found


def test_a_rehearsal_changes_nothing_and_says_the_same(trail: Trail) -> None:
    trail.run("R1")
    files = sorted(trail.state.path.rglob("*"))
    bare = trail("erase", "R1", "--dry-run", "--json")
    assert sorted(trail.state.path.rglob("*")) == files
    done = trail("erase", "R1", *WHY, "--json")
    assert {**bare.json, "dry_run": False, "records": done.json["records"]} == done.json


def test_erasing_again_finds_nothing_and_records_nothing(trail: Trail) -> None:
    trail.run("R1")
    trail("erase", "R1", *WHY)
    again = trail("erase", "R1", *WHY, "--json")
    assert (again.code, again.json["contents"], again.json["records"]) == (0, 0, [])
    assert len(trail.records("erased")) == 1


def test_a_loss_is_not_recorded_as_an_erasure(trail: Trail) -> None:
    committed = trail.run("R1")
    contents.path_of(trail.state, committed["code"]).unlink()
    ran = trail("erase", "R1", *WHY, "--json")
    assert ran.json["missing"] == [committed["code"]]
    (record,) = trail.records("erased")
    assert [one["kept"] for one in record.entry.body["commitments"]] == [{"stdout": committed["stdout"]}]


def test_what_was_altered_is_erased_and_named(trail: Trail) -> None:
    committed = trail.run("R1")
    contents.path_of(trail.state, committed["code"]).write_bytes(b"other")
    trail("erase", "R1", *WHY)
    (record,) = trail.records("erased")
    assert record.entry.body["altered"] == [committed["code"]]
    assert trail.states("R1") == {"missing"}


def test_a_run_that_is_being_written_is_not_half_erased(trail: Trail, tmp_path: Path) -> None:
    trail.run("R1")
    living = _living_run(trail.state, "R2")
    try:
        refused = trail("erase", "--subject", "ada", *WHY)
        assert refused.code == 1
        assert "the run R2 has not ended" in refused.err
        assert trail.states("R1") == {"intact"}
        rest = trail("erase", "--subject", "ada", "--skip", *WHY, "--json")
        assert (rest.code, rest.json["runs"], rest.json["unfinished"]) == (0, ["R1"], ["R2"])
    finally:
        living.kill()
        living.communicate()
    assert trail("erase", "--subject", "ada", *WHY, "--json").json["runs"] == ["R2"]


def _living_run(state: StateDirectory, run_id: str) -> subprocess.Popen[bytes]:
    """A process that began a run of Ada, keeps its code, and does not end it."""
    program = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from licet.record import Entry, Kept\n"
        "from licet.state import open_state\n"
        "from licet_audit.log import DurableLog\n"
        "async def main():\n"
        "    state = open_state(Path(sys.argv[1]))\n"
        "    log = DurableLog(state)\n"
        "    kept = (Kept('code', b'1'),)\n"
        "    body = {'subject': {'id': 'ada'}}\n"
        "    await log.append([\n"
        "        Entry('request', sys.argv[2], body, '2026-05-01T10:00:00.000000000Z', 1, kept=kept),\n"
        "        Entry('decision', sys.argv[2], {'effect': 'allow'}, '2026-05-01T10:00:00.000000000Z', 1),\n"
        "        Entry('execution', sys.argv[2], {}, '2026-05-01T10:00:00.000000000Z', 1, phase='before'),\n"
        "    ])\n"
        "    print('began', flush=True)\n"
        "    await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    arguments = [sys.executable, "-c", program, str(state.path), run_id]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"began\n"
    return process


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.parametrize("moment", ["marked", "recorded", "half"])
@pytest.mark.parametrize("finisher", ["erase", "start"])
def test_an_erasure_that_was_killed_is_finished(
    trail: Trail, monkeypatch: pytest.MonkeyPatch, moment: str, finisher: str
) -> None:
    trail.run("R1")
    trail.run("R2", id="eve")
    pid = os.fork()
    if pid == 0:
        _die_at(moment)
        trail("erase", "R1", *WHY)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    assert "intact" in trail.states("R1")
    if finisher == "erase":
        trail("erase", "R2", *WHY)
    else:
        trail.run("R3")
    recorded = moment != "marked"
    assert trail.states("R1") == ({"missing"} if recorded else {"intact"})
    assert len(trail.records("erased")) == recorded + (finisher == "erase")
    assert not (trail.state.path / "removal.begun").exists()
    assert LogReader(trail.state).verify().status == "proven"


def _die_at(moment: str) -> None:
    def die(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    if moment == "marked":
        removal.record = die  # type: ignore[assignment]
    elif moment == "recorded":
        removals.remove = die  # type: ignore[assignment]
    else:
        whole = removals.remove

        def half(state: StateDirectory, body: Any) -> None:
            first = removals.commitments_of(body)[0]
            contents.delete(state, [first])
            die()
            whole(state, body)

        removals.remove = half


def test_a_finish_that_fails_keeps_nobody_from_running(
    trail: Trail, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    trail.run("R1")
    (trail.state.path / "removal.begun").mkdir()
    trail.run("R2")
    assert "an erasure that is recorded could not be finished" in caplog.text


def test_two_erasers_at_once_erase_once(trail: Trail) -> None:
    for number in range(20):
        trail.run(f"R{number}")
    arguments = ["audit", "erase", "--subject", "ada", *WHY, "--state", str(trail.state.path), "--json"]
    both = [
        subprocess.Popen([sys.executable, "-m", "licet", *arguments], stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    for one in both:
        one.communicate(timeout=60)
    assert [one.returncode for one in both] == [0, 0]
    erased = [one for r in trail.records("erased") for one in r.entry.body["commitments"]]
    assert len(erased) == 40
    assert all(trail.states(f"R{number}") == {"missing"} for number in range(20))
    assert LogReader(trail.state).verify().status == "proven"


@pytest.mark.parametrize("held", [False, True])
def test_what_comes_back_from_a_backup_is_erased_again_unless_it_is_held(trail: Trail, held: bool) -> None:
    committed = trail.run("R1", content={"code": b"x"})
    trail.run("R2", id="eve")
    path = contents.path_of(trail.state, committed["code"])
    backup = path.read_bytes()
    trail("erase", "R1", *WHY)
    path.write_bytes(backup)
    if held:
        trail("hold", "R1", "--reason", "case 1")
    ran = trail("erase", "R2", *WHY, "--json")
    assert ran.json["left"] == ([] if held else [committed["code"]])
    assert trail.states("R1") == ({"intact"} if held else {"missing"})
    assert len(trail.records("erased")) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="terminals of POSIX")
@pytest.mark.parametrize(("answer", "code"), [(b"y\n", 0), (b"n\n", 130)])
def test_on_a_terminal_it_asks(trail: Trail, answer: bytes, code: int) -> None:
    import pty

    trail.run("R1")
    ours, theirs = pty.openpty()
    arguments = ["audit", "erase", "R1", "--reason", "asked for", "--state", str(trail.state.path)]
    process = subprocess.Popen([sys.executable, "-m", "licet", *arguments], stdin=theirs, stderr=theirs)
    os.close(theirs)
    said = b""
    while b"[y/N]" not in said:
        said += os.read(ours, 1024)
    assert b"Erase 2 pieces of content (77 B) of 1 run?" in said
    assert trail.states("R1") == {"intact"}
    os.write(ours, answer)
    assert process.wait(60) == code
    os.close(ours)
    assert trail.states("R1") == ({"missing"} if code == 0 else {"intact"})
    assert len(trail.records("erased")) == (code == 0)


def test_an_erasure_of_very_much_has_several_records(trail: Trail, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("licet_audit.retention.erasing._IN_ONE", 8)
    for number in range(5):
        trail.run(f"R{number}")
    trail("erase", "--subject", "ada", *WHY)
    records = trail.records("erased")
    assert [len(record.entry.body["commitments"]) for record in records] == [2] * 5
    assert len({record.entry.body["erasure"] for record in records}) == 1


def test_orphans_go_once_no_writer_can_be_about_to_name_them(trail: Trail) -> None:
    trail.run("R1")
    old, young = Kept("code", b"old"), Kept("code", b"young")
    contents.store(trail.state, [old, young])
    long_ago = time.time() - 7200
    os.utime(contents.path_of(trail.state, old.commitment), (long_ago, long_ago))
    for committed in trail.committed["R1"].values():
        os.utime(contents.path_of(trail.state, committed), (long_ago, long_ago))
    assert trail("erase", "--orphans", "--dry-run", "--json").json["orphans"] == [old.commitment]
    assert trail("erase", "--orphans", *WHY).code == 0
    assert contents.state_of(trail.state, old.commitment) == "missing"
    assert contents.state_of(trail.state, young.commitment) == "intact"
    assert trail.states("R1") == {"intact"}
    assert trail.records("erased")[0].entry.body["orphans"] == [old.commitment]


def test_a_name_with_path_tricks_in_a_record_leads_nowhere(trail: Trail, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("x")
    committed = trail.run("R1")
    (segment,) = (trail.state.path / "log").iterdir()
    segment.write_bytes(segment.read_bytes().replace(committed["code"].encode(), b"../../../precious"))
    assert trail("erase", "R1", "--dry-run", "--json").json["contents"] == 1
    assert trail("erase", "R1", *WHY).code == 7  # and nothing is added to a log that was changed
    assert (tmp_path / "precious").exists()
    assert trail.states("R1") == {"intact"}


def test_a_damaged_log_erases_nothing(trail: Trail) -> None:
    trail.run("R1")
    (segment,) = (trail.state.path / "log").iterdir()
    segment.write_bytes(segment.read_bytes().replace(b'"run_id"', b'"ruin_d"', 2))
    ran = trail("erase", "--before", "1s", *WHY)
    assert ran.code == 7
    assert "is no record (KeyError), so nothing is removed" in ran.err
    assert trail.states("R1") == {"intact"}


def test_a_copy_of_a_log_is_not_erased(trail: Trail, tmp_path: Path) -> None:
    import shutil

    trail.run("R1")
    shutil.copytree(trail.state.path, tmp_path / "copy")
    ran = trail("erase", "R1", *WHY[:2], "--yes")
    assert ran.code == 0
    copied = Trail(trail.state, trail.capsys)
    from licet.cli.app import execute

    assert execute(["audit", "erase", "R1", *WHY, "--state", str(tmp_path / "copy")]) == 7
    assert "may be a copy" in copied.capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "nothing is chosen"),
        (("R1",), "a reason is missing"),
        (("R1", "--reason", " "), "a reason is missing"),
        (("R1", "--reason", "x" * 2001, "--yes"), "the reason has 2001 characters, 2000 are allowed"),
        (("R1", "--reason", "x"), "nobody can be asked here whether this is meant"),
        (("R9", *WHY), "no run in this log has an id that begins with `R9`"),
        (("R", *WHY), "`R` may mean `R1` or `R2`"),
        (("--orphans", "R1", *WHY), "`--orphans` belongs to no run"),
        (("--before", "yesterday", *WHY), "`--before yesterday` is no time"),
    ],
)
def test_bad_input_is_told_and_changes_nothing(
    trail: Trail, arguments: tuple[str, ...], message: str
) -> None:
    trail.run("R1")
    trail.run("R2")
    ran = trail("erase", *arguments)
    assert ran.code == 2
    assert message in " ".join(ran.err.split())
    assert trail.states("R1") == trail.states("R2") == {"intact"}


def test_choices_take_whole_runs_and_holds_take_what_overlaps() -> None:
    run = Run("R1", 1, 9, "2026-05-01T", "2026-05-03T", "i", known=True, subject="ada", tenant="a")
    lost = Run("R2", 1, 9, "2026-05-01T", "2026-05-03T", "i", known=False)
    for choice, covers, touches in (
        (Choice(), False, False),
        (Choice(subject="ada"), True, True),
        (Choice(subject="ada", tenant="b"), False, False),
        (Choice(before="2026-05-02T"), False, True),
        (Choice(before="2026-05-04T"), True, True),
        (Choice(since="2026-05-02T"), False, True),
        (Choice(since="2026-05-04T"), False, False),
        (Choice(runs=("R2",)), False, False),
    ):
        assert (choice.covers(run), choice.touches(run)) == (covers, touches), choice
    assert not Choice(subject="ada").covers(lost)
    assert Choice(subject="ada").touches(lost)
    assert not Choice(runs=("R1",), subject="ada").touches(lost)
    for choice in (Choice(subject="ada"), Choice(runs=("R1",), since="2026-05-01T00:00:00.000000000Z")):
        assert choice_of(choice.as_json()) == choice


_moments = st.sampled_from([f"2026-05-0{day}T00:00:00.000000000Z" for day in range(1, 6)])
_names = st.sampled_from(["ada", "eve"])
_choices = st.builds(
    Choice,
    runs=st.none() | st.lists(st.sampled_from(["R1", "R2"]), max_size=2).map(tuple),
    subject=st.none() | _names,
    tenant=st.none() | _names,
    since=st.none() | _moments,
    before=st.none() | _moments,
)


@given(
    _choices, st.tuples(_moments, _moments).map(sorted), st.booleans(), st.none() | _names, st.none() | _names
)
def test_whatever_a_choice_would_erase_it_would_hold(
    choice: Choice, times: list[str], known: bool, subject: str | None, tenant: str | None
) -> None:
    run = Run("R1", 1, 2, times[0], times[1], "i", known, subject=subject, tenant=tenant)
    assert not choice.covers(run) or choice.touches(run)
    assert choice_of(choice.as_json()) == choice
    stated = [
        choice.runs is None or "R1" in choice.runs,
        choice.subject is None or (known and choice.subject == subject),
        choice.tenant is None or (known and choice.tenant == tenant),
        choice.since is None or times[0] >= choice.since,
        choice.before is None or times[1] < choice.before,
    ]
    assert choice.covers(run) == (all(stated) and choice != Choice())
