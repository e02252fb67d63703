"""What people get wrong, and what the world does to them: one clear answer each, and nothing is lost."""

from __future__ import annotations

import asyncio
import json
import os
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli import Ran, heed_signals, licet, start
from licet.record import Entry, Kind
from licet.state import open_state
from licet_audit.log import DurableLog

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
        ("licet: 1\nsecrets: {KEY: {host: a.example:443}}\n", ":2:1", "not yet supported"),
        ("licet: 1\nclock: broken\n", ":2:1", "should be 'real' or 'frozen'"),
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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_who_stops_a_run_finds_it_recorded_as_cancelled_and_no_process(number: signal.Signals) -> None:
    process = start("run", "-c", "while True: pass", "--timeout", "30s")
    workers = _until_running(process)
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (130, b""), err
    assert err.decode().split("\n")[-3:] == [
        "✗ cancelled", "  more        what had begun is recorded, see licet audit list", "",
    ]  # fmt: skip
    assert [run["termination"] for run in licet("audit", "list", "--json").json] == ["cancelled"]
    assert not any(os.path.exists(f"/proc/{pid}") for pid in workers)


def test_a_second_request_to_stop_does_not_disturb_the_first() -> None:
    process = start("run", "-c", "while True: pass", "--timeout", "30s")
    _until_running(process)
    for _ in range(20):
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGHUP)
    _, err = process.communicate(timeout=20)
    assert (process.returncode, b"Traceback" in err) == (130, False), err
    assert [run["termination"] for run in licet("audit", "list", "--json").json] == ["cancelled"]


def test_a_signal_that_was_ignored_stays_ignored() -> None:
    command = (sys.executable, "-m", "licet", "run", "-c", "while True: pass", "--timeout", "1s")
    with subprocess.Popen(
        ["sh", "-c", 'trap "" HUP; exec "$@"', "sh", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        _until_running(process)
        process.send_signal(signal.SIGHUP)
        process.communicate(timeout=20)
    assert process.returncode == 6


@pytest.mark.parametrize(
    ("module", "number"),
    [
        ("click", signal.SIGINT),
        ("licet.cli.run", signal.SIGINT),
        ("pydantic", signal.SIGINT),
        ("licet.screen", signal.SIGINT),
        ("click", signal.SIGTERM),
        ("licet.screen", signal.SIGHUP),
    ],
)
def test_who_stops_a_command_before_anything_runs_sees_one_line(module: str, number: signal.Signals) -> None:
    """Importing takes most of the time until then, so the signal comes while `module` is imported."""
    program = f"""if True:
        import os, sys
        class Stop:
            def find_spec(self, name, path=None, target=None):
                if name == {module!r}:
                    os.kill(os.getpid(), {int(number)})
        sys.meta_path.insert(0, Stop())
        from licet.cli import main
        main(["run", "-c", "print(1)"])
    """
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=heed_signals,
    )
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "✗ cancelled")
    assert not Path(".licet").exists()


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
    # a run that may write the folder, but hides the target, is kept out by its sandbox
    hidden = "n = {!r}\nopen(n[:3] + n[3:], 'w').write('x')"
    ran = licet("run", "--policy", "policy.yaml", "-c", hidden.format(target))
    assert (ran.code, "PermissionError" in ran.err) == (1, True)
    assert licet("run", "--policy", "policy.yaml", "-c", hidden.format("mine")).code == 0
    assert Path("policy.yaml").read_text().startswith("licet: 1")


def test_an_edited_log_is_tampered() -> None:
    licet("run", "-c", "1")
    (segment,) = Path(".licet/log").glob("*.jsonl")
    segment.write_bytes(segment.read_bytes().replace(b'"effect":"allow"', b'"effect":"deny" ', 1))
    ran = licet("audit", "verify", "--json")
    assert ran.code == 1
    assert json.loads(ran.out)["status"] == "tampered"


