"""Approvals on the command line, as people type them: at terminals, in pipes, one day and the next."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli import Ran, heed_signals, licet
from licet import state

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="terminals of POSIX")

if sys.platform != "win32":
    from terminals import Terminal

POLICY = """\
licet: 1
allow: [tool find]
ask: [run]
approval: {unattended: queue, expires: 30m}
sandbox: {evidence: declared, only: [monty]}
"""
CODE = 'print("paid", 41 + 1)\n'
UNATTENDED = ["run", "pay.py", "--policy", "licet.yaml"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project whose runs have to be approved, by the queue or at the terminal."""
    folder = tmp_path / "project"
    folder.mkdir()
    for name in ("STATE", "CACHE", "CONFIG"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("PAGER", "cat")
    monkeypatch.chdir(folder)
    (folder / "licet.yaml").write_text(POLICY)
    (folder / "pay.py").write_text(CODE)
    services(folder, "queue", "terminal")
    yield folder


def services(folder: Path, *names: str) -> None:
    settings = state.open_state(folder / ".licet").path / "config.toml"
    settings.write_text(f"[approvals]\nservices = {json.dumps(names)}\n")


def pending(*arguments: str) -> tuple[str, str]:
    """Run something that has to wait; the ids of approval and run."""
    ran = licet(*(arguments or UNATTENDED), "--json")
    assert ran.code == 4, ran.err
    return ran.json["approval"]["id"], ran.json["run_id"]


def shown(approval: str) -> dict[str, Any]:
    document: dict[str, Any] = licet("approvals", "show", approval, "--json").json
    return document


def approve(approval: str, *more: str) -> Ran:
    return licet("approvals", "approve", approval, "--shown", shown(approval)["shown"], *more)


def test_what_waits_is_listed_shown_approved_and_goes_on(place: Path) -> None:
    ran = licet(*UNATTENDED)
    assert ran.code == 4
    assert "waits for an approval" in ran.err
    commands = dict(re.findall(r"^  (look|answer|then) +licet (.*)$", ran.err, re.MULTILINE))
    (one,) = licet("approvals", "list", "--json").json
    assert one["state"] == "pending"
    assert commands == {
        "look": f"approvals show {one['id']}",
        "answer": f"approvals approve {one['id']}",
        "then": f"run --resume {one['run_id']} --policy licet.yaml",
    }
    table = licet("approvals", "list").out.splitlines()
    assert len(table) == 2 and one["id"].startswith(table[1].split()[0])
    card = licet(*commands["look"].split())
    assert "1 │ " + CODE.strip() in card.out and one["shown"] in card.out and card.err == ""
    assert approve(one["id"], "--reason", "due today").code == 0
    (answer,) = licet("approvals", "list", "--json").json[0]["answers"]
    assert (answer["reason"], answer["service"], answer["approve"]) == ("due today", "cli", True)
    assert (answer["person"]["reviewer"], answer["person"]["asserted_by"]) == ("auto", "os")
    gone_on = licet(*commands["then"].split())
    assert (gone_on.code, gone_on.out) == (0, "paid 42\n")
    again = licet(*commands["then"].split())
    assert (again.code, again.out) == (3, "")
    assert licet("approvals", "list").out == "✓ nothing waits for an approval\n"
    assert "1 is over" in licet("approvals", "list").err
    assert [one["state"] for one in licet("approvals", "list", "--all", "--json").json] == ["consumed"]
    assert licet("approvals", "list", "--only", "denied", "--json").json == []


def test_a_run_is_resumed_by_the_beginning_of_its_id(place: Path) -> None:
    approval, run = pending()
    assert approve(approval[:20]).code == 0
    ran = licet("run", "--resume", run[:16].lower(), "--policy", "licet.yaml")
    assert (ran.code, ran.out) == (0, "paid 42\n")


def test_a_beginning_of_two_runs_or_of_none_resumes_nothing(place: Path) -> None:
    runs = sorted(pending()[1] for _ in range(2))
    common = runs[0][: next(place for place in range(26) if runs[0][place] != runs[1][place])]
    ran = licet("run", "--resume", common, "--policy", "licet.yaml")
    assert ran.code == 2 and f"2 runs that wait begin with `{common}`" in ran.err
    ran = licet("run", "--resume", "7ZZ", "--policy", "licet.yaml")
    assert ran.code == 2 and "no run that waits for an approval begins with `7ZZ`" in ran.err


def test_without_a_terminal_what_is_approved_has_to_be_named(place: Path) -> None:
    approval, _ = pending()
    refused = licet("approvals", "approve", approval, "--yes")
    assert refused.code == 2 and "nothing says what is approved" in refused.err
    other = licet("approvals", "approve", approval, "--shown", "hmac-sha256:" + "0" * 64)
    assert other.code == 3 and "names another document" in other.err
    assert licet("approvals", "list", "--json").json[0]["answers"] == []


def test_a_denied_one_does_not_go_on(place: Path) -> None:
    approval, run = pending()
    denied = licet("approvals", "deny", approval, "--reason", "not \u202e now")
    assert denied.code == 0
    assert r"not \u202e now" in denied.err
    ran = licet("run", "--resume", run, "--policy", "licet.yaml")
    assert (ran.code, ran.out) == (3, "")
    assert "✗ it was not approved, nothing ran" in ran.err
    late = licet("approvals", "approve", approval, "--shown", "x")
    assert late.code == 3


def test_a_revoked_one_does_not_go_on(place: Path) -> None:
    approval, run = pending()
    assert approve(approval).code == 0
    revoked = licet("approvals", "revoke", approval, "--reason", "wrong order")
    assert revoked.code == 0 and "was revoked" in revoked.err
    assert licet("run", "--resume", run, "--policy", "licet.yaml").code == 3
    assert licet("approvals", "revoke", approval).code == 3


@pytest.mark.parametrize("command", ["show", "approve", "deny", "revoke"])
def test_an_approval_that_is_not_there_is_a_usage_error(place: Path, command: str) -> None:
    assert licet("approvals", command, "7ZZ").code == 2  # nothing was ever asked here
    pending()
    ran = licet("approvals", command, "7ZZ")
    assert ran.code == 2 and "no approval" in ran.err and "Traceback" not in ran.err


def test_a_directory_that_others_made_has_no_approvals(place: Path, tmp_path: Path) -> None:
    pending()
    foreign = tmp_path / "foreign"
    subprocess.run(["cp", "-r", ".licet", str(foreign)], check=True)
    ran = licet("approvals", "list", "--state", str(foreign))
    assert ran.code == 8 and "was not made by this user's licet" in ran.err
    assert licet("approvals", "list", "--state", str(place / ".licet"), "--json").json != []
    assert licet("approvals", "list", "--state", str(tmp_path / "missing"), "--json").json == []
    assert not (tmp_path / "missing").exists()


HOSTILE = (
    "x = 'a\u202e b\u2066'  # \u200b\n"
    "y = '\x1b[2J\x1b]0;owned\x07 \x9b31m'\n"
    "z = 1  # fine" + " " * 200 + "  4 │ harmless()\n"
    "print(y)\n"
)


def test_code_that_deceives_is_shown_as_it_is(place: Path) -> None:
    (place / "pay.py").write_text(HOSTILE)
    (place / "licet.yaml").write_text(POLICY + "screen: {mode: report}\n")
    approval, _ = pending()
    card = licet("approvals", "show", approval, "--full").out
    for line in ("suspicious", "‹U+202E›", "‹U+2066›", "‹U+200B›", "‹U+001B›[2J", "‹U+0007›", "‹U+009B›"):
        assert line in card
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]", card)
    assert card.index("suspicious") < card.index("1 │ ")
    with Terminal("approvals", "show", approval, rows=200, columns=80) as terminal:
        assert terminal.end() == 0
        numbers = re.findall(r"^  (\d) │ ", terminal.said, re.MULTILINE)
        assert numbers == ["1", "2", "3", "4"]


