"""What code writes, from its request to the host: committed, refused or dropped, and recorded."""

import asyncio
import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli import licet
from licet import Runtime
from licet.backend import Descriptor, Host, Language, Outcome, Sandbox, Termination
from licet.contract import Control, Enforcement, Level, SandboxEnforcementContract
from licet.plan import ExecutionPlan
from licet.record import MemoryLog
from licet.result import ExecutionResult
from licet.writes.journal import Journal
from licet.writes.view import FileView

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="files are written on Linux alone so far")

POLICY = """
licet: 1
extends: licet:compute
allow: [read ./data, write ./data, write ./out]
deny: [read ./data/secret, write ./data/secret]
sandbox: {evidence: declared}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = Path(os.path.realpath(tmp_path)) / "p"
    for folder in (root, root / "data", root / "data" / "secret", root / "out"):
        folder.mkdir()
    (root / "data" / "a").write_text("one")
    (root / "p.yaml").write_text(POLICY)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    monkeypatch.chdir(root)
    return root


class Ran:
    """A runtime with a log in memory."""

    def __init__(self, project: Path, **options: Any) -> None:
        self.log = MemoryLog()
        self.runtime = Runtime(project / "p.yaml", log=self.log, managed=project / "none", **options)

    def run(self, code: str, **fields: Any) -> ExecutionResult:
        return self.runtime.run_sync(code, **fields)

    def bodies(self, kind: str) -> list[Any]:
        return [record.entry.body for record in self.log.records() if record.entry.kind == kind]


@pytest.fixture
def ran(project: Path) -> Iterator[Ran]:
    ran = Ran(project)
    with ran.runtime:
        yield ran


def test_a_good_end_writes_and_tells(project: Path, ran: Ran) -> None:
    code = "f = open('data/a', 'a')\nf.write('!')\nopen('out/r.json', 'w').write('{}')\n1"
    result = ran.run(code)
    assert (result.success, result.value, result.usage.bytes_written) == (True, 1, 6)
    assert ((project / "data" / "a").read_text(), (project / "out" / "r.json").read_text()) == ("one!", "{}")
    told = result.as_json()["artifacts"]
    assert told == [
        {
            "path": str(project / "data" / "a"),
            "bytes": 4,
            "sha256": hashlib.sha256(b"one!").hexdigest(),
            "media_type": "application/octet-stream",
        },
        {
            "path": str(project / "out" / "r.json"),
            "bytes": 2,
            "sha256": hashlib.sha256(b"{}").hexdigest(),
            "media_type": "application/json",
        },
    ]
    [commit] = ran.bodies("commit")
    assert [(one["path"], one["change"], one["bytes"]) for one in commit["changes"]] == [
        (str(project / "data" / "a"), "replace", 4),
        (str(project / "out" / "r.json"), "create", 2),
    ]
    assert all(one["digest"].startswith("hmac-sha256:") for one in commit["changes"])
    kinds = [record.entry.kind for record in ran.log.records()]
    assert kinds[-2:] == ["commit", "result"]
    [recorded] = ran.bodies("result")
    assert (recorded["writes"], recorded["success"]) == ("committed", True)


@pytest.mark.parametrize(
    ("last", "termination"),
    [
        ("1 / 0", Termination.exited),
        ("while True: pass", Termination.timeout),
        ("while True: print('x' * 100000)", Termination.output_limit),
        ("while True: open('out/more', 'a').write('x' * 100000)", Termination.file_limit),
    ],
)
def test_any_other_end_writes_nothing(project: Path, ran: Ran, last: str, termination: Termination) -> None:
    limits = {"wall_time": 3.0, "files": 1 << 20, "output": 1 << 20}
    result = ran.run(f"open('out/x', 'w').write('x')\n{last}", limits=limits)
    assert (result.success, result.termination, result.artifacts) == (False, termination, ())
    assert os.listdir(project / "out") == []
    assert ran.bodies("commit") == []
    assert ran.bodies("result")[0]["writes"] == "dropped"
    said = "what it wrote was dropped, since it did not end well"
    assert (result.detail == said) == (termination is Termination.exited)


def test_a_target_that_changed_meanwhile_is_left_alone(project: Path, ran: Ran) -> None:
    def meddle() -> None:
        (project / "data" / "a").write_text("theirs")

    view_code = "f = open('data/a', 'a')\nf.write('!')\nopen('out/x', 'w').write('x')"
    original = FileView.staged

    def staged(self: FileView) -> Any:
        found = original(self)
        if found.edits:
            meddle()
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FileView, "staged", staged)
        result = ran.run(view_code)
    assert (result.success, result.termination, result.exit_code) == (False, Termination.exited, 0)
    assert result.process_exit_code == 1
    why = f"`{project}/data/a` was changed by others while the code ran, so nothing was written"
    assert result.detail == why
    assert (project / "data" / "a").read_text() == "theirs" and os.listdir(project / "out") == []
    [recorded] = ran.bodies("result")
    assert (recorded["writes"], recorded["writes_refused"], recorded["success"]) == ("refused", why, False)


def test_what_policy_keeps_is_not_written(project: Path, ran: Ran) -> None:
    for code in (
        "open(name, 'w').write('x')",
        "import os\nos.rename('data/a', name)",
        "import os\nos.makedirs(name)",
    ):
        for name in ("data/secret/x", "p.yaml", ".licet/x", "data/../p.yaml"):
            result = ran.run(code, inputs={"name": name})
            assert result.error is not None and result.error.type == "PermissionError", (code, name)
    assert (project / "p.yaml").read_text() == POLICY and os.listdir(project / "data" / "secret") == []


def test_the_state_directory_and_the_policy_stay_closed_inside_what_is_opened(project: Path) -> None:
    (project / "p.yaml").write_text(POLICY.replace("write ./out", "write ., read ."))
    ran = Ran(project)
    with ran.runtime:
        result = ran.run(
            "import os\nopen('new', 'w').write('x')\nsorted(os.listdir(where))", inputs={"where": "."}
        )
        assert result.success, result
        assert result.value == ["data", "new", "out"]
        for name in ("p.yaml", ".licet/journal/x.json", ".licet"):
            refused = ran.run("open(name, 'w')", inputs={"name": name})
            assert refused.error is not None and refused.error.type == "PermissionError", name


class Boaster:
    """A backend that hands over an edit outside of what is opened."""

    def __init__(self, outside: Path) -> None:
        self._outside = outside

    def describe(self) -> Descriptor:
        claim = Enforcement(Level.enforced, "kernel", "a test")
        contract = SandboxEnforcementContract(**{control.value: claim for control in Control})
        return Descriptor("boaster", "1", contract, Language("Boaster"), frozenset({"read", "write"}))

    async def open(self, plan: ExecutionPlan, host: Host) -> Sandbox:
        return self

    async def run(self, plan: ExecutionPlan, host: Host) -> Outcome:
        from licet.plan import Opened

        view = FileView(Opened(read=("/",), write=("/",)), lambda action, path: True)
        view.write(str(self._outside), b"x")
        return Outcome(Termination.exited, exit_code=0, staged=view.staged())

    async def close(self) -> None:
        return


def test_core_believes_no_backend(project: Path) -> None:
    ran = Ran(project, backends=[Boaster(project / "outside")])
    with ran.runtime:
        result = ran.run("1")
    assert (result.success, result.detail) == (
        False,
        f"`{project}/outside` is not opened to be written, so nothing was written",
    )
    assert not (project / "outside").exists()


def test_a_file_by_another_name(project: Path) -> None:
    done = licet(
        "run", "--policy", "p.yaml", "--json", "--file", "in.csv=data/a", "-c", "open('in.csv').read()"
    )
    result = done.json
    assert (result["success"], result["value"]) == (True, "one")
    card = licet("run", "--policy", "p.yaml", "--file", "in.csv=data/a", "-c", "open('in.csv').read()").err
    assert card.count(f"read {project}/data/a ") == 1  # declared by the option, and seen in the code
    narrowed = licet("run", "--policy", "p.yaml", "--file", "in.csv=data/a", "-c", "open('data/b')")
    assert narrowed.code == 3 and "not declared" in narrowed.err
    denied = licet("run", "--policy", "p.yaml", "--file", "k=data/secret/key", "-c", "open('k')")
    assert denied.code == 3
    closed = licet("run", "--file", "k=data/a", "-c", "open('k')")
    assert (closed.code, closed.err.count("add `allow: [read")) == (3, 1)
    for wrong in ("in.csv", "=data/a", "in.csv="):
        assert licet("run", "--policy", "p.yaml", "--file", wrong, "-c", "1").code == 2
    assert licet("run", "--policy", "p.yaml", "--file", "a/b=data/a", "-c", "1").code == 2


def test_a_backend_that_shows_no_file_at_another_path_is_not_chosen(project: Path) -> None:
    ran = Ran(project, backends=[Boaster(project / "outside")])
    with ran.runtime:
        result = ran.run("1", files={"in.csv": "data/a"})
    assert result.termination is Termination.no_backend
    assert result.decision is not None
    [candidate] = result.decision.selection.candidates
    assert [blocker.what for blocker in candidate.blockers] == ["files"]


def test_the_name_of_a_file_is_part_of_the_plan(project: Path, ran: Ran) -> None:
    (project / "data" / "b").write_text("two")
    explained = [
        ran.runtime.decide("open('x').read()", files=files).plan_digest
        for files in ({"x": "data/a"}, {"x": "data/b"}, {"x": "data/a", "y": "data/a"})
    ]
    assert len(set(explained)) == 3


DYING = """
import os, signal
from pathlib import Path
from licet import Runtime
from licet.writes import commit
real = commit._take_place
def once(*given):
    real(*given)
    os.kill(os.getpid(), signal.SIGKILL)
