"""Interpreters and packages in a jail: shown where policy names them, read-only, and nothing beside them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from licet import supervise
from licet.supervise.jail import Installation, Jail, JailLauncher, needs
from licet.supervise.probe import probe_interpreter

Run = Callable[..., tuple[Any, str | None]]
OTHERS = ("/usr/bin/python3", "/usr/local/bin/python3")


@pytest.fixture
def given(launcher: JailLauncher, tmp_path: Path) -> Run:
    """Run code with packages, in a jail; returns its value and the type of its error."""

    def run(
        code: str,
        *folders: Path,
        of: Installation | None = None,
        jail: dict[str, Any] | None = None,
    ) -> tuple[Any, str | None]:
        packages = tuple(map(str, folders))
        made_of = needs(packages, of)
        work = tmp_path / "work"
        work.mkdir(exist_ok=True)
        spec = supervise.Spec(
            supervise.Snippet(code, packages=packages),
            workdir=str(work),
            interpreter=made_of.program,
            jail=Jail(made_of, str(work), **(jail or {})),
            wall_time=20.0,
        )
        ended = supervise.run_blocking(spec, lambda stream, data: True, None, launcher)
        ended.drop()
        error = ended.report.error
        return ended.report.value, None if error is None else error.type

    return run


def package(folder: Path, text: str = "answer = 42\n") -> Path:
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    (folder / "alpha.py").write_text(text)
    (folder / "data.txt").write_text("data")
    return folder


def test_packages_are_shown_and_can_not_be_changed(given: Run, tmp_path: Path) -> None:
    folder = package(tmp_path / "store" / "one")
    beside = package(tmp_path / "store" / "two", "secret = 1\n")
    assert given("import alpha\nalpha.answer", folder) == (42, None)
    assert given("import alpha", beside.parent)[1] == "ModuleNotFoundError"
    assert given(f"open('{folder}/data.txt').read()", folder) == ("data", None)
    assert given(f"open('{beside}/data.txt')", folder)[1] == "FileNotFoundError"
    assert given(f"import os\nos.listdir('{folder.parent}')", folder) == (["one"], None)
    for act in (
        f"open('{folder}/alpha.py', 'a')",
        f"import os\nos.unlink('{folder}/alpha.py')",
        f"open('{folder}/new.py', 'w')",
        f"import os\nos.chmod('{folder}', 0o777)",
    ):
        assert given(act, folder) == (None, "OSError"), act  # a read-only file system


def test_they_stay_shown_and_unwritable_inside_what_is_opened_or_hidden(given: Run, tmp_path: Path) -> None:
    folder = package(tmp_path / "store" / "one")
    above = str(tmp_path / "store")
    code = "import alpha\nalpha.answer"
    for jail in ({"hidden": (above,)}, {"write": (above,)}, {"read": (above,), "write": (above,)}):
        assert given(code, folder, jail=jail) == (42, None), jail
        assert given(f"open('{folder}/alpha.py', 'w')", folder, jail=jail)[1] is not None, jail
    opened = {"read": (above,), "write": (above,)}
    assert given(f"open('{above}/new', 'w').write('x')", folder, jail=opened) == (1, None)
    assert (folder / "alpha.py").read_text() == "answer = 42\n"


def test_what_was_built_anew_is_what_the_next_run_sees(given: Run, tmp_path: Path) -> None:
    folder = package(tmp_path / "one")
    for answer in (42, 43):
        shutil.rmtree(folder)
        package(folder, f"answer = {answer}\n")
        assert given("import alpha\nalpha.answer", folder) == (answer, None)


def test_packages_beside_the_library_are_hidden_but_where_they_are_named(given: Run) -> None:
    hidden = needs().hidden
    if not hidden:
        pytest.skip("this interpreter has no packages beside its library")
    site = Path(hidden[0])
    assert given(f"import os\nos.listdir('{site}')")[1] == "PermissionError"
    assert given(f"import os\nlen(os.listdir('{site}')) > 0", site) == (True, None)


def test_another_interpreter_runs_with_its_own_library(given: Run, tmp_path: Path) -> None:
    others = (str(Path(path).resolve()) for path in OTHERS if Path(path).exists())
    other = next((path for path in others if path != needs().program), None)
    found = None if other is None else probe_interpreter(other)
    if found is None or found.version is None or found.status.value != "ok":
        pytest.skip("no other Python that can be used is installed here")
    of = Installation(found.path, str(Path(found.path).parents[1]), ".".join(map(str, found.version)))
    folder = package(tmp_path / "one")
    code = "import json, platform\nimport alpha\n[platform.python_version(), json.__file__, alpha.answer]"
    minor = f"python{found.version[0]}.{found.version[1]}"
    told = [of.version, f"{of.prefix}/lib/{minor}/json/__init__.py", 42]
    assert given(code, folder, of=of) == (told, None)
