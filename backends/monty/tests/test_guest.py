"""What code is told by its surroundings: environment, files, time, randomness."""

from __future__ import annotations

from typing import Any

import pytest
from licet.backend import Access, GuestError
from licet.request import Limits


def test_the_environment_is_the_plans(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "s3cret")
    code = """
import os
[os.getenv("LANG"), os.getenv("SECRET"), os.getenv("SECRET", "none"), sorted(os.environ),
 "SECRET" in os.environ, os.environ.get("SECRET"), os.environ["LANG"]]"""
    outcome = run(code, environment={"LANG": "C"})
    assert outcome.value == ["C", None, "none", ["LANG"], False, None, "C"]
    assert run("import os\nos.getenv('HOME')").value is None


def test_getenv_reads_literal_texts_alone(run: Any) -> None:
    for call in ("os.getenv(name)", "os.getenv('A', [])", "eval('os.getenv(\"A\")')", "os.getenv(*['A'])"):
        outcome = run(f"import os\nname = 'A'\n{call}", environment={"A": "1"})
        assert outcome.error.type == "NotImplementedError"
        assert "os.environ.get" in outcome.error.message


@pytest.mark.parametrize(
    ("code", "accesses"),
    [
        ("open('/etc/passwd')", [Access("read", "/etc/passwd")]),
        ("open('a/../b', 'w')", [Access("write", "/home/work/b")]),
        ("open('b', 'ab')", [Access("write", "/home/work/b")]),
        ("import os\nos.listdir('/')", [Access("read", "/")]),
        ("import os\nos.path.exists('/etc')", [Access("read", "/etc")]),
        ("import os\nos.remove('x')", [Access("write", "/home/work/x"), Access("write", "/home/work")]),
        ("import os\nos.rmdir('x')", [Access("write", "/home/work/x"), Access("write", "/home/work")]),
        (
            "import os\nos.rename('x', '/y/z')",
            [Access("write", path) for path in ("/home/work/x", "/home/work", "/y/z", "/y")],
        ),
        ("import os\nos.makedirs('x/y')", [Access("write", "/home/work/x/y")]),
        ("import os\nos.chdir('/tmp')", [Access("read", "/tmp")]),
        ("from pathlib import Path\nPath('x').write_text('y')", [Access("write", "/home/work/x")]),
        ("from pathlib import Path\nPath('x').read_bytes()", [Access("read", "/home/work/x")]),
        ("from pathlib import Path\nPath('x').resolve()", [Access("read", "/home/work/x")]),
        (
            "from pathlib import Path\nPath('x').unlink()",
            [Access("write", "/home/work/x"), Access("write", "/home/work")],
        ),
    ],
)
def test_every_file_access_surfaces_and_is_refused(
    code: str, accesses: list[Access], run: Any, host: Any
) -> None:
    outcome = run(code, host)
    assert outcome.error.type == "PermissionError"
    assert "(this run may not " in outcome.error.message
    assert host.accesses == accesses


def test_listing_what_is_refused_finds_nothing(run: Any, host: Any) -> None:
    code = "import os\nfrom pathlib import Path\n[list(Path('/etc').glob('*')), list(os.walk('/etc'))]"
    assert run(code, host).value == [[], []]
    assert host.accesses == [Access("read", "/etc"), Access("read", "/etc")]


def test_a_host_that_allows_an_access_opens_nothing_that_the_plan_does_not(run: Any, make_host: Any) -> None:
    class Generous(make_host):  # type: ignore[misc]
        async def access(self, access: Access) -> bool:
            return True

    assert run("open('/etc/passwd')", Generous()).error.type == "FileNotFoundError"


def test_paths_are_the_plans(run: Any) -> None:
    code = """
import os
from pathlib import Path
[os.getcwd(), f'{Path("x").absolute()}', os.path.abspath('..')]"""
    assert run(code).value == ["/home/work", "/home/work/x", "/home"]


def test_sleeps_in_tasks_overlap(run: Any) -> None:
    code = """
import asyncio
async def nap(seconds):
    await asyncio.sleep(seconds)
    return seconds
await asyncio.gather(nap(0.2), nap(0.1), nap(0.2))"""
    outcome = run(code)
    assert outcome.value == [0.2, 0.1, 0.2]
    assert 0.2 <= outcome.usage.wall_time < 0.45


def test_clock_and_randomness_are_real(run: Any) -> None:
    code = "import os, random, time\n[time.time() > 1.7e9, random.random(), len(os.urandom(5))]"
    first, second = run(code).value, run(code).value
    assert (first[0], first[2]) == (True, 5)
    assert first[1] != second[1]
    assert run("import os\nos.urandom(2 ** 21)").error.type == "ValueError"


def test_inputs_are_names_of_the_code(run: Any) -> None:
    inputs = {"orders": [{"id": 1, "tags": ("a", {"b"})}], "limit": 2.5, "empty": None}
    assert run("[orders, limit, empty]", inputs=inputs).value == [inputs["orders"], 2.5, None]


def test_code_of_any_shape_keeps_its_lines(run: Any) -> None:
    code = "# -*- coding: latin-1 -*-\n\n'''doc\n\\'''\n'''\nx = 1; (x +\n 1/0)"
    assert run(code).error == GuestError("ZeroDivisionError", "division by zero", 7)
    assert run("x = 1\r\n1/0\r\n").error.line == 2


def test_a_limit_of_memory_holds_for_each_run_anew(run: Any) -> None:
    for _ in range(5):
        code = "x = 'a' * 5_000_000\nlen(x)"
        assert run(code, limits=Limits(wall_time=5.0, memory=8 << 20)).value == 5_000_000
