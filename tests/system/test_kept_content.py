"""Content that is kept, from outside: it stays beside the log, and goes without a trace when it is erased."""

import subprocess
import sys
from pathlib import Path

import pytest
from cli import Ran, licet

CANARY = "cAnArY-4711"
KEPT = "licet: 1\nextends: licet:compute\naudit: {content: kept}\ndeny: [shell]\n"


@pytest.fixture(scope="module")
def top(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where everything is; evidence is made once for all of it."""
    return tmp_path_factory.mktemp("kept")


@pytest.fixture(autouse=True)
def place(top: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(top / name))
    place = top / request.node.name
    place.mkdir()
    monkeypatch.chdir(place)
    (place / "kept.yaml").write_text(KEPT)
    return place


def _audit(*arguments: str) -> Ran:
    return licet("audit", *arguments, "--state", ".licet")


def _with_canary(place: Path) -> list[Path]:
    """Files with it here and in the directories that the user's programs share."""
    tops = (place, place.parent / "STATE", place.parent / "CACHE")
    files = [one for top in tops for one in top.rglob("*") if one.is_file()]
    return [one for one in files if CANARY.encode() in one.read_bytes()]


def test_kept_content_goes_without_a_trace_and_all_still_proves(place: Path) -> None:
    code = f"print('{CANARY}', x); x"
    assert licet("run", "-c", code, "--input", f'x="{CANARY}"', "--policy", "kept.yaml").code == 0
    (run,) = _audit("list", "--json").json
    for command in (("show", run["run_id"]), ("query",), ("verify",)):
        assert _audit(*command).code == 0
    assert {path.parts[-3] for path in _with_canary(place)} == {"content"}
    assert len(_with_canary(place)) == 4  # code, input, output, value
    erased = _audit("erase", run["run_id"], "--reason", "asked for", "--yes", "--json")
    assert (erased.code, erased.json["contents"]) == (0, 4)
    for command in (("show", run["run_id"]), ("query",), ("list",)):
        assert _audit(*command).code == 0
    assert _with_canary(place) == []
    assert _audit("verify").code == 0


def test_under_digest_nothing_of_it_is_anywhere(place: Path) -> None:
    assert licet("run", "-c", f"print('{CANARY}')").code == 0
    assert _with_canary(place) == []
    assert not (place / ".licet" / "content").exists()


def test_a_bound_that_says_digest_wins(place: Path) -> None:
    (place / "org.yaml").write_text("licet: 1\naudit: {content: digest}\n")
    (place / "team.yaml").write_text(KEPT + "within: [./org.yaml]\n")
    assert licet("run", "-c", f"print('{CANARY}')", "--policy", "team.yaml").code == 0
    assert [path.name for path in _with_canary(place)] == []
    shown = licet("policy", "show", "team.yaml", "--json").json["settings"]
    assert [one["value"] for one in shown if one["key"] == "audit.content"] == ["digest"]


def test_a_refusal_with_kept_code_is_explained_whole_until_it_is_erased(place: Path) -> None:
    assert licet("run", "-c", "import os\nos.system('id')\nprint(1)", "--policy", "kept.yaml").code == 3
    (run,) = _audit("list", "--json").json
    told = licet("explain", run["run_id"], "--policy", "kept.yaml")
    assert told.code == 3
    assert "you can     remove line 2" in told.err
    as_json = licet("explain", run["run_id"], "--policy", "kept.yaml", "--json").json
    assert as_json["repair"][0]["edits"]
    assert as_json["policy_now"]["effect"] == "deny"
    (place / "kept.yaml").write_text(
        KEPT.replace("deny: [shell]\n", "screen: {mode: report}\nallow: [shell]\n")
    )
    assert licet("explain", run["run_id"], "--policy", "kept.yaml").code == 3
    (place / "kept.yaml").write_text(KEPT)
    _audit("erase", run["run_id"], "--reason", "asked for", "--yes")
    assert "its code is erased" in licet("explain", run["run_id"], "--policy", "kept.yaml").err


def test_nothing_runs_where_content_cannot_be_stored(place: Path) -> None:
    assert licet("run", "-c", "1", "--policy", "kept.yaml").code == 0
    folder = place / ".licet" / "content"
    for path in sorted(folder.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    folder.rmdir()
    (place / "elsewhere").mkdir()
    folder.symlink_to(place / "elsewhere")
    ran = licet("run", "-c", f"print('{CANARY}')", "--policy", "kept.yaml")
    assert (ran.code, ran.out) == (7, "")
    assert "is a symbolic link" in ran.err
    assert list((place / "elsewhere").iterdir()) == []


def test_a_run_is_not_slower_for_what_it_does_not_keep(place: Path) -> None:
    loaded = "import sys; from licet.cli.app import execute; execute(['run', '-c', '1']);"
    told = f"{loaded} print(sorted(m for m in sys.modules if m.startswith('licet_audit.retention.')))"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
