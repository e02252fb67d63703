"""What the test of a report gets: its row, a runtime for each backend, and the naive way beside it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest
from licet import ExecutionResult, Runtime, Termination
from licet.select import Candidate

FILE = Path(__file__).parents[1] / "data" / "reports.jsonl"
ROWS = {row["id"]: row for row in map(json.loads, FILE.read_text("utf-8").splitlines())}
NAME = re.compile(r"test_report_([a-z_]+)_(\d\d)(?:_[a-z_]+)?")

COMPUTE, TRUSTED = "licet:compute", "licet:trusted"
USUAL = {"monty": COMPUTE, "controlled_process": TRUSTED}
"""The pack under which each backend is the one that runs most code."""


@dataclass(frozen=True)
class Row:
    """One report."""

    id: str
    code: str


class On(Protocol):
    """Opens a runtime that has one backend alone; `more` and `require` are added to its usual pack."""

    def __call__(
        self, backend: str, more: str = "", *, require: str = ..., pack: str = ..., **options: Any
    ) -> Runtime: ...


@pytest.fixture
def row(request: pytest.FixtureRequest) -> Row:
    """The row that the test is named after."""
    found = NAME.fullmatch(request.function.__name__)
    assert found is not None, request.function.__name__
    row = ROWS[f"report-{found[1].replace('_', '-')}-{found[2]}"]
    return Row(row["id"], row.get("code", ""))


@pytest.fixture(params=["monty", "controlled_process"])
def backend(request: pytest.FixtureRequest) -> str:
    """Each backend by name, where a report concerns both."""
    return str(request.param)


@pytest.fixture
def on(tmp_path: Path) -> Iterator[On]:
    """Runtimes whose policy and state lie beside the working directory, not in it."""
    opened: list[Runtime] = []

    def on(backend: str, more: str = "", *, require: str = "{}", pack: str = "", **options: Any) -> Runtime:
        policy = tmp_path / f"{len(opened)}.yaml"
        policy.write_text(
            f"licet: 1\nextends: {pack or USUAL[backend]}\n"
            f"sandbox: {{only: [{backend}], require: {require}}}\n{more}\n"
        )
        opened.append(Runtime(policy, **options))
        return opened[-1]

    yield on
    for runtime in opened:
        runtime.close()


@pytest.fixture
def naive() -> Callable[..., subprocess.CompletedProcess[bytes]]:
    """Runs code as those did who wrote the reports: an interpreter, inheriting everything."""

    def naive(code: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-c", code]
        return subprocess.run(command, **({"capture_output": True, "timeout": 60} | options))

    return naive


@pytest.fixture
def living() -> Callable[[Path], list[int]]:
    """Finds the processes that work in a directory, as all of a run do that did not go elsewhere."""

    def living(directory: Path) -> list[int]:
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdecimal() and os.readlink(entry / "cwd") == str(directory):
                    found.append(int(entry.name))
            except OSError:
                continue
        return [pid for pid in found if pid != os.getpid()]

    return living


@pytest.fixture
def log_file(tmp_path: Path) -> Path:
    """The one file that holds the trail of every runtime of a test."""
    return tmp_path / ".licet" / "log" / f"seg-{0:020}.jsonl"


@pytest.fixture
def recorded(log_file: Path) -> Callable[[], list[dict[str, Any]]]:
    """Reads the trail as another program would: one JSON object a line, in UTF-8."""

    def recorded() -> list[dict[str, Any]]:
        *lines, rest = log_file.read_bytes().split(b"\n")
        assert rest == b""
        return [json.loads(line) for line in lines]

    return recorded


@pytest.fixture
def blockers() -> Callable[[ExecutionResult], list[tuple[str, str, str]]]:
    """Tells why a refused run's only backend was not chosen: what, asked, offered."""

    def blockers(result: ExecutionResult) -> list[tuple[str, str, str]]:
        assert result.termination is Termination.no_backend
        assert (result.backend, result.stdout) == (None, "")
        assert result.decision is not None
        alone = [one for one in result.decision.selection.candidates if "sandbox.only" not in _whats(one)]
        [candidate] = alone
        return [(blocker.what, blocker.asked, blocker.offered) for blocker in candidate.blockers]

    return blockers


def _whats(candidate: Candidate) -> list[str]:
    return [blocker.what for blocker in candidate.blockers]
