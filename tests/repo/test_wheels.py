"""The wheels work by themselves: built from the workspace, installed outside it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DISTRIBUTIONS = {
    "licet",
    "licet_audit",
    "licet_controlled_process",
    "licet_monty",
    "licet_policies",
    "licet_restricted_linux",
}


def uv(*arguments: str, cwd: Path = ROOT) -> str:
    program = shutil.which("uv") or str(Path(sys.executable).parent / "uv")
    environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    done = subprocess.run([program, *arguments], cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    out = tmp_path_factory.mktemp("wheels")
    uv("build", "--all-packages", "--wheel", "--quiet", "--out-dir", str(out))
    return sorted(out.glob("*.whl"))


def test_every_distribution_is_built_and_typed(wheels: list[Path]) -> None:
    assert {wheel.name.split("-")[0] for wheel in wheels} == DISTRIBUTIONS
    for wheel in wheels:
        package = wheel.name.split("-")[0]
        names = zipfile.ZipFile(wheel).namelist()
        assert f"{package}/py.typed" in names
        assert not [name for name in names if "/tests/" in name or name.startswith("tests/")]


def test_the_wheels_run_code_in_an_empty_environment(wheels: list[Path], tmp_path: Path) -> None:
    uv("venv", "--quiet", "--python", sys.executable, str(tmp_path / "venv"))
    python = tmp_path / "venv" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    uv("pip", "install", "--quiet", "--python", str(python), *map(str, wheels), cwd=tmp_path)
    done = subprocess.run(
        [str(python), "-m", "licet", "run", "-c", "sum(range(10))"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, "45\n"), done.stderr
    listed = subprocess.run(
        [str(python), "-m", "licet", "audit", "verify"], cwd=tmp_path, capture_output=True, text=True
    )
    assert listed.returncode == 0, listed.stderr


def test_core_alone_refuses_to_run_without_a_trail(wheels: list[Path], tmp_path: Path) -> None:
    uv("venv", "--quiet", "--python", sys.executable, str(tmp_path / "venv"))
    python = tmp_path / "venv" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    core = next(wheel for wheel in wheels if wheel.name.startswith("licet-"))
    uv("pip", "install", "--quiet", "--python", str(python), str(core), cwd=tmp_path)
    without = "import licet.secrets.plugin as plugin; print(plugin.licet_lacks())"
    shown = subprocess.run([str(python), "-c", without], capture_output=True, text=True, check=True)
    assert shown.stdout == "{'detector': \"pip install 'licet[secrets]'\"}\n"
    (tmp_path / "p.yaml").write_text("licet: 1\n")
    done = subprocess.run(
        [str(python), "-m", "licet", "run", "--policy", "p.yaml", "-c", "1"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 7, done.stderr
    assert "pip install 'licet[standard]'" in done.stderr
