"""The tutorial on approvals, typed at a terminal from its first line to its last, by people of two days."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli import licet, start

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a terminal of POSIX")

if sys.platform != "win32":
    from terminals import Terminal

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"
TEXT = (ROOT / "docs" / "tutorial" / "approve-a-refund.md").read_text("utf-8")
RUN, APPROVAL = "01M8Q1NGYJE1VEMAGQ207XTGJ5", "01M8Q1NH2WMSEYHHRTP00G6ZV2"  # as the page has them
ENVIRONMENT = ("uv sync", ". .venv")  # what the tests are run in
SERVE, ASK = "python desk.py serve", "licet run --tools shop.py --policy licet.yaml --wait 5s order.py"
PORT = "8917"
REFUND = {"order": "A-1042", "amount": 129, "reason": "came back unopened"}


class Shell:
    """A person's shell, which says how each command ended."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._typed = 1  # the prompt that is there first
        self._prompted()

    def type(self, line: str) -> tuple[int, str]:
        """Type a command, and y wherever it asks; its exit code, and all that it showed."""
        before = len(self._terminal.said)
        self._terminal.type(f"{line}\n")
        self._typed += 1
        if "desk.py approve" in line:
            self._terminal.see("[y/N]", self._terminal.said[:before].count("[y/N]") + 1)
            self._terminal.type("y\n")
        code = self._prompted()
        return code, self._terminal.said[before:]

    def _prompted(self) -> int:
        self._terminal.see("<ended ", self._typed)
        said = self._terminal.see("> $ ", self._typed)
        return int(re.findall(r"<ended (\d+)> \$ ", said)[-1])


@pytest.fixture
def shell(own_directories: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PS1", "<ended $?> $ ")
    monkeypatch.setenv("PAGER", "cat")
    monkeypatch.setenv("TERM", "dumb")
    (own_directories / "docs").symlink_to(ROOT / "docs")
    bash = ["bash", "--norc", "--noprofile", "--noediting", "-i"]
    with Terminal(program=bash, columns=500) as terminal:
        yield Shell(terminal)


@pytest.fixture
def serve() -> Iterator[list[subprocess.Popen[bytes]]]:
    """The servers of the page, each in a terminal of its own."""
    servers: list[subprocess.Popen[bytes]] = []
    yield servers
    for server in servers:
        server.kill()
        server.communicate()


def lines() -> Iterator[str]:
    """What the page has people type."""
    for block in re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL):
        yield from (line for line in block.splitlines() if not line.startswith(ENVIRONMENT))


def expected(line: str) -> int:
    said = re.search(r" # (\d+):", line)
    return int(said[1]) if said else 0


def free_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


def served(port: str) -> subprocess.Popen[bytes]:
    """The desk, once it can be reached; on a port that is free, whatever else runs here."""
    command = [sys.executable, *shlex.split(SERVE)[1:], "--port", port]
    server = subprocess.Popen(command, stderr=subprocess.PIPE)
    assert server.stderr is not None
    assert b"the desk is at" in server.stderr.readline()
    return server


def killed_while_it_waits() -> None:
    """Begin the run as the page does, with the patience that settings give it, and have it die of that."""
    arguments = shlex.split(ASK.replace("--wait 5s ", ""))[1:]
    process = start(*arguments)
    try:
        while not licet("approvals", "list", "--json").json:
            assert process.poll() is None
        while "pending" not in desk("list"):  # and it was delivered
            assert process.poll() is None
    finally:
        process.send_signal(signal.SIGKILL)
        out, _ = process.communicate()
    assert (process.returncode, out) == (-signal.SIGKILL, b"")


def desk(*arguments: str) -> str:
    done = subprocess.run([sys.executable, "desk.py", *arguments], capture_output=True, text=True, check=True)
    return done.stdout


def refunds(shop: Path) -> list[object]:
    book = shop / "refunds.jsonl"
    return [json.loads(line) for line in book.read_text().splitlines()] if book.exists() else []


@pytest.mark.parametrize("ending", ["it says that it waits", "it is killed while it waits"])
def test_the_laptop_is_closed_and_two_people_approve_the_next_day(
    ending: str,
    shell: Shell,
    serve: list[subprocess.Popen[bytes]],
    own_directories: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    port, shop = free_port(), own_directories / "shop"
    names: dict[str, str] = {}
    typed, said = 0, {}
    for line in lines():
        for old, new in names.items():
            line = line.replace(old, new)
        if line == SERVE:
            serve.append(served(port))
            continue
        if line.startswith(ASK) and ending == "it is killed while it waits":
            killed_while_it_waits()
        else:
            code, shown = shell.type(line)
            assert code == expected(line), (line, shown)
            said[line] = shown
        typed += 1
        if line == "cd shop":
            monkeypatch.chdir(shop)
        if line.endswith("config.toml") and ">>" in line:
            settings = shop / ".licet" / "config.toml"
            settings.write_text(settings.read_text().replace(PORT, port))
        if line.startswith(ASK):
            (one,) = licet("approvals", "list", "--json").json
            names = {RUN: one["run_id"], APPROVAL: one["id"]}
            assert (one["state"], refunds(shop)) == ("pending", [])
        if line.startswith("python desk.py"):
            assert refunds(shop) == []
        if line.startswith("licet run --resume"):
            assert refunds(shop) == [REFUND]
    assert typed == 20
    resume, refused = f"licet run --resume {names[RUN]} --policy licet.yaml", "✗ its approval was used before"
    assert "Ada sent A-1042 back, which cost 129\npaid 129 back to Ada\n" in said[resume]
    assert "ann of finance (says a signed token, seen to act) approved by webhook" in said[resume]
    assert f"{refused}, nothing more ran" in said[f"{resume}   # 3: it was used"]
    myself = f"licet approvals approve {names[APPROVAL]}   # 3: you are not of finance"
    assert "may not answer" in said[myself]
    assert "unfinished" not in said[f"licet audit show {names[RUN]}"]
    (one,) = licet("approvals", "list", "--all", "--json").json
    assert (one["state"], one["ending"], one["used"]) == ("consumed", "executed", 1)
    counted = [answer["person"]["id"] for answer in one["answers"]]
    assert counted == ["ann", "bob"]


def test_the_page_shows_the_files_that_it_has_people_copy() -> None:
    blocks = re.findall(r"```(?:yaml|python)\n(.*?)```", TEXT, re.DOTALL)
    files = {path.name: path.read_text("utf-8") for path in (EXAMPLES / "refunds").iterdir()}
    assert [blocks[1], blocks[2]] == [files["order.py"], files["licet.yaml"]]
    assert blocks[0] in files["shop.py"]
