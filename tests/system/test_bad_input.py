"""What people get wrong, and what the world does to them: one clear answer each, and nothing is lost."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli import Ran, licet, start

CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200b-\u200f]")


def assert_error(ran: Ran, code: int, *texts: str) -> None:
    assert ran.code == code, ran.err
    assert "Traceback" not in ran.err + ran.out
    for text in texts:
        assert text in ran.err


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("licet: 1\nalow: [read ./x]\n", ":2:1", "did you mean `allow`?"),
        ("licet: 1\nlimits: {wall_time: -1}\n", ":2:10", "bounds nothing"),
        ("licet: 1\nrules: [{id: x, deny: run}]\n", ":2:1", "not yet supported"),
        ("licet: 1\nallow: [fly ./x]\n", ":2:9", "begins with no action"),
        ("licet: [\n", ":2:1", "not valid YAML"),
        ("licet: 1\nwithin: [./nowhere.yaml]\n", "", "can't be read"),
    ],
)
def test_an_invalid_policy_names_the_place_and_the_way_out(text: str, place: str, message: str) -> None:
    Path("p.yaml").write_text(text)
    assert_error(licet("run", "--policy", "p.yaml", "-c", "1"), 2, message, f"p.yaml{place}")


def test_a_missing_policy_and_a_missing_pack() -> None:
    assert_error(licet("run", "--policy", "nowhere.yaml", "-c", "1"), 2, "nowhere.yaml", "can't be read")
    assert_error(licet("run", "--policy", "licet:nope", "-c", "1"), 2, "no policy pack", "`licet:compute`")


def test_code_that_is_not_utf_8() -> None:
    Path("latin.py").write_bytes(b"# ok\nx = '\xe9'\n")
    assert_error(licet("run", "latin.py"), 2, "not UTF-8", "line 2")


def test_ten_megabytes_of_code_are_denied_and_recorded() -> None:
    Path("big.py").write_text("x = 1\n" * (10 << 20 >> 2))
    assert_error(licet("run", "big.py"), 3, "the limit `code` is 1048576")
    assert [run["termination"] for run in licet("audit", "list", "--json").json] == ["policy_denied"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("x", "is no `NAME=JSON`"),
        ("x={", "is no JSON"),
        ("x=NaN", "no JSON number"),
        ('x={"a":1,"a":2}', "stands in it twice"),
        ("class=1", "no name that code can use"),
        ("x=@nowhere.json", "can't be read"),
        ("x=" + "[" * 100_000, "can't be used"),
    ],
)
def test_inputs_that_cannot_cross(given: str, message: str) -> None:
    assert_error(licet("run", "-c", "1", "--input", given), 2, message)


def test_no_code_or_two() -> None:
    assert_error(licet("run"), 2, "name one file")
    assert_error(licet("run", "a.py", "-c", "1"), 2, "name one file")


def test_an_unknown_backend() -> None:
    assert_error(licet("backends", "show", "nope"), 2, "there is no backend `nope`", "`monty`")
    Path("p.yaml").write_text("licet: 1\nsandbox: {only: [nope]}\n")
    assert_error(licet("run", "--policy", "p.yaml", "-c", "1"), 5, "sandbox.only", "asked nope")


@pytest.mark.parametrize("timeout", ["0", "-1s", "nan", "inf", "1 fortnight", ""])
def test_a_timeout_that_is_none(timeout: str) -> None:
    assert_error(licet("run", "-c", "1", f"--timeout={timeout}"), 2, "--timeout")


def test_hostile_output_cannot_reach_the_terminal() -> None:
    code = r"print('\x1b[2J\x1b]0;owned\x07 \u202e \x00 \u200b [bold red]x[/] \r\x9b'); '\x1b[31m'"
    ran = licet("run", "-c", code)
    assert ran.code == 0
    assert CONTROLS.search(ran.out + ran.err) is None
    assert "[bold red]x[/]" in ran.out


def test_hostile_code_cannot_reach_the_terminal_through_a_card() -> None:
    ran = licet("run", "-c", "import os\nos.system('\x1b[2J\u202e')")
    assert ran.code == 3
    assert CONTROLS.search(ran.out + ran.err) is None


def test_a_state_directory_from_somewhere_else_is_not_used(own_directories: Path) -> None:
    shipped = own_directories / ".licet"
    shipped.mkdir()
    (shipped / "config.toml").write_text('enabled = ["audit"]')
    (shipped / "log").mkdir()
    before = sorted(str(p) for p in shipped.rglob("*"))
    assert_error(licet("run", "-c", "print(1)"), 7, "nothing ran", "was not made by licet for this user")
    assert sorted(str(p) for p in shipped.rglob("*")) == before
    # its settings are not obeyed either: they would have disabled monty
    assert licet("explain", "-c", "1").code == 0


def test_a_state_directory_that_cannot_be_made(own_directories: Path) -> None:
    (own_directories / ".licet").write_text("a file")
    ran = licet("run", "-c", "print(1)")
    assert_error(ran, 7, "nothing ran", "you can")
    assert ran.out == ""


def test_a_full_disk_runs_nothing_and_says_how_to_recover(own_directories: Path) -> None:
    licet("run", "-c", "1")
    probe = (
        "import resource, signal, sys;"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096));"
        "from licet.cli import main; main(['run', '-c', 'print(1)'])"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True)
    assert_error(Ran(done.returncode, done.stdout, done.stderr), 7, "nothing ran", "then run again")
    assert done.stdout == ""
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
    assert licet("audit", "verify").code == 0
    assert licet("run", "-c", "print(2)").out == "2\n"


def _children(pid: int) -> list[int]:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in path.read_text().split()] if path.exists() else []


def _until_running(process: subprocess.Popen[bytes]) -> list[int]:
    """Wait until the `before` record is durable, and return the worker processes by then."""
    log = Path(".licet/log")
    while process.poll() is None:
        if any(b'"phase":"before"' in segment.read_bytes() for segment in log.glob("*.jsonl")):
            return _children(process.pid)
    raise AssertionError(process.communicate())


def test_ctrl_c_is_recorded_as_cancelled_and_leaves_no_process() -> None:
    process = start("run", "-c", "while True: pass", "--timeout", "30s")
    workers = _until_running(process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130, err
    assert b"Traceback" not in err
    assert [run["termination"] for run in licet("audit", "list", "--json").json] == ["cancelled"]
    assert not any(os.path.exists(f"/proc/{pid}") for pid in workers)


def test_a_killed_run_is_closed_as_unknown_at_the_next_start() -> None:
    process = start("run", "-c", "while True: pass", "--timeout", "30s")
    _until_running(process)
    process.kill()
    process.communicate()
    assert licet("run", "-c", "1").code == 0
    runs = licet("audit", "list", "--json").json
    assert sorted(run["termination"] for run in runs) == ["exited", "unknown"]
    assert licet("audit", "verify").code == 0


def test_two_runs_at_once_are_both_recorded_in_one_chain() -> None:
    processes = [start("run", "-c", f"sum(range({n}))") for n in range(6)]
    for process in processes:
        process.communicate(timeout=60)
    assert [process.returncode for process in processes] == [0] * 6
    assert len(licet("audit", "list", "--json").json) == 6
    assert licet("audit", "verify").code == 0


@pytest.mark.parametrize("target", [".licet/log/x", "policy.yaml"])
def test_licets_own_files_are_never_written_though_the_folder_above_is_allowed(target: str) -> None:
    Path("policy.yaml").write_text("licet: 1\nallow: [write ., read .]\n")
    assert_error(
        licet("run", "--policy", "policy.yaml", "-c", f"open({target!r}, 'w').write('x')"),
        3,
        "belongs to licet itself",
    )
    # a run that may write the folder, but hides the target, finds no sandbox that would not keep it out
    hidden = f"n = {target!r}\nopen(n[:3] + n[3:], 'w').write('x')"
    assert licet("run", "--policy", "policy.yaml", "-c", hidden).code == 5
    assert Path("policy.yaml").read_text().startswith("licet: 1")


def test_an_edited_log_is_tampered() -> None:
    licet("run", "-c", "1")
    (segment,) = Path(".licet/log").glob("*.jsonl")
    segment.write_bytes(segment.read_bytes().replace(b'"effect":"allow"', b'"effect":"deny" ', 1))
    ran = licet("audit", "verify", "--json")
    assert ran.code == 1
    assert json.loads(ran.out)["status"] == "tampered"


def test_a_closed_pipe_is_no_traceback() -> None:
    with start("run", "-c", "print('x' * 900000)") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()
