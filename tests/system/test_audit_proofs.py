"""Proofs, bundles and anchors from the command line: what is handed over, and each way it can't be."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli import licet
from licet.record import Entry
from licet.state import open_state
from licet_audit.log import DurableLog

RUN = "01JCCCCCCCCCCCCCCCCCCCCCCC"


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state directory of a log with one run of eight records, and one of another."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    (tmp_path / "a.py").write_text("print(1)\n")
    grow(tmp_path / ".licet", RUN, 8)
    grow(tmp_path / ".licet", "02OTHER", 1)
    return tmp_path / ".licet"


def grow(path: Path, run_id: str, records: int) -> None:
    """Append records of a run to the log, and close it, which signs it."""

    async def append() -> None:
        log = DurableLog(open_state(path))
        time = "2026-11-30T12:00:00.000000000Z"
        await log.append([Entry("request", run_id, {"n": n}, time, n) for n in range(records)])
        await log.close()

    asyncio.run(append())


def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Go on as somebody who never saw the log."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another"))


def test_a_record_is_proved_to_somebody_who_has_only_the_key(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert licet("audit", "prove", "#2", "-o", "two.tlog-proof").code == 0
    assert licet("audit", "prove", "2").out.encode() == (tmp_path / "two.tlog-proof").read_bytes()
    assert licet("audit", "prove", "--check", "two.tlog-proof").code == 0
    elsewhere(monkeypatch, tmp_path)
    unknown = licet("audit", "prove", "--check", "two.tlog-proof")
    assert unknown.code == 4
    assert "! unverifiable" in unknown.out
    assert "get the key from the log's owner, and give it as `--key`" in unknown.out
    found = licet("audit", "prove", "--check", "two.tlog-proof", "--key", str(log / "log.vkey"), "--json")
    assert found.code == 0
    assert found.json["status"] == "proven"
    assert found.json["record"] == "#2"
    key = (log / "log.vkey").read_text().strip()
    assert licet("audit", "prove", "--check", "two.tlog-proof", "--key", key).code == 0
    proof = (tmp_path / "two.tlog-proof").read_text()
    (tmp_path / "bad").write_text(proof.replace("index 2", "index 1"))
    bad = licet("audit", "prove", "--check", "bad", "--key", key)
    assert bad.code == 1
    assert "the hashes do not lead to the root of its checkpoint" in bad.out


def test_a_bare_proof_needs_its_record(log: Path, tmp_path: Path) -> None:
    assert licet("audit", "prove", "2", "--bare", "-o", "bare").code == 0
    assert "\nextra " not in (tmp_path / "bare").read_text()
    lone = licet("audit", "prove", "--check", "bare")
    assert lone.code == 2
    assert "`bare` can't be checked: it comes without its record, which is needed to check it" in lone.err
    (tmp_path / "record").write_bytes(next((log / "log").iterdir()).read_bytes().splitlines(keepends=True)[2])
    assert licet("audit", "prove", "--check", "bare", "--record", "record").code == 0


def test_each_record_of_a_run_has_its_proof(log: Path, tmp_path: Path) -> None:
    many = licet("audit", "prove", RUN)
    assert many.code == 2
    assert "write their proofs to `-o DIRECTORY`" in many.err
    assert licet("audit", "prove", RUN, "-o", "proofs").code == 0
    proofs = sorted((tmp_path / "proofs").iterdir())
    assert len(proofs) == 8
    assert all(licet("audit", "prove", "--check", str(path)).code == 0 for path in proofs[:2])
    shown = licet("audit", "prove", RUN[:10], "--json").json
    assert {name: text.encode() for name, text in shown["proofs"].items()} == {
        path.name: path.read_bytes() for path in proofs
    }


def test_a_checkpoint_continues_one_that_was_handed_over_before(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "before").write_bytes((log / "checkpoint").read_bytes())
    size = int((tmp_path / "before").read_text().splitlines()[1])
    grow(log, "03LATER", 50)
    newest = (log / "checkpoint").read_text().splitlines()[1]
    assert licet("audit", "prove", "--between", "before", newest, "-o", "both").code == 0
    assert licet("audit", "prove", "--between", str(size), newest).out == (tmp_path / "both").read_text()
    checked = licet("audit", "prove", "--check", "both", "--json")
    assert checked.code == 0
    assert checked.json["continues"].startswith(f"{size} records with the root ")
    (tmp_path / "forged").write_text(
        (tmp_path / "before").read_text().replace(f"\n{size}\n", f"\n{size - 1}\n")
    )
    refused = licet("audit", "prove", "--between", "forged", newest)
    assert refused.code == 7
    assert f"the first {size - 1} records of the log are not those of that checkpoint" in refused.err


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["prove"], "exactly one of SEQ or RUN, --between and --check is needed"),
        (["prove", "1", "--check", "a.py"], "exactly one of SEQ or RUN, --between and --check is needed"),
        (["prove", "1", "--key", "x"], "`--key` and `--record` are for `--check`"),
        (["prove", "999"], "there is no record #999 in this log"),
        (["prove", "9" * 5000], "there is no record #9999999999999999999 in this log"),
        (["prove", "NOBODY"], "no run in this log has an id that starts with `NOBODY`"),
        (["prove", "--check", "a.py"], "`a.py` can't be checked: its first line is none of"),
        (["prove", "--check", "gone"], "`gone` can't be read: no such file or directory"),
        (["prove", "--check", "."], "`.` can't be read: is a directory"),
        (["prove", "--between", "5", "3"], "no signed checkpoint of 3 records is kept"),
        (["prove", "--between", "a.py", "3"], "`a.py` holds no checkpoint: "),
        (["prove", "--between", "99", "3"], "the newest checkpoint covers"),
        (["prove", "1", "-o", "a.py"], "`a.py` exists already"),
        (["export"], "a bundle needs a place"),
        (["export", "-o", "a.py"], "`a.py` exists already"),
        (["export", "-o", "nowhere/b"], "`nowhere/b` can't be written: no such file or directory"),
        (["export", "--since", "yesterday"], "`--since yesterday` is no time"),
        (["export", "--since", "1h", "--until", "2h"], "`--until` is not later than `--since`"),
        (["export", "--format", "jsonl", "--content"], "the format `jsonl` takes no `--content`"),
        (["export", "NOBODY", "-o", "b"], "no run in this log has an id that starts with `NOBODY`"),
        (["export", "--since", "2999-01-01", "-o", "b"], "no signed record is selected"),
        (["anchor"], "settings name nobody who should see this log"),
    ],
)
def test_what_can_not_be_done_is_told(log: Path, tmp_path: Path, arguments: list[str], why: str) -> None:
    done = licet("audit", *arguments)
    assert done.code in (2, 8)
    assert why in done.err
    assert "Traceback" not in done.err
    made = {path.name for path in tmp_path.iterdir()}
    assert made - {".licet", "a.py", "home", "work", "xdg-state", "xdg-cache"} == set()


def test_lines_are_exported_as_they_stand(log: Path, tmp_path: Path) -> None:
    whole = next((log / "log").iterdir()).read_bytes()
    assert licet("audit", "export", "--format", "jsonl").out.encode() == whole
    mine = licet("audit", "export", RUN, "--format", "jsonl", "-o", "mine.json", "--json").json
    lines = (tmp_path / "mine.json").read_bytes().splitlines()
    assert mine == {"path": "mine.json", "records": len(lines)}
    assert lines == [line for line in whole.splitlines() if json.loads(line)["run_id"] == RUN]


def test_a_bundle_is_checked_by_itself(log: Path, tmp_path: Path) -> None:
    done = licet("audit", "export", RUN[:8], "-o", "bundle", "--json")
    assert done.code == 0
    assert done.json["records"] == 8
    checked = subprocess.run(
        [sys.executable, "-I", "-S", "bundle/verify.py", "--key", log / "log.vkey"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (checked.returncode, checked.stderr) == (0, "")


def test_anchoring_tells_who_has_seen_it(log: Path, tmp_path: Path) -> None:
    (tmp_path / "medium").touch()
    files = [str(tmp_path / "medium"), str(tmp_path / "gone")]
    (log / "config.toml").write_text(f"[anchors]\nfiles = {json.dumps(files)}\n")
    size = int((log / "checkpoint").read_text().splitlines()[1])
    done = licet("audit", "anchor", "--json")
    assert done.code == 1
    assert done.json["size"] == size
    assert [one["anchor"] for one in done.json["anchored"]] == files[:1]
    assert [one["anchor"] for one in done.json["failed"]] == files[1:]
    (log / "config.toml").write_text(f"[anchors]\nfiles = {json.dumps(files[:1])}\n")
    again = licet("audit", "anchor")
    assert again.code == 0
    assert f"✓ anchored                       {size + 2} records" in again.err
    events = [
        record["body"]["event"]
        for record in map(json.loads, next((log / "log").iterdir()).read_bytes().splitlines())
        if record["kind"] == "log"
    ]
    assert events == ["opened", "anchored", "anchor_failed", "anchored"]
    (log / "config.toml").write_text('[anchors]\nfile = ["x"]\n')
    wrong = licet("audit", "anchor")
    assert wrong.code == 2
    assert "`anchors.file`: extra inputs are not permitted" in wrong.err


def test_a_copy_is_not_anchored(log: Path, tmp_path: Path) -> None:
    assert os.system(f"cp -a {log} {tmp_path / 'copy'}") == 0
    done = licet("audit", "anchor", "--state", "copy")
    assert done.code == 7
    assert "was not made by licet for this user, who can't sign for its log" in done.err
