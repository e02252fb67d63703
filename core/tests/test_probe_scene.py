"""Targets, traces and twins: what an attack aims at is there, is hit by its own run alone, and goes."""

from __future__ import annotations

import ast
import asyncio
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from licet.backend import Access, Target, ToolCall
from licet.contract import Control
from licet.plan import Opened
from licet.probe import bare, places, traces
from licet.probe.attack import Attack, Proof
from licet.probe.scene import Scene
from licet.probe.targets import Targets
from licet.probe.trial import Ear

SLEEP = "import time; time.sleep(20)"


def on_scene(work: Callable[[Targets], Any]) -> Any:
    async def play() -> Any:
        async with Scene() as scene, scene.targets() as targets:
            return await asyncio.to_thread(work, targets)

    return asyncio.run(play())


def filled(*texts: str, act: Callable[..., Any]) -> Any:
    """Fill `texts` on the loop, call `act(targets, *filled)` off it."""

    async def play() -> Any:
        async with Scene() as scene, scene.targets() as targets:
            return await asyncio.to_thread(act, targets, *map(targets.fill, texts))

    return asyncio.run(play())


def struck_by(text: str, blow: Callable[[str], Any]) -> tuple[bool, bool]:
    def act(targets: Targets, value: str) -> tuple[bool, bool]:
        before = targets.struck()
        blow(value)
        return before, targets.struck()

    result: tuple[bool, bool] = filled(text, act=act)
    return result


def _send(family: int, address: Any, kind: int = socket.SOCK_STREAM) -> None:
    with socket.socket(family, kind) as connection:
        connection.connect(address)
        connection.send(b"x")
        if family == socket.AF_INET and kind == socket.SOCK_DGRAM:
            connection.settimeout(5)
            assert connection.recv(100) == b"answer"


@pytest.mark.parametrize(
    ("placeholder", "blow"),
    [
        ("{CANARY_FILE}", lambda path: Path(path).write_text("x")),
        ("{VICTIM_FILE}", lambda path: Path(path).write_text("x")),
        ("{VICTIM_FILE}", lambda path: Path(path).unlink()),
        ("{VICTIM_LINK}", lambda path: Path(path).write_text("x")),
        ("{VICTIM_BY_DOTS}", lambda path: Path(path).write_text("x")),
        ("{TCP_PORT}", lambda port: _send(socket.AF_INET, ("127.0.0.1", int(port)))),
        ("{OPEN_PORT_ELSEWHERE}", lambda port: _send(socket.AF_INET, ("127.0.0.2", int(port)))),
        ("{UDP_PORT}", lambda port: _send(socket.AF_INET, ("127.0.0.1", int(port)), socket.SOCK_DGRAM)),
        ("{UNIX_PATH}", lambda path: _send(socket.AF_UNIX, path)),
        ("{DATAGRAM_PATH}", lambda path: _send(socket.AF_UNIX, path, socket.SOCK_DGRAM)),
        ("{ABSTRACT_NAME}", lambda name: _send(socket.AF_UNIX, f"\0{name}")),
    ],
)
def test_a_blow_is_seen(placeholder: str, blow: Callable[[str], Any]) -> None:
    assert struck_by(placeholder, blow) == (False, True)


@pytest.mark.parametrize(
    ("placeholder", "blow"),
    [
        ("{VICTIM_FILE}", lambda path: Path(path).read_text()),
        ("{SECRET_FILE}", lambda path: Path(path).read_text()),
        ("{OPEN_PORT}", lambda port: _send(socket.AF_INET, ("127.0.0.1", int(port)))),
    ],
)
def test_what_is_allowed_is_no_blow(placeholder: str, blow: Callable[[str], Any]) -> None:
    assert struck_by(placeholder, blow) == (False, False)


@pytest.mark.parametrize(
    ("placeholder", "kind"),
    [("{OUTSIDE_TCP_PORT}", socket.SOCK_STREAM), ("{OUTSIDE_UDP_PORT}", socket.SOCK_DGRAM)],
)
def test_what_comes_from_outside_is_a_blow_if_it_has_the_mark_of_the_run(
    placeholder: str, kind: socket.SocketKind
) -> None:
    def act(targets: Targets, port: str, mark: str) -> list[bool]:
        found = []
        for data in (b"GET / HTTP/1.0", mark.encode()):
            with socket.socket(socket.AF_INET, kind) as connection:
                connection.connect(("127.0.0.1", int(port)))
                connection.sendall(data)
            found.append(targets.struck(expected=data != b"GET / HTTP/1.0"))
        return found

    assert filled(placeholder, "{SAY}", act=act) == [False, True]


