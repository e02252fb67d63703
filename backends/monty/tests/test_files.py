"""Files as code in Monty uses them: opened ones through the view, all others refused."""

import asyncio
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from licet import plan as plans
from licet.backend import Access, Outcome, Termination, execute
from licet.plan import ExecutionPlan, Opened
from licet.request import Limits, Mount
from licet.testing.host import RecordingHost
from licet_monty.backend import MontyBackend

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="files are opened on Linux alone so far")


@dataclass
class Host(RecordingHost):
    """Grants what the plan opens, and keeps what it was asked."""

    accesses: list[Access] = field(default_factory=list)

    async def access(self, access: Access) -> bool:
        self.accesses.append(access)
        return await super().access(access)


class Ground:
    def __init__(self, root: Path, backend: MontyBackend) -> None:
        self.root = root
        self.backend = backend
        self.host = Host()
        (root / "data").mkdir()
        (root / "out").mkdir()
        (root / "data" / "a.txt").write_bytes(b"one\r\ntwo\rthree\n\xc3\xa9")
        (root / "data" / "raw").write_bytes(b"\xff\x00")
        self.opened = Opened(read=(str(root / "data"),), write=(str(root / "out"), str(root / "data")))

    def run(self, code: str, *, mounts: tuple[Mount, ...] = (), **limits: Any) -> Outcome:
        self.host = Host(opened=self.opened)
        plan = plans.seal(
            ExecutionPlan(
                run_id="01TEST",
                backend="monty",
                code=code,
                inputs={},
                stdin=b"",
                environment={},
                workdir=str(self.root),
                limits=Limits(wall_time=20.0, **limits),
                opened=self.opened,
                contract=self.backend.describe().sandbox_enforcement_contract,
                plan_digest="sha256:0",
                policy_class="tests",
                files=mounts,
            )
        )
        return asyncio.run(execute(self.backend, plan, self.host))

    def value(self, code: str, **how: Any) -> Any:
        outcome = self.run(code, **how)
        assert outcome.succeeded, outcome
        return outcome.value

    def staged(self, code: str, **how: Any) -> dict[str, bytes | None]:
        outcome = self.run(code, **how)
        assert outcome.succeeded and outcome.staged is not None, outcome
        return {
            os.path.relpath(edit.path, self.root): b"".join(edit.content.chunks()) if edit.content else None
            for edit in outcome.staged.edits
        }


@pytest.fixture
def ground(tmp_path: Path, backend: MontyBackend) -> Iterator[Ground]:
    yield Ground(Path(os.path.realpath(tmp_path)), backend)


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("open('data/a.txt').read()", "one\ntwo\nthree\né"),
        ("[line for line in open('data/a.txt')]", ["one\n", "two\n", "three\n", "é"]),
        ("open('data/a.txt', 'rb').read()", b"one\r\ntwo\rthree\n\xc3\xa9"),
        ("from pathlib import Path\nPath('data/raw').read_bytes()", b"\xff\x00"),
        ("import os\nsorted(os.listdir('data'))", ["a.txt", "raw"]),
        ("from pathlib import Path\n[str(p) for p in Path('data').glob('*.txt')]", ["data/a.txt"]),
        ("import os\n[list(one) for one in os.walk('data')]", [["data", [], ["a.txt", "raw"]]]),
        (
            "import os\n[os.path.exists('data/x'), os.path.isfile('data/raw'), os.path.isdir('data')]",
            [False, True, True],
        ),
        ("import os\nos.path.getsize('data/raw')", 2),
        ("from pathlib import Path\nstr(Path('data/../data/raw').resolve())", "{root}/data/raw"),
        ("import os\nos.chdir('data')\nopen('raw', 'rb').read()", b"\xff\x00"),
        ("from pathlib import Path\nPath('data/none').unlink(missing_ok=True)", None),
    ],
)
def test_what_is_opened_is_read(ground: Ground, code: str, value: Any) -> None:
    expected = value.format(root=ground.root) if isinstance(value, str) else value
    assert ground.value(code) == expected


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("open('data/none')", "FileNotFoundError"),
        ("open('data')", "IsADirectoryError"),
        ("open('data/raw').read()", "UnicodeDecodeError"),
        ("import os\nos.mkdir('data')", "FileExistsError"),
        ("import os\nos.listdir('data/raw')", "NotADirectoryError"),
        ("import os\nos.rmdir('data/x')", "FileNotFoundError"),
        ("open('data/raw/x', 'w')", "NotADirectoryError"),
        ("open('/etc/passwd')", "PermissionError"),
        ("open('beside', 'w')", "PermissionError"),
        ("import os\nos.rename('data/raw', 'beside')", "PermissionError"),
        ("import os\nos.rmdir('data')", "PermissionError"),
    ],
)
def test_errors_are_those_of_python(ground: Ground, code: str, kind: str) -> None:
    outcome = ground.run(code)
    assert outcome.error is not None and outcome.error.type == kind
    caught = "\n".join(f"    {line}" for line in code.splitlines())
    again = (
        f"try:\n{caught}\nexcept {'ValueError' if kind.startswith('Unicode') else kind} as e:\n    x = 1\nx"
    )
    assert ground.value(again) == 1