commit._take_place = once
with Runtime("p.yaml", managed=Path("none")) as runtime:
    print(runtime.run_sync("open('data/a', 'w').write('new')\\nopen('out/x', 'w').write('x')"))
"""


def test_a_commit_that_died_is_put_in_order_by_the_next_run(project: Path) -> None:
    """The process is killed when the first of two files is in place."""
    died = subprocess.run([sys.executable, "-c", DYING], capture_output=True, timeout=60, text=True)
    assert (died.returncode, died.stderr) == (-signal.SIGKILL, "")
    assert (project / "data" / "a").read_text() == "new"
    journal = Journal(project / ".licet" / "journal")
    [(run_id, _)] = journal.entries()

    with Runtime(project / "p.yaml", managed=project / "none") as runtime:
        result = runtime.run_sync("open('data/a').read()")
    assert result.value == "one" and journal.is_empty
    assert sorted(os.listdir(project / "data")) == ["a", "secret"] and os.listdir(project / "out") == []
    assert "replace" in licet("audit", "show", run_id).out
    lines = [
        json.loads(line)
        for path in sorted((project / ".licet" / "log").glob("*.jsonl"))
        for line in path.read_text().splitlines()
    ]
    [event] = [one for one in lines if one["body"].get("event") == "writes_recovered"]
    assert (event["body"]["run"], event["body"]["outcome"], event["run_id"]) == (run_id, "undone", "")
    assert sorted(event["body"]["paths"]) == [str(project / "data" / "a"), str(project / "out" / "x")]
    assert licet("audit", "verify").code == 0


def test_a_cancelled_commit_is_brought_to_its_end(project: Path, ran: Ran) -> None:
    """Whoever cancels while files are written finds all of them written, and recorded."""

    async def main() -> None:
        began = asyncio.Event()
        loop = asyncio.get_running_loop()
        commits = ran.runtime._pipeline.commits
        real = commits._commit

        def slow(*given: Any) -> None:
            loop.call_soon_threadsafe(began.set)
            real(*given)

        commits._commit = slow  # type: ignore[method-assign]
        run = asyncio.ensure_future(
            ran.runtime.run("open('out/x', 'w').write('x')\nopen('out/y', 'w').write('y')")
        )
        await began.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run

    asyncio.run(main())
    assert sorted(os.listdir(project / "out")) == ["x", "y"]
    assert ran.bodies("result")[0]["writes"] == "committed"