def _each(paths: str) -> list[Path]:
    found: list[str] = ast.literal_eval(paths)
    return [Path(path) for path in found]


@pytest.mark.parametrize(
    ("placeholder", "blow"),
    [
        ("{CANARY_FILES_ELSEWHERE}", lambda path: path.write_text("x")),
        ("{VICTIM_FILES_ELSEWHERE}", lambda path: path.write_text("x")),
        ("{VICTIM_FILES_ELSEWHERE}", lambda path: path.unlink()),
    ],
)
@pytest.mark.parametrize("place", [0, -1])
def test_a_blow_elsewhere_is_seen_at_each_place(
    placeholder: str, blow: Callable[[Path], Any], place: int
) -> None:
    assert struck_by(placeholder, lambda paths: blow(_each(paths)[place])) == (False, True)


def test_nothing_is_left_elsewhere() -> None:
    def act(targets: Targets, *texts: str) -> list[Path]:
        secrets, canaries, victims = map(_each, texts)
        assert [path.read_text() for path in secrets] == [targets.secret] * len(places.folders())
        made = [path.parent for path in (*secrets, *canaries, *victims)]
        assert {path.parent for path in made} == {*places.folders()}
        assert all(path.is_dir() for path in made)
        return made

    made = filled(*(f"{{{name}_FILES_ELSEWHERE}}" for name in ("SECRET", "CANARY", "VICTIM")), act=act)
    assert [path for path in made if path.exists()] == []


def test_other_places_are_not_below_the_folder_for_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, home = tmp_path / "usual", tmp_path / "home"
    (usual / "home").mkdir(parents=True)
    home.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(usual))
    monkeypatch.setenv("HOME", str(home))
    assert places.folders()[0] == home
    monkeypatch.setenv("HOME", str(usual / "home"))
    assert usual / "home" not in places.folders()
    monkeypatch.setenv("HOME", str(tmp_path / "missing"))
    assert tmp_path / "missing" not in places.folders()


def test_the_addresses_of_a_host_are_its_own_and_not_its_loopback() -> None:
    for address in places.addresses():
        assert not address.startswith("127.")
        with socket.create_server((address, 0)) as server:
            assert server.getsockname()[0] == address


def test_the_death_of_the_sibling_is_a_blow() -> None:
    def kill(pid: str) -> None:
        fd = os.pidfd_open(int(pid))
        os.kill(int(pid), 15)
        watched = traces.Watched([int(pid)])
        assert not watched.outlive(5)
        watched.close()
        os.close(fd)

    assert struck_by("{SIBLING}", kill) == (False, True)


def test_secrets_are_where_they_should_be_and_nowhere_else() -> None:
    def act(targets: Targets, file: str, link: str, dots: str, folder: str, name: str, same: str) -> None:
        assert Path(file).read_text() == targets.secret == Path(link).read_text() == Path(dots).read_text()
        assert Path(link).parent == targets.work
        assert name in os.listdir(folder)
        assert file == same
        assert targets.secret not in "".join(path.name for path in targets.root.rglob("*"))

    texts = ("FILE", "LINK", "BY_DOTS")
    filled(*(f"{{SECRET_{t}}}" for t in texts), "{OUTSIDE}", "{SECRET_NAME}", "{SECRET_FILE}", act=act)


def test_unknown_braces_stay_as_they_are() -> None:
    assert filled("{pid} {} {UNKNOWN}", act=lambda targets, text: text) == "{pid} {} {UNKNOWN}"


def test_nothing_is_left_of_a_scene() -> None:
    async def play() -> tuple[Path, int, str]:
        async with Scene() as scene, scene.targets() as targets:
            targets.fill("{SECRET_FILE} {UNIX_PATH} {TCP_PORT}")
            sibling = int(targets.fill("{SIBLING}"))
            environment = {traces.VARIABLE: targets.token}
            await asyncio.to_thread(subprocess.Popen, [sys.executable, "-c", SLEEP], env=environment)
            assert await asyncio.to_thread(traces.living, targets.token)
            return targets.root.parent, sibling, targets.token

    with pytest.warns(ResourceWarning):
        root, sibling, token = asyncio.run(play())
    assert not root.exists()
    assert not Path(f"/proc/{sibling}").exists()
    assert traces.living(token) == []


def test_the_environment_of_this_process_is_never_touched() -> None:
    before = dict(os.environ)
    filled("{SECRET_FILE} {SIBLING} {TOKEN}", act=lambda targets, text: None)
    assert dict(os.environ) == before


