"""Pruning: old segments go, whole, what is left proves as before, and what must stay ends it."""

import hashlib
import os
import signal
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from kept import Trail
from licet.record import Entry
from licet.state import StateDirectory
from licet_audit import contents, removals, seen
from licet_audit.chain import now
from licet_audit.leaves import Snapshot
from licet_audit.notes import Head, Note
from licet_audit.reader import LogReader
from licet_audit.retention import removal
from licet_audit.segments import listing
from licet_audit.tiles import LogHashes, Tile
from licet_audit.tree import inclusion, root, root_from_inclusion
from licet_audit.verification.judge import Judge
from licet_audit.verification.outside import Outside
from licet_audit.verification.reading import Reading

KEEP = ("--keep", "184d", "--yes")
_NOW = time.time() + 400 * 86400  # when these tests prune, so that what the log writes of itself is old
OLD, YOUNG = now(), f"{datetime.fromtimestamp(_NOW - 86400, UTC):%Y-%m-%dT%H:%M:%S}.000000000Z"


@pytest.fixture
def trail(
    state: StateDirectory, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Trail:
    """Three old segments of about 200 records each, each with a run that keeps content; then a young one."""
    monkeypatch.setattr("licet_audit.cli.pruning.time.time", lambda: _NOW)
    trail = Trail(state, capsys, segment_bytes=2000)
    for number in (1, 2, 3):
        _fill(trail, f"R{number}", OLD, 200)
    _fill(trail, "R4", YOUNG, 200)
    return trail


def _fill(trail: Trail, run_id: str, time: str, count: int) -> None:
    """A segment with the records of one run that keeps its code and asks for `count` files."""
    trail.run(run_id, time=time, content={"code": run_id.encode()}, between=[_accesses(run_id, time, count)])


def _accesses(run_id: str, time: str, count: int) -> list[Entry]:
    return [Entry("access", run_id, {"n": n}, time, 1) for n in range(count)]


def _segments(trail: Trail) -> list[int]:
    return [segment.first for segment in listing(trail.state)]


def test_the_oldest_segments_go_and_the_rest_still_proves(trail: Trail) -> None:
    before = trail.records()
    hashes = LogHashes(trail.state, Snapshot.of(listing(trail.state), trail.state.log_id))
    whole, size = root(hashes, len(before)), len(before)
    ran = trail("prune", *KEEP, "--json")
    assert ran.code == 0
    last = ran.json["segments"][-1]["last"]
    left = trail.records()
    assert [record.leaf for record in left[: size - last - 1]] == [r.leaf for r in before[last + 1 :]]
    assert left[0].seq == last + 1 == trail.records("pruned")[0].entry.body["begins"]
    hashes = LogHashes(trail.state, Snapshot.of(listing(trail.state), trail.state.log_id))
    assert root(hashes, size) == whole
    for record in (before[0], before[last], before[last + 1], before[-1]):
        proof = inclusion(hashes, record.seq, size)
        assert root_from_inclusion(bytes.fromhex(record.leaf), record.seq, size, proof) == whole


def test_the_record_says_what_went(trail: Trail) -> None:
    files = {one.first: one.path.read_bytes() for one in listing(trail.state)}
    trail("prune", *KEEP)
    (record,) = trail.records("pruned")
    body = record.entry.body
    gone = files.keys() - set(_segments(trail))
    assert [one["first"] for one in body["segments"]] == sorted(gone)
    for one in body["segments"]:
        assert one["sha256"] == hashlib.sha256(files[one["first"]]).hexdigest()
        assert one["bytes"] == len(files[one["first"]])
    assert OLD <= body["newest"] < now()
    assert body["reason"] == "records are kept for 184d"
    note, known = Note.parse(body["checkpoint"].encode()), seen.of(trail.state.log_id)
    assert known is not None and known.key is not None and note.signed_by(known.key)
    assert Head.parse(note.text).size == record.seq - len(trail.records("erased"))


def test_content_that_only_they_name_goes_with_them(trail: Trail) -> None:
    trail("prune", *KEEP)
    assert [trail.states(f"R{number}") for number in (1, 2, 4)] == [{"missing"}, {"missing"}, {"intact"}]
    assert list(contents.stored(trail.state)) != []
    erased = {one for r in trail.records("erased") for one in removals.commitments_of(r.entry.body)}
    assert trail.committed["R1"]["code"] in erased
    assert trail.committed["R4"]["code"] not in erased


def test_commands_go_on_with_a_log_that_begins_late(trail: Trail) -> None:
    trail("prune", *KEEP)
    assert "R4" in trail("list").out
    assert trail("show", "R4").code == 0
    trail.run("R5", time=YOUNG)
    assert trail.records()[-1].seq > 800
    assert trail("erase", "R4", "--reason", "x", "--yes").code == 0


def test_a_rehearsal_changes_nothing(trail: Trail) -> None:
    files = sorted(trail.state.path.rglob("*"))
    bare = trail("prune", "--keep", "184d", "--dry-run", "--json")
    assert sorted(trail.state.path.rglob("*")) == files
    done = trail("prune", *KEEP, "--json")
    assert {**bare.json, "dry_run": False, "record": done.json["record"]} == done.json


def test_young_records_stay_and_end_it(trail: Trail) -> None:
    ran = trail("prune", "--keep", "5000d", "--yes", "--json")
    assert (ran.code, ran.json["segments"], ran.json["record"]) == (0, [], None)
    assert "the newest record of the next segment is of 20" in ran.json["ends"]


def test_what_no_tile_holds_yet_stays(trail: Trail) -> None:
    trail("prune", *KEEP)
    (record,) = trail.records("pruned")
    size = record.seq
    assert record.entry.body["begins"] <= size - size % 256


def test_a_hold_ends_it_and_says_so(trail: Trail) -> None:
    hold = trail("hold", "R2", "--reason", "case 1", "--json").json["hold"]
    ran = trail("prune", *KEEP, "--json")
    assert ran.code == 1
    assert ran.json["hold"] == hold
    assert trail.states("R2") == {"intact"}
    held = next(r for r in trail.records() if r.entry.run_id == "R2")
    assert held.seq >= _segments(trail)[0]
    assert "case 1" in ran.json["ends"]


def test_where_all_is_held_nothing_goes(trail: Trail) -> None:
    trail("hold", "R1", "--reason", "case 1")
    before = _segments(trail)
    ran = trail("prune", *KEEP)
    assert ran.code == 1
    assert "nothing was pruned: the run R1 is on hold" in ran.err
    assert set(before) <= set(_segments(trail))
    assert trail.records("pruned") == []


def test_a_hold_stays_in_force_when_its_record_goes(
    state: StateDirectory, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("licet_audit.cli.pruning.time.time", lambda: _NOW)
    trail = Trail(state, capsys, segment_bytes=2000)
    _fill(trail, "R1", OLD, 10)
    hold = trail("hold", "--subject", "eve", "--reason", "case 1", "--json").json
    for number in (2, 3, 4):
        _fill(trail, f"R{number}", OLD, 200)
    seq = trail("hold", "--list", "--json").json[0]["seq"]
    ran = trail("prune", "--keep", "1s", "--short", "a test", "--yes", "--json")
    assert ran.json["segments"][-1]["last"] >= seq
    (again,) = trail("hold", "--list", "--json").json
    assert again == {**hold, "seq": again["seq"]}
    assert again["seq"] > seq


def test_a_run_that_goes_on_beyond_loses_its_beginning_and_is_named(
    state: StateDirectory, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("licet_audit.cli.pruning.time.time", lambda: _NOW)
    trail = Trail(state, capsys, segment_bytes=2000)
    trail.run("R1", time=OLD, ends=YOUNG, between=[_accesses("R1", OLD, 300), []])
    _fill(trail, "R3", YOUNG, 300)
    assert trail("prune", *KEEP, "--json").json["cut"] == ["R1"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.parametrize("moment", ["marked", "recorded", "half"])
@pytest.mark.parametrize("finisher", ["prune", "start"])
def test_a_pruning_that_was_killed_is_finished(trail: Trail, moment: str, finisher: str) -> None:
    before = _segments(trail)
    pid = os.fork()
    if pid == 0:
        _die_at(moment)
        trail("prune", *KEEP)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    assert len(set(before) - set(_segments(trail))) == (moment == "half")
    if finisher == "prune":
        trail("prune", *KEEP)
    else:
        trail.run("R5", time=YOUNG)
    gone = set(before) - set(_segments(trail))
    assert bool(gone) == (moment != "marked" or finisher == "prune")
    assert not (trail.state.path / "removal.begun").exists()
    pruned = trail.records("pruned")
    assert {one["first"] for r in pruned for one in r.entry.body["segments"]} == gone


def _die_at(moment: str) -> None:
    def die(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    if moment == "marked":
        removal.record = die  # type: ignore[assignment]
    elif moment == "recorded":
        removals.remove = die  # type: ignore[assignment]
    else:
        whole = Path.unlink

        def once(path: Path, missing_ok: bool = False) -> None:
            whole(path, missing_ok=missing_ok)
            if path.name.startswith("seg-"):
                die()

        Path.unlink = once  # type: ignore[method-assign]


def test_a_changed_record_or_tile_keeps_everything(trail: Trail) -> None:
    tile = Tile(0, 0).path(trail.state)
    data = tile.read_bytes()
    tile.write_bytes(bytes([data[0] ^ 1]) + data[1:])
    ran = trail("prune", "--keep", "184d", "--dry-run")
    assert ran.code == 7
    assert "is missing, or not what the records make" in ran.err
    assert trail("prune", *KEEP).code == 7
    tile.write_bytes(data)
    (path, *_) = [segment.path for segment in listing(trail.state)]
    path.write_bytes(path.read_bytes().replace(b'"n":3,', b'"n":4,').replace(b'"n":3}', b'"n":4}'))
    before = _segments(trail)
    assert trail("prune", *KEEP).code == 7
    assert _segments(trail) == before


def test_a_log_whose_checkpoint_is_gone_is_signed_anew(trail: Trail) -> None:
    (trail.state.path / "checkpoint").unlink()
    assert trail("prune", "--keep", "184d", "--dry-run").code == 7
    assert trail("prune", *KEEP).code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Missing option"),
        (("--keep", "180d", "--yes"), "`--keep 180d` is less than 184 days"),
        (("--keep", "180d", "--short", " ", "--yes"), "`--keep 180d` is less than 184 days"),
        (("--keep", "old", "--yes"), "`--keep`: expected a duration"),
        (("--keep", "184d"), "nobody can be asked here whether this is meant"),
    ],
)
def test_bad_input_is_told_and_nothing_goes(trail: Trail, arguments: tuple[str, ...], message: str) -> None:
    before = _segments(trail)
    ran = trail("prune", *arguments)
    assert ran.code == 2
    assert message.lower() in " ".join(ran.err.split()).lower()
    assert _segments(trail) == before


def test_a_short_age_needs_a_reason_which_is_recorded(trail: Trail) -> None:
    assert trail("prune", "--keep", "180d", "--short", "no high-risk system", "--yes").code == 0
    (record,) = trail.records("pruned")
    assert record.entry.body["reason"] == "records are kept for 180d; less than 184 days: no high-risk system"


def test_what_is_left_can_be_pruned_again(trail: Trail) -> None:
    trail("prune", *KEEP)
    for number in (5, 6):
        _fill(trail, f"R{number}", YOUNG, 200)
    ran = trail("prune", "--keep", "1s", "--short", "a test", "--yes", "--json")
    assert ran.code == 0
    assert ran.json["records"] > 200
    assert LogReader(trail.state).verify().status == "proven"


def test_what_is_pruned_while_it_is_verified_is_not_lost(
    trail: Trail, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged, left = Reading.judged, [1]

    def late(reading: Reading, outside: Outside) -> Judge:
        if left:
            left.pop()
            assert trail("prune", *KEEP).code == 0
        return judged(reading, outside)

    monkeypatch.setattr(Reading, "judged", late)
    result = LogReader(trail.state).verify()
    assert (result.status, _segments(trail)[0] > 0) == ("proven", True)
    assert "were pruned, as #" in {claim.name: claim.detail for claim in result.claims}["start"]