def test_writes_are_staged_and_seen(ground: Ground) -> None:
    code = """
import os
from pathlib import Path
with open('out/log', 'w') as f:
    for n in range(3):
        f.write(f'{n}\\n')
with open('data/a.txt', 'ab') as f:
    f.write(b'!')
os.makedirs('out/x/y', exist_ok=True)
Path('out/x/y/z').write_bytes(b'z')
os.rename('out/x', 'out/w')
Path('data/raw').unlink()
seen = [open('out/log').read(), open('data/a.txt', 'rb').read()[-1:], sorted(os.listdir('data'))]
"""
    assert ground.staged(code) == {
        "data/a.txt": b"one\r\ntwo\rthree\n\xc3\xa9!",
        "data/raw": None,
        "out/log": b"0\n1\n2\n",
        "out/w": None,
        "out/w/y": None,
        "out/w/y/z": b"z",
    }
    assert ground.value(f"{code}seen") == ["0\n1\n2\n", b"!", ["a.txt"]]
    assert sorted(os.listdir(ground.root / "data")) == ["a.txt", "raw"]
    assert os.listdir(ground.root / "out") == []


def test_each_access_surfaces_once(ground: Ground) -> None:
    ground.value(
        "f = open('out/log', 'w')\nfor n in range(100):\n    f.write('x')\nopen('data/raw', 'rb').read()"
    )
    asked = [(one.action, os.path.relpath(one.target, ground.root)) for one in ground.host.accesses]
    assert asked == [("write", "out/log"), ("read", "data/raw")]


@pytest.mark.parametrize(
    "code",
    [
        "f = open('out/x', 'w')\nwhile True:\n    f.write('x' * 10000)",
        "n = 0\nwhile True:\n    open(f'out/{n}', 'w').write('x' * 10000)\n    n += 1",
        "from pathlib import Path\nPath('out/x').write_bytes(b'x' * 100001)",
    ],
)
def test_the_limit_of_files_ends_the_run(ground: Ground, code: str) -> None:
    outcome = ground.run(code, files=100_000)
    assert outcome.termination is Termination.file_limit
    assert ground.staged(
        "from pathlib import Path\nPath('out/x').write_bytes(b'x' * 100000) and None", files=100_000
    )


def test_a_file_of_the_request_has_its_own_name(ground: Ground) -> None:
    (ground.root / "elsewhere").write_text("a,b")
    ground.opened = Opened(read=(str(ground.root / "elsewhere"),))
    mount = Mount(str(ground.root / "in.csv"), str(ground.root / "elsewhere"))
    outcome = ground.run("import os\n[open('in.csv').read(), os.path.isfile('in.csv')]", mounts=(mount,))
    assert outcome.value == ["a,b", True]
    refused = ground.run("open('in.csv', 'w')", mounts=(mount,))
    assert refused.error is not None and refused.error.type == "PermissionError"
    ground.opened = Opened(read=(str(ground.root),), write=(str(ground.root),))
    refused = ground.run("open('in.csv', 'w')", mounts=(mount,))
    assert refused.error is not None and "can only be read" in refused.error.message


def test_a_pipe_does_not_hold_the_run(ground: Ground) -> None:
    os.mkfifo(ground.root / "data" / "pipe")
    outcome = ground.run("open('data/pipe').read()")
    assert outcome.error is not None and outcome.error.type == "PermissionError"


BOMB = """
import os
from pathlib import Path
bomb = ()
for _ in range(40):
    bomb = (bomb, bomb)
bomb = [bomb]
"""
CALLS = (
    "open(bomb)",
    "open('data/a.txt', bomb)",
    "open('data/a.txt', encoding=bomb)",
    "open('data/a.txt', newline=bomb)",
    "open('out/x', 'w').write(bomb)",
    "open('data/a.txt').read(bomb)",
    "Path('out/x').write_text(bomb)",
    "Path('out/x').write_bytes(bomb)",
    "Path('data').rename(bomb)",
    "Path('out/x').mkdir(bomb)",
    "Path('out/x').mkdir(parents=bomb, exist_ok=bomb)",
    "Path('out/y').unlink(missing_ok=bomb)",
    "Path('data').glob(bomb)",
    "Path('data').glob('*', case_sensitive=bomb, recurse_symlinks=bomb)",
    "list(Path('data').walk(bomb, bomb, bomb))",
    "list(os.walk('data', bomb, bomb, bomb))",
    "os.makedirs('out/z', exist_ok=bomb)",
    "os.stat('data', follow_symlinks=bomb)",
    "os.scandir(bomb)",
    "os.listdir(bomb)",
    "os.rename('data/raw', bomb)",
    "os.chdir(bomb)",
)


def test_no_argument_is_built_that_monty_has_not_checked(ground: Ground) -> None:
    """Reading a tuple of forty shared levels would take the host for ever: it never gets that far."""
    for call in CALLS:
        tried = f"{BOMB}try:\n    {call}\nexcept (TypeError, OSError, ValueError):\n    pass\n1"
        assert ground.value(tried) == 1, call
