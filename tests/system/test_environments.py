"""Packages and interpreters that policy names, from the list to the run, by the command line."""

from __future__ import annotations

import hashlib
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from cli import Ran, licet

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="wants both backends that run CPython")

BACKENDS = ("controlled_process", "restricted_linux")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with wheels that pip takes packages from, and directories of its own for state and store."""
    for name in ("PIP_CONSTRAINT", "PIP_EXTRA_INDEX_URL", "PIP_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    given = {"PIP_CONFIG_FILE": "/dev/null", "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)}
    given |= {"XDG_CACHE_HOME": str(tmp_path / "cache"), "XDG_STATE_HOME": str(tmp_path / "state")}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _listed(place: Path, name: str, content: str) -> str:
    """Make a wheel, with a `.pth` file that would run code; returns its line."""
    wheel, about = place / f"{name}-1.0-py3-none-any.whl", f"{name}-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{name}.py", content)
        archive.writestr(f"{name}.pth", "import sys; sys.obeyed = True\n")
        archive.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        files = (f"{name}.py", f"{name}.pth", f"{about}/METADATA", f"{about}/WHEEL", f"{about}/RECORD")
        archive.writestr(f"{about}/RECORD", "".join(f"{file},,\n" for file in files))
    return f"{name}==1.0 --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"


def _policy(place: Path, python: str, backend: str) -> str:
    """A policy that leaves no backend but this one; without walls it has to trust the code."""
    path = place / f"{backend}.yaml"
    trusted = "extends: licet:trusted\n" if backend == "controlled_process" else ""
    sandbox = f"sandbox: {{only: [{backend}], evidence: declared}}\n"
    path.write_text(f"licet: 1\n{trusted}python: {python}\n{sandbox}", "utf-8")
    return str(path)


def _run(policy: str) -> Ran:
    return licet("run", "--policy", policy, "code.py", "--json")


def test_a_list_is_built_once_and_imported_in_every_cpython(place: Path) -> None:
    (place / "l.txt").write_text(_listed(place, "gift", "word = 'given'\n"), "utf-8")
    (place / "code.py").write_text("import gift, sys\n[gift.word, hasattr(sys, 'obeyed')]\n", "utf-8")
    policies = {name: _policy(place, "{packages: l.txt}", name) for name in (*BACKENDS, "monty")}
    early = _run(policies["restricted_linux"])
    assert (early.code, early.json["error"]["slug"]) == (2, "environment-unavailable")
    assert "licet env build" in early.json["error"]["advice"]
    built = licet("env", "build", "--policy", policies["restricted_linux"], "--json")
    assert (built.code, built.json["fresh"], built.json["packages"]) == (0, True, ["gift==1.0"])
    for name in BACKENDS:
        ran = _run(policies[name])
        assert (ran.code, ran.json["value"]) == (0, ["given", False]), ran.out
    other = _run(policies["monty"])
    assert (other.code, "python" in other.out) == (5, True)


def test_another_list_needs_another_environment(place: Path) -> None:
    listed, policy = place / "l.txt", _policy(place, "{packages: l.txt}", "restricted_linux")
    (place / "code.py").write_text("import gift\ngift.word\n", "utf-8")
    for word in ("one", "two"):
        listed.write_text(_listed(place, "gift", f"word = '{word}'\n"), "utf-8")
        assert _run(policy).json["error"]["slug"] == "environment-unavailable"
        assert licet("env", "build", "--policy", policy).code == 0
        assert _run(policy).json["value"] == word
    listed.write_text("gift==1.0\n", "utf-8")
    refused = _run(policy)
    assert (refused.code, refused.json["error"]["slug"]) == (2, "invalid-lock-file")
    assert refused.json["error"]["where"] == f"{listed}:1"


def test_what_was_changed_is_told_refused_and_removed(place: Path) -> None:
    (place / "l.txt").write_text(_listed(place, "gift", "word = 'given'\n"), "utf-8")
    (place / "code.py").write_text("import gift\ngift.word\n", "utf-8")
    policy = _policy(place, "{packages: l.txt}", "restricted_linux")
    assert licet("env", "build", "l.txt", "--check").code == 1
    built = licet("env", "build", "l.txt", "--json").json
    assert licet("env", "build", "l.txt", "--check").code == 0
    module = Path(built["path"], "packages", "gift.py")
    module.chmod(0o644)
    module.write_text("word = 'forged'\n", "utf-8")
    refused = _run(policy)
    assert (refused.code, refused.json["error"]["slug"]) == (2, "environment-unavailable")
    assert licet("env", "build", "l.txt", "--check").code == 1
    (shown,) = licet("env", "list", "--json").json["environments"]
    assert (shown["key"], shown["problem"]) == (built["key"], "`gift.py` was changed")
    assert licet("env", "remove", built["key"][:8], "--json").json == {"removed": [built["key"]]}
    assert licet("env", "list", "--json").json == {"environments": []}
    assert licet("env", "remove", built["key"]).code == 2


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_virtual_environment_is_used_as_it_stands(place: Path, backend: str) -> None:
    venv.create(place / "venv", symlinks=True)
    (site,) = (place / "venv").glob("lib/python3*/site-packages")
    (site / "gift.py").write_text("word = 'mine'\n", "utf-8")
    (place / "code.py").write_text("import gift\ngift.word\n", "utf-8")
    ran = _run(_policy(place, "{prefix: venv}", backend))
    assert (ran.code, ran.json["value"]) == (0, "mine"), ran.out