def test_long_code_is_never_cut(place: Path) -> None:
    (place / "pay.py").write_text("".join(f"a{number} = {number}\n" for number in range(3000)))
    approval, _ = pending()
    card = licet("approvals", "show", approval).out
    assert [f"a{number} = {number}" in card for number in range(3000)] == [True] * 3000
    with Terminal("approvals", "show", approval) as terminal:
        assert terminal.end() == 0
        assert "2999 = 2999" in terminal.said


@pytest.mark.parametrize(
    ("typed", "code", "out"), [("y it is due\n", 0, True), ("n not today\n", 3, False), ("\x04", 3, False)]
)
def test_the_terminal_asks_and_a_person_answers(place: Path, typed: str, code: int, out: bool) -> None:
    services(place, "terminal")
    with Terminal(*UNATTENDED) as terminal:
        said = terminal.see("approve? [y/n/d]")
        assert "1 │ " + CODE.strip() in said
        terminal.type(typed)
        assert terminal.end() == code
        assert ("paid 42" in terminal.said) is out
    found = licet("approvals", "list", "--all", "--json").json[0]["answers"]
    if typed != "\x04":
        assert (found[0]["person"]["reviewer"], found[0]["service"]) == ("human", "terminal")
        assert found[0]["reason"] == typed[2:].strip()
    else:
        assert found == []


