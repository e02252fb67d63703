"""What Monty says of itself: cheaply, without importing Monty, and no more than is so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from licet.backend import Backend
from licet.contract import Control, Evidence, Level
from licet_monty import binary
from licet_monty.backend import OPENED, MontyBackend
from licet_monty.plugin import licet_backends


def test_the_plugin_brings_a_backend() -> None:
    (found,) = licet_backends()
    assert isinstance(found, Backend)
    assert found.describe().name == "monty"


def test_describing_imports_and_starts_nothing() -> None:
    code = """
import sys
from licet_monty.plugin import licet_backends
licet_backends()[0].describe()
print(sorted({name.partition(".")[0] for name in sys.modules} & {"pydantic_monty", "ctypes"}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_descriptor() -> None:
    backend = MontyBackend()
    found = backend.describe()
    assert (found.version, found.opens, found.unavailable) == (
        "pydantic-monty 1.4.0",
        frozenset(OPENED),
        None,
    )
    assert found.language.stdin is False
    assert found.sandbox_enforcement_contract.isolation == "language"
    assert backend.describe() is found


def test_the_configuration_is_the_binary_as_it_is(tmp_path: Path) -> None:
    plain = MontyBackend().describe().configuration
    assert plain == MontyBackend(workers=2).describe().configuration
    assert plain.startswith(f"{binary.locate()} ")
    other = tmp_path / "monty"
    assert MontyBackend(binary=other).describe().configuration == f"{other} unreadable"
    other.write_bytes(b"1")
    before = MontyBackend(binary=other).describe().configuration
    other.write_bytes(b"22")
    assert MontyBackend(binary=other).describe().configuration not in {before, plain}


def test_the_contract_claims_this_and_nothing_more() -> None:
    contract = MontyBackend().describe().sandbox_enforcement_contract
    levels = {control.value: claim.level for control, claim in contract.items()}
    inexpressible = {
        "shell_execution",
        "process_count_limit",
        "network_deny",
        "unix_socket_deny",
        "handle_isolation",
    }
    open_ = {"network_filter", "privilege_drop", "syscall_filter", "separate_kernel"}
    partial = {"orphan_cleanup", "process_isolation"}
    assert {name for name, level in levels.items() if level is Level.not_applicable} == inexpressible
    assert {name for name, level in levels.items() if level is Level.not_enforced} == open_
    assert {name for name, level in levels.items() if level is Level.partial} == partial
    assert all(claim.evidence is Evidence.declared for _, claim in contract.items())
    for control, claim in contract.items():
        if claim.level in (Level.enforced, Level.partial):
            assert (claim.mechanism != "", claim.boundary != "none") == (True, True), control
    assert contract[Control.memory_limit].gaps


@pytest.mark.parametrize(
    "code",
    [
        "import subprocess",
        "import socket",
        "import ctypes",
        "import os\nos.system('id')",
        "import os\nos.fork()",
    ],
)
def test_what_does_not_apply_fails_in_the_language(code: str, run: Any) -> None:
    error = run(code).error
    assert error.type in ("ModuleNotFoundError", "AttributeError")


def test_descriptors_have_no_way_in(run: Any) -> None:
    for code in ("open(1)", "import os\nos.open('/')", "import os\nos.read(0, 1)", "import os\nos.dup(1)"):
        assert run(code).error.type in ("TypeError", "AttributeError")


def test_the_binary_is_that_of_the_distribution(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    planted = tmp_path / "monty"
    planted.write_text("#!/bin/sh\n")
    planted.chmod(0o755)
    monkeypatch.setenv("MONTY_BIN", str(planted))
    monkeypatch.setenv("PATH", str(tmp_path))
    found = binary.locate()
    assert found is not None
    assert found.is_file()
    assert found != planted


def test_another_version_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binary, "TESTED", "9.9.9")
    assert MontyBackend().describe().unavailable == "expected pydantic-monty 9.9.9, found 1.4.0"


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_what_was_observed_on_the_run(run: Any) -> None:
    observed = run("1").observed
    assert observed["environment_allowlist"] == "the worker's own environment holds 0 variables"
    assert observed["process_isolation"].startswith("worker ")
    assert set(observed) == {"environment_allowlist", "process_isolation", "privilege_drop", "syscall_filter"}