def _unread(*arguments: str) -> int:
    """The exit code of a command whose output nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run([sys.executable, "-m", "licet", *arguments], stdout=writer, stderr=writer)
    finally:
        os.close(writer)
    return done.returncode


def test_an_exit_code_does_not_depend_on_who_reads() -> None:
    assert _unread("run", "-c", "print('x' * 900000); 1") == 0
    assert _unread("run", "-c", "open('x')") == 3
    assert _unread("run", "--json", "-c", "1/0") == 1
    assert _unread("audit", "verify") == 0
    assert _unread("audit", "list", "--state", "nowhere") == 7
    assert _unread("run", "--help") == 0
    assert len(licet("audit", "list", "--json").json) == 3


def test_a_reader_that_leaves_early_changes_nothing() -> None:
    with start("run", "-c", "print('x' * 900000)") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read().startswith("✓ ran".encode())
    assert process.returncode == 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_output_that_cannot_be_written_is_no_success() -> None:
    run = (sys.executable, "-m", "licet", "run", "-c", "1")
    with open("/dev/full", "wb") as full:
        lost = subprocess.run(run, stdout=full, stderr=subprocess.PIPE)
        silent = subprocess.run(run, stdout=full, stderr=full)
    assert lost.returncode == silent.returncode == 8
    message = "✗ `standard output` can't be used: no space left on device  error\n"
    assert lost.stderr.decode() == message
    assert [run["termination"] for run in licet("audit", "list", "--json").json] == ["exited"] * 2


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
@pytest.mark.parametrize("words", [("policy", "show", "none.yaml"), ("policy", "shwo"), ("policy", "schema")])
def test_an_error_that_cannot_be_written_as_a_document_is_still_told(words: tuple[str, ...]) -> None:
    with open("/dev/full", "wb") as full:
        lost = subprocess.run(
            (sys.executable, "-m", "licet", *words, "--json"), stdout=full, stderr=subprocess.PIPE
        )
    message = "✗ `standard output` can't be used: no space left on device  error\n"
    assert (lost.returncode, lost.stderr.decode()) == (8, message)


def test_closed_descriptors_are_taken_by_nothing() -> None:
    command = (sys.executable, "-m", "licet", "run", "-c", "print('x' * 9000); 1")
    done = subprocess.run(["sh", "-c", '"$@" <&- >&- 2>&-', "sh", *command])
    assert done.returncode == 0
    assert licet("audit", "verify").code == 0
    assert licet("run", "-").code == 0
    asked = subprocess.run(["sh", "-c", '"$@" <&-', "sh", sys.executable, "-m", "licet", "run", "-"])
    assert asked.returncode == 0


@pytest.mark.parametrize("which", ["policy", "bound", "settings"])
def test_a_pipe_in_the_place_of_a_policy_or_of_settings_is_refused_at_once(which: str) -> None:
    licet("run", "-c", "1")
    place = {"policy": "p.yaml", "bound": "bound.yaml", "settings": ".licet/config.toml"}[which]
    Path("p.yaml").write_text("licet: 1\nwithin: [./bound.yaml]\n")
    Path("bound.yaml").write_text("licet: 1\n")
    Path(place).unlink(missing_ok=True)
    os.mkfifo(place)
    assert_error(licet("run", "--policy", "p.yaml", "-c", "1", timeout=20), 2, place, "not a plain file")


def test_a_pipe_in_the_place_of_code_or_input_is_read() -> None:
    script = """
        licet() { "$PYTHON" -m licet "$@"; }
        licet run <(echo "print(n, input())") --input n=@<(echo 7) --stdin <(echo hi) --policy licet:trusted
    """
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, env=os.environ | {"PYTHON": sys.executable}
    )
    assert (done.returncode, done.stdout) == (0, "7 hi\n"), done.stderr


NO_HOME = "/proc/nowhere"


@pytest.mark.parametrize(
    "command",
    [
        ("explain", "-c", "1"),
        ("explain", "--json", "-c", "1"),
        ("policy", "check", "p.yaml"),
        ("policy", "show", "p.yaml"),
        ("backends", "list"),
        ("backends", "show", "monty"),
    ],
)
def test_looking_needs_no_state_and_makes_none(
    command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("p.yaml").write_text("licet: 1\n")
    Path(".licet").mkdir(mode=0o700)
    monkeypatch.setenv("XDG_STATE_HOME", NO_HOME)
    ran = licet(*command)
    assert (ran.code, "Traceback" in ran.err) == (0, False), ran.err
    assert list(Path(".licet").iterdir()) == []
    if command[:2] == ("explain", "--json"):
        assert ran.json["plan_digest"] is None


def test_running_without_a_place_for_keys_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", NO_HOME)
    assert_error(licet("run", "-c", "1"), 7, f"`{NO_HOME}` can't be used", "point XDG_STATE_HOME at")


ODD = {"subject": {"id": {}}, "effect": 3, "termination": None, "backend": [1]}


@pytest.mark.parametrize("body", [{}, {"subject": []}, ODD])
def test_a_record_that_says_less_than_expected_is_shown(body: dict[str, Any]) -> None:
    log = DurableLog(open_state(Path(".licet")))
    kinds: tuple[Kind, ...] = ("request", "decision", "selection", "execution", "result")

    async def write() -> None:
        await log.append([Entry(kind, "R", body, "today", 1) for kind in kinds])
        await log.close()

    asyncio.run(write())
    listed = licet("audit", "list")
    assert (listed.code, listed.err) == (0, "")
    assert listed.out.splitlines()[1].split() == ["#5", "today", "R", "?", "?", "?", "?"]
    (run,) = licet("audit", "list", "--json").json
    assert [run[name] for name in ("subject", "effect", "backend", "termination")] == [None] * 4
    shown = licet("audit", "show", "R")
    assert (shown.code, shown.err) == (0, "")


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "-c", "1", "--input", "x" * 9000),
        ("run", "-c", "1", "--input", "x" * 9000 + "=?"),
        ("run", "-c", "1", "--read", "x" * 9000),
        ("run", "-c", "1", "--network", "x" * 9000),
        ("run", "-c", "1", "--timeout", "x" * 9000),
        ("run", "x" * 9000),
        ("run", "-c", "1", "--policy", "x" * 9000),
        ("run", "-c", "1", "--policy", f"licet:{'x' * 9000}"),
        ("run", "-c", "1", f"--{'x' * 9000}"),
        ("backends", "show", "x" * 9000),
        ("audit", "list", "--limit", "0"),
    ],
)
def test_an_error_repeats_only_the_beginning_of_what_was_given(arguments: tuple[str, ...]) -> None:
    ran = licet(*arguments)
    assert_error(ran, 2)
    assert len(ran.err) < 1600


def test_an_error_of_usage_is_escaped_and_json_like_any_other() -> None:
    ran = licet("run", "--json", "--no\x1b[31m")
    assert_error(ran, 2, r"no such option `--no\x1b[31m`")
    assert ran.json["error"]["slug"] == "usage"
    assert CONTROLS.search(ran.err) is None


def test_a_state_directory_of_an_impossible_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LICET_HOME", "x" * 5000)
    assert_error(licet("run", "-c", "1"), 2, "can't be used: it is longer than 4095 bytes")
    assert_error(licet("audit", "list"), 7, "there is no log at")


def test_a_current_directory_that_is_gone(own_directories: Path) -> None:
    for command in (("run", "-c", "1"), ("explain", "-c", "1"), ("audit", "list"), ("policy", "check")):
        script = 'mkdir gone && cd gone && rmdir ../gone && exec "$@"'
        done = subprocess.run(
            ["sh", "-c", script, "sh", sys.executable, "-m", "licet", *command],
            capture_output=True,
            text=True,
        )
        assert_error(
            Ran(done.returncode, done.stdout, done.stderr),
            2,
            "the current directory is gone",
            "change into one",
        )
