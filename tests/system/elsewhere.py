"""An empty environment outside the workspace, with the wheels of licet and of a stranger in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

ROOT = Path(__file__).parents[2]


def uv(*arguments: str | Path, cwd: Path) -> None:
    """Run `uv`, which has to succeed."""
    program = shutil.which("uv") or str(Path(sys.executable).parent / "uv")
    environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    done = subprocess.run([program, *arguments], cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@dataclass(frozen=True)
class Elsewhere:
    """A folder with a virtual environment of its own."""

    folder: Path

    @classmethod
    def make(cls, folder: Path, *projects: Path) -> Elsewhere:
        """Build all wheels of the workspace and of `projects`, and install them with the kit's own needs."""
        wheels = folder / "wheels"
        uv("build", "--all-packages", "--wheel", "--quiet", "--out-dir", wheels, cwd=ROOT)
        for project in projects:
            uv("build", "--wheel", "--quiet", "--out-dir", wheels, project, cwd=folder)
        made = cls(folder)
        uv("venv", "--quiet", "--python", sys.executable, folder / "venv", cwd=folder)
        built = [f"{w}[testing]" if w.name.startswith("licet-") else w for w in sorted(wheels.glob("*.whl"))]
        uv("pip", "install", "--quiet", "--python", made.python, *built, cwd=folder)
        return made

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "venv" / ("Scripts" if sys.platform == "win32" else "bin") / "python"

    def run(self, *arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run its interpreter, outside the workspace."""
        return subprocess.run(
            [self.python, *arguments],
            cwd=self.folder,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
        )

    def pytest(self, *arguments: str | Path) -> Verdicts:
        """Run its pytest, where warnings are errors."""
        report = self.folder / "report.xml"
        options: tuple[Any, ...] = ("-q", "-W", "error", "-p", "no:cacheprovider", f"--junit-xml={report}")
        done = self.run("-m", "pytest", *options, *arguments)
        assert done.returncode in (0, 1), done.stdout + done.stderr
        return Verdicts.read(report)


@dataclass(frozen=True)
class Verdicts:
    """What became of tests: each failure by `CLASS.NAME`, how many passed, why others did not run."""

    failed: dict[str, str]
    passed: int
    skipped: list[str]

    @classmethod
    def read(cls, report: Path) -> Verdicts:
        """Read what pytest reports."""
        failed: dict[str, str] = {}
        skipped: list[str] = []
        passed = 0
        for case in ElementTree.parse(report).iter("testcase"):
            name = f"{case.attrib['classname'].rpartition('.')[2]}.{case.attrib['name']}"
            faults = [fault.text or "" for kind in ("failure", "error") for fault in case.iter(kind)]
            if faults:
                failed[name] = "\n".join((failed.get(name, ""), *faults)).strip()
            elif (skip := case.find("skipped")) is not None:
                skipped.append(skip.attrib["message"])
            else:
                passed += 1
        return cls(failed, passed, skipped)