def test_an_interrupt_at_the_question_cancels_the_run(place: Path) -> None:
    services(place, "terminal")
    with Terminal(*UNATTENDED) as terminal:
        terminal.see("approve? [y/n/d]")
        terminal.type("\x03")
        assert terminal.end() == 130
        assert "✗ cancelled" in terminal.said and "Traceback" not in terminal.said
    assert [run["termination"] for run in licet("audit", "query", "--json").json] == ["cancelled"]


def test_what_was_typed_before_the_question_is_no_answer(place: Path) -> None:
    services(place, "terminal")
    with Terminal(*UNATTENDED) as terminal:
        terminal.type("y\n")
        terminal.see("approve? [y/n/d]")
        terminal.type("maybe\ny\n")  # the y was there before the question was asked again
        terminal.see("approve? [y/n/d]", times=2)
        terminal.see("min left", times=4)  # the time in the question moves on, and nothing was answered
        assert "paid 42" not in terminal.said
        terminal.type("n\n")
        assert terminal.end() == 3


def test_a_yes_counts_only_once_everything_was_shown(place: Path) -> None:
    services(place, "terminal")
    (place / "pay.py").write_text("".join(f"a{number} = {number}\n" for number in range(100)) + CODE)
    with Terminal(*UNATTENDED) as terminal:
        assert "41 more lines of the code" in terminal.see("approve? [n/d]")
        terminal.type("y\n")
        asked = terminal.see("type d first").count("approve? [n/d]")
        terminal.see("approve? [n/d]", times=asked + 1)  # what is typed before the question is no answer
        terminal.type("d\n")
        assert "a99 = 99" in terminal.see("approve? [y/n/d]")
        terminal.type("y\n")
        assert terminal.end() == 0
        assert "paid 42" in terminal.said


@pytest.mark.parametrize("arguments", [["-"], ["pay.py", "--stdin", "-"], ["pay.py", "--input", "a=@-"]])
def test_nobody_is_asked_where_stdin_is_the_code_or_its_input(place: Path, arguments: list[str]) -> None:
    services(place, "terminal")
    with Terminal("run", *arguments, "--policy", "licet.yaml") as terminal:
        terminal.type("1\n\x04\x04")
        assert terminal.end() in (3, 4, 5)  # no input but that of the code itself comes to this backend
        assert "approve?" not in terminal.said


def test_nobody_is_asked_without_a_terminal(place: Path) -> None:
    services(place, "terminal")
    ran = licet(*UNATTENDED, stdin=b"y\ny\n")
    assert ran.code in (3, 4) and "approve?" not in ran.err and ran.out == ""


def test_a_job_in_the_background_is_not_stopped_by_a_question(place: Path) -> None:
    services(place, "terminal")
    script = f"set -m; {sys.executable} -m licet {' '.join(UNATTENDED)} & wait $!; echo job over $?"
    (place / "job.py").write_text(f"import os\nos.execvp('bash', ['bash', '-c', {script!r}])\n")
    with Terminal(program=[sys.executable, "job.py"]) as terminal:
        assert re.search(r"job over [34]\b", terminal.see("job over"))
        assert "approve?" not in terminal.said


def test_the_requester_is_not_asked_in_vain(place: Path) -> None:
    services(place, "terminal")
    (place / "licet.yaml").write_text(POLICY.replace("expires", "from: [nobody-is-in-this], expires"))
    with Terminal(*UNATTENDED) as terminal:
        assert terminal.end() in (3, 4)
        assert "nobody here can approve this" in terminal.said and "approve?" not in terminal.said


def test_approve_at_a_terminal_shows_everything_and_asks(place: Path) -> None:
    approval, run = pending()
    with Terminal("approvals", "approve", approval) as terminal:
        assert "1 │ " + CODE.strip() in terminal.see("Approve exactly this? [y/N]")
        terminal.type("\n")
        assert terminal.end() == 130
    assert licet("approvals", "list", "--json").json[0]["answers"] == []
    with Terminal("approvals", "approve", approval) as terminal:
        terminal.see("[y/N]")
        terminal.type("y\n")
        assert terminal.end() == 0
        assert f"licet run --resume {run}" in terminal.said
    (answer,) = licet("approvals", "list", "--json").json[0]["answers"]
    assert answer["person"]["reviewer"] == "human"


