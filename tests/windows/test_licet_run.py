"""`licet` itself on Windows: exit codes, output, kill tree, any script, limits nobody keeps, the trail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

if sys.platform != "win32":
    pytest.skip("needs Windows; `.ci/wine` runs it under Wine", allow_module_level=True)

POLICY = """\
licet: 1
name: test/windows
extends: licet:trusted
sandbox: {only: [controlled_process]}
"""


@dataclass
class Said:
    code: int
    stdout: str
    stderr: str

    @property
    def result(self) -> dict[str, Any]:
        return json.loads(self.stdout)


@pytest.fixture
def licet(tmp_path: Path) -> Any:
    """Call `licet` in a folder whose name no code page holds."""
    folder = tmp_path / "données 漢字"
    folder.mkdir()
    (folder / "p.yaml").write_text(POLICY, "utf-8")
    variables = {**os.environ, "LICET_HOME": str(folder / ".licet"), "LOCALAPPDATA": str(folder / "local")}

    def call(*arguments: str, **options: Any) -> Said:
        command = [sys.executable, "-X", "utf8", "-m", "licet", *arguments]
        done = subprocess.run(
            command, cwd=folder, capture_output=True, env=variables, timeout=300, check=False, **options
        )
        return Said(done.returncode, done.stdout.decode().replace("\r", ""), done.stderr.decode())

    return call


def test_a_run_with_inputs_output_value_and_record(licet: Any) -> None:
    code = "import os, sys\nprint('¡hola!', name)\n[os.getcwd(), sys.stdin.read()]"
    name = 'name="漢字 \U0001f40d"'
    said = licet("run", "--policy", "p.yaml", "--json", "--input", name, "-c", code, input=b"")
    result = said.result
    assert (said.code, result["termination"]) == (0, "exited")
    assert result["stdout"] == "¡hola! 漢字 \U0001f40d\n"
    assert (Path(result["value"][0]).name, result["value"][1]) == ("données 漢字", "")
    assert result["backend"]["name"] == "controlled_process"
    assert result["contract"]["process_tree_cleanup"]["level"] == "partial"
    assert result["contract"]["network_deny"]["level"] == "not_enforced"
    assert licet("audit", "verify").code == 0


def test_exit_codes_are_those_of_every_system(licet: Any) -> None:
    assert licet("run", "--policy", "p.yaml", "-c", "1/0").code == 1
    assert licet("run", "--policy", "licet:compute", "-c", "import os; os.system('x')").code == 3


def test_a_timeout_kills_the_tree(licet: Any) -> None:
    code = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-I', '-S', '-c', 'import time; time.sleep(600)'])\n"
        "print(child.pid, flush=True)\ntime.sleep(600)"
    )
    said = licet("run", "--policy", "p.yaml", "--timeout", "5s", "--json", "-c", code)
    result = said.result
    assert (said.code, result["termination"]) == (6, "timeout")
    pid = int(result["stdout"])
    listed = subprocess.run(["tasklist", "/fi", f"pid eq {pid}"], capture_output=True, check=False).stdout
    assert str(pid).encode() not in listed.split()


def test_a_policy_that_needs_a_wall_finds_none(licet: Any, tmp_path: Path) -> None:
    strict = tmp_path / "données 漢字" / "strict.yaml"
    strict.write_text(POLICY.replace("only:", "require: {network_deny: enforced}, only:"), "utf-8")
    said = licet("run", "--policy", "strict.yaml", "--json", "-c", "1")
    assert (said.code, said.result["termination"]) == (5, "no_backend")
