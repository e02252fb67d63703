"""Reports about directories and paths: the one that was looked at is the one that is entered, or none is."""

from __future__ import annotations

import os
import random
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from licet import Intent, Termination
from licet.errors import InvalidRequest
from licet.record import Entry, MemoryLog, Record
from licet.supervise import Reason, Snippet, Spec, run_blocking

CPYTHON = "controlled_process"
pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX paths and links")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A directory that no policy here opens, with one file in it."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("s1")
    return outside


def test_report_workdir_paths_02_links(on: Any, naive: Any, outside: Path) -> None:
    work = Path.cwd()
    (work / "link").symlink_to(outside)
    (work / "secret").symlink_to(outside / "secret")
    (work / "own").write_text("mine")
    (work / "alias").symlink_to(work / "own")
    assert naive("print(open('link/secret').read())").stdout == b"s1\n"
    runtime = on("monty", f"allow: [read {work}]")
    for code in ("open('link/secret').read()", "open('secret').read()"):
        result = runtime.run_sync(code)
        assert (result.termination, result.value) == (Termination.policy_denied, None)
        assert result.detail == f"`read {outside / 'secret'}` is denied: nothing allows it"
    # the directory of the run may be a link itself; what counts is where it leads
    result = runtime.run_sync("open('secret').read()", workdir=str(work / "link"))
    assert result.detail == f"`read {outside / 'secret'}` is denied: nothing allows it"
    # code that hides the path meets the sandbox
    hidden = runtime.run_sync("name = '/'.join(['link', 'secret'])\nopen(name).read()")
    assert hidden.error is not None and hidden.error.type == "PermissionError"
    assert runtime.run_sync("open('alias').read()").value == "mine"


@pytest.mark.parametrize("runs", [50, pytest.param(500, marks=pytest.mark.soak)])
def test_report_workdir_paths_03_exchanged_on_the_way(on: Any, naive: Any, outside: Path, runs: int) -> None:
    """`work/place` flips between a directory and a link while runs start in it; they write where they are."""
    place, kept = Path.cwd() / "place", Path.cwd() / "kept"
    place.mkdir()
    (Path.cwd() / "link").symlink_to(outside)
    before = os.stat(outside).st_mtime_ns
    stop = threading.Event()
    pause = random.Random(3)

    def flip() -> None:
        while not stop.wait(pause.uniform(0, 0.004)):
            place.rename(kept)
            (Path.cwd() / "link").rename(place)
            stop.wait(pause.uniform(0, 0.004))
            place.rename(Path.cwd() / "link")
            kept.rename(place)

    runtime = on(CPYTHON)
    flipping = threading.Thread(target=flip)
    flipping.start()
    endings: set[str] = set()
    try:
        for _ in range(runs):
            endings.add(_ending(runtime, place, outside))
    finally:
        stop.set()
        flipping.join()
    assert [path.name for path in outside.iterdir()] == ["secret"]
    assert os.stat(outside).st_mtime_ns == before
    assert endings <= {"wrote inside", "no such directory", "a link was found", "outside by name"}
    assert "wrote inside" in endings
    naive("open('mark', 'w').close()", cwd=Path.cwd() / "link")  # what following the link would have done
    assert (outside / "mark").exists()


def _ending(runtime: Any, place: Path, outside: Path) -> str:
    """What became of one run; one whose directory was a link when it was asked for may not write."""
    code = "import os\nhere = os.getcwd()\nif not here.endswith('outside'): open('mark', 'w').close()\nhere"
    try:
        result = runtime.run_sync(code, workdir=str(place))
    except InvalidRequest:
        return "no such directory"
    if result.termination is Termination.launch_failed:
        assert "can't be entered" in result.detail
        return "a link was found"
    assert result.termination is Termination.exited
    if result.value == str(outside):  # the link was seen, and its target is what was decided on and recorded
        return "outside by name"
    return "wrote inside"


def test_report_workdir_paths_03_a_link_in_the_place_of_the_directory(outside: Path) -> None:
    (Path.cwd() / "place").symlink_to(outside)
    ended = run_blocking(
        Spec(Snippet("open('mark', 'w')"), str(Path.cwd() / "place")), lambda stream, data: True
    )
    assert ended.reason is Reason.launch_failed
    why = "a symbolic link is on the way"
    assert ended.detail == f"working directory `{Path.cwd() / 'place'}` can't be entered: {why}"
    assert not (outside / "mark").exists()


@pytest.mark.parametrize("path", ["new/../../x", "new/deep/../../../x", "./new/../../outside/x", "loop/x"])
def test_report_workdir_paths_04_what_is_not_there_yet(on: Any, path: str) -> None:
    work = Path.cwd()
    (work / "loop").symlink_to(work / "loop")
    runtime = on("monty", f"allow: [write {work}, read {work}]")
    if "loop" in path:
        with pytest.raises(InvalidRequest, match="its symbolic links form a loop"):
            runtime.decide("1", intents=(Intent("write", path),))
        return
    [_, verdict] = runtime.decide("1", intents=(Intent("write", path),)).verdicts
    assert (verdict.effect, verdict.intent.target) == ("deny", os.path.normpath(work / path))
    result = runtime.run_sync(f"open({path!r}, 'w').write('x')")
    assert result.termination is Termination.policy_denied
    inside = runtime.decide("1", intents=(Intent("write", "new/deep/x"),))
    assert [v.effect for v in inside.verdicts] == ["allow", "allow"]
    assert not (work.parent / "x").exists()


@pytest.mark.parametrize("name", ["does-not-exist", "file", "file/below", ""])
def test_report_workdir_paths_07_no_directory(on: Any, backend: str, name: str) -> None:
    Path("file").write_text("")
    with pytest.raises(InvalidRequest, match=f"^`workdir` `{name}` can't be used: ") as refused:
        on(backend).run_sync("print('ran')", workdir=name)
    why = "it is empty" if name == "" else "there is no such directory, or this user can't see it"
    assert str(refused.value).endswith(why)


class RemovingLog(MemoryLog):
    """Removes a directory when the start of a run is recorded, the last thing that happens before it."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.directory = directory

    async def append(self, entries: Sequence[Entry]) -> tuple[Record, ...]:
        if any(entry.phase == "before" for entry in entries):
            self.directory.rmdir()
        return await super().append(entries)


def test_report_workdir_paths_07_removed_on_the_way(on: Any) -> None:
    gone = Path.cwd() / "gone"
    gone.mkdir()
    result = on(CPYTHON, log=RemovingLog(gone)).run_sync("print('ran')", workdir=str(gone))
    assert (result.termination, result.stdout) == (Termination.launch_failed, "")
    assert result.detail == f"working directory `{gone}` can't be entered: no such file or directory"


def test_report_workdir_paths_07_that_may_not_be_entered() -> None:
    with tempfile.TemporaryDirectory() as above:
        os.chmod(above, 0o755)
        closed = Path(above, "closed")
        closed.mkdir(mode=0)
        detail = as_somebody(lambda: run_blocking(Spec(Snippet("1"), str(closed)), lambda *_: True).detail)
    assert detail == f"working directory `{closed}` can't be entered: permission denied"


def as_somebody(question: Any) -> str:
    """Ask in a child that is an ordinary user; what is needed is imported already."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            os.write(write, str(question()).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return text