def test_yes_at_a_terminal_is_nobody_seen_to_act(place: Path) -> None:
    approval, _ = pending()
    digest = shown(approval)["shown"]
    with Terminal("approvals", "approve", approval, "--yes", "--shown", digest) as terminal:
        assert terminal.end() == 0
    (answer,) = licet("approvals", "list", "--json").json[0]["answers"]
    assert answer["person"]["reviewer"] == "auto"


TOOLS = "import licet\n\n@licet.tool\ndef find(name: str) -> str:\n    return f'found {name}'\n"


def test_tools_of_a_file_are_named_and_have_to_stay_the_same(place: Path) -> None:
    (place / "shop.py").write_text(TOOLS)
    (place / "pay.py").write_text("print(find('ann'))\n")
    approval, run = pending(*UNATTENDED, "--tools", "shop.py")
    assert re.search(r"says tools +shop\.py sha256:[0-9a-f]{64}\n", licet("approvals", "show", approval).out)
    assert approve(approval).code == 0
    (place / "shop.py").write_text(TOOLS.replace("found", "lost"))
    ran = licet("run", "--resume", run, "--policy", "licet.yaml")
    assert ran.code == 3 and "was changed since this run was asked about" in ran.err and ran.out == ""
    (place / "shop.py").write_text(TOOLS)
    ran = licet("run", "--resume", run, "--policy", "licet.yaml")
    assert (ran.code, ran.out) == (0, "found ann\n")


def pending_call(place: Path) -> tuple[str, str]:
    """Run code whose call of a tool has to wait; the ids of approval and run."""
    (place / "shop.py").write_text(TOOLS)
    (place / "pay.py").write_text("print(find('ann'))\n")
    (place / "licet.yaml").write_text(POLICY.replace("[tool find]", "[]").replace("[run]", "[tool find]"))
    return pending(*UNATTENDED, "--tools", "shop.py")


def test_a_run_that_waits_survives_new_evidence(place: Path, tmp_path: Path, receipts: Path) -> None:
    approval, run = pending_call(place)
    assert set(shown(approval)["document"]["sandbox"]["enforces"].values()) == {"enforced/declared"}
    assert approve(approval).code == 0
    probes = tmp_path / "STATE" / "licet" / "probes"
    probes.mkdir(mode=0o700, exist_ok=True)
    for receipt in receipts.iterdir():
        (probes / receipt.name).write_bytes(receipt.read_bytes())
    assert '"probed"' in licet("backends", "show", "monty", "--json").out
    ran = licet("run", "--resume", run, "--policy", "licet.yaml")
    assert (ran.code, ran.out) == (0, "found ann\n"), ran.err


def test_what_a_call_came_to_is_told_of_its_run(place: Path) -> None:
    approval, run = pending_call(place)
    assert licet("approvals", "deny", approval, "--reason", "no").code == 0
    ran = licet("run", "--resume", run, "--policy", "licet.yaml")
    assert (ran.code, ran.out) == (3, "")
    assert "✗ it was not approved, nothing more ran" in ran.err


def test_a_watcher_sees_each_change(place: Path) -> None:
    watching = subprocess.Popen(
        [sys.executable, "-m", "licet", "approvals", "watch", "--json"],
        stdout=subprocess.PIPE,
        preexec_fn=heed_signals,
    )
    assert watching.stdout is not None
    try:
        approval, run = pending()
        assert json.loads(watching.stdout.readline())["state"] == "pending"
        assert approve(approval).code == 0
        assert json.loads(watching.stdout.readline())["state"] == "granted"
        assert licet("run", "--resume", run, "--policy", "licet.yaml").code == 0
        assert json.loads(watching.stdout.readline())["state"] == "consumed"
    finally:
        watching.send_signal(signal.SIGINT)
        watching.stdout.close()
        assert watching.wait(30) == 130


def test_a_watching_terminal_has_a_table(place: Path) -> None:
    approval, _ = pending()
    with Terminal("approvals", "watch") as terminal:
        assert approval[:12] in terminal.see("pending")
        assert licet("approvals", "deny", approval).code == 0
        terminal.see("denied")
        terminal.type("\x03")
        assert terminal.end() == 130