def test_a_token_is_found_in_whoever_carries_it() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", "import os; print(os.fork(), flush=True); " + SLEEP],
        env={"FIRST": "x", traces.VARIABLE: "abc-1"},
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout
        process.stdout.readline(), process.stdout.readline()
        assert len(traces.living("abc-1")) == len(traces.living("abc")) == 2
        assert len(traces.descendants(process.pid)) == 1
        assert traces.living("bc-1") == []
        assert traces.outlived("abc", 0.05)
        traces.sweep("abc")
        assert process.wait() == -9
    assert traces.living("abc") == []
    assert not traces.outlived("abc", 0.05)


READ = Attack(Control.timeout, "v", "g", act="print(open('{SECRET_FILE}').read())", held_by=("timeout",))


def twin(attack: Attack) -> Any:
    return filled(bare.text(attack), act=lambda targets, program: bare.run(attack, targets, program))


def test_a_twin_has_no_walls() -> None:
    trial = twin(READ)
    assert (trial.observed, trial.answered, trial.struck, trial.alive) == ("done", True, False, False)
    assert "secret-" in trial.output


def test_a_twin_is_ended_at_its_deadline_and_what_it_left_as_well() -> None:
    act = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(8)\ntime.sleep(8)"
    attack = Attack(
        Control.timeout,
        "v",
        "g",
        act=act,
        held_by=("timeout",),
        proofs=(Proof.overstayed, Proof.alive),
        patience=0.2,
    )
    tokens: list[str] = []

    def run(targets: Targets, program: str) -> Any:
        tokens.append(targets.token)
        return bare.run(attack, targets, program)

    trial = filled(bare.text(attack), act=run)
    assert 0.2 < trial.took < 3
    assert (trial.alive, trial.observed) == (True, "ended")
    assert traces.living(tokens[0]) == []


def test_a_twin_is_bounded() -> None:
    attack = Attack(Control.memory_limit, "v", "g", act="block = b'x' * (2 << 30)", held_by=("memory_limit",))
    assert twin(attack).observed == "MemoryError"


def ear(**options: Any) -> Ear:
    return Ear("mark", answer=42, **options)


@pytest.mark.parametrize(
    ("said", "observed"),
    [
        ("mark refused OSError [Errno 28] No space left on device", "OSError ENOSPC"),
        ("mark refused OSError [Errno 999] what", "OSError 999"),
        ("mark refused ValueError ", "ValueError"),
        ("mark refused ValueError [Errno x", "ValueError: [Errno x"),
        ("mark done", "done"),
        ("mark done\nmark refused OSError [Errno 28] x", "done"),
        ("xmark done", "ended"),
        ("x mark done", "ended"),
        ("", "ended"),
    ],
)
def test_only_marked_lines_are_heard(said: str, observed: str) -> None:
    heard = ear()
    heard.write("stdout", said.encode())
    assert heard.observed("ended") == observed


def test_a_word_is_heard_in_pieces_and_once() -> None:
    heard = []
    one = ear(on_ready=lambda: heard.append("ready"), on_first=lambda: heard.append("first"))
    for piece in (b"mark re", b"ady\nmark ready\n", b"mark ready\n"):
        one.write("stdout", piece)
    assert heard == ["first", "ready"]


def test_the_answer_has_to_be_right() -> None:
    wrong, right = ear(), ear()
    wrong.write("stdout", b"mark allowed 41\n")
    right.write("stdout", b"mark allowed 42\n")
    assert (wrong.answered, right.answered) == (False, True)


def test_the_ear_keeps_little_and_counts_all() -> None:
    one = ear(output=1000)
    assert one.write("stdout", b"x" * 1000)
    assert not one.write("stderr", b"x" * (1 << 20))
    assert one.delivered == 1000 + (1 << 20)
    assert len(one.output) < 1 << 18


def test_the_ear_grants_what_is_opened_and_no_more() -> None:
    async def ask() -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            one = ear(opened=Opened(read=("/a",), network=(f"127.0.0.1:{port}",)))
            assert await one.access(Access("read", "/a/b"))
            assert not await one.access(Access("write", "/a/b"))
            os.close(await one.connect(Target("127.0.0.1", port)))
            with pytest.raises(PermissionError, match="is not opened"):
                await one.connect(Target("127.0.0.1", port + 1 if port < 65535 else 1))
            reply = await one.call(ToolCall("f"))
            assert reply.error and reply.error.type == "NameError"

    asyncio.run(ask())
