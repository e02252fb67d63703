"""What Monty says of itself: cheaply, without importing Monty, and no more than is so."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from licet.backend import Backend
from licet.contract import Control, Evidence, Level
from licet.supervise.walls import Wall, Walls, look
from licet_monty import binary
from licet_monty.backend import OPENED, MontyBackend
from licet_monty.claims import contract
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
    assert (found.version, found.unavailable) == ("pydantic-monty 1.4.0", None)
    assert found.opens == {"tool", *OPENED}
    assert found.language.stdin is False
    isolation = found.sandbox_enforcement_contract.isolation
    assert isolation == ("kernel" if look().standing == set(Wall) else "language")
    assert backend.describe() is found


def test_the_configuration_is_the_binary_as_it_is(tmp_path: Path) -> None:
    plain = MontyBackend().describe().configuration
    assert plain == MontyBackend(workers=2).describe().configuration
    found = binary.locate()
    assert found is not None
    assert plain == f"{found} sha256:{hashlib.sha256(found.read_bytes()).hexdigest()}"
    other = tmp_path / "monty"
    assert MontyBackend(binary=other).describe().configuration == f"{other} unreadable"
    other.write_bytes(b"1")
    before = MontyBackend(binary=other).describe().configuration
    other.write_bytes(b"22")
    assert MontyBackend(binary=other).describe().configuration not in {before, plain}


INEXPRESSIBLE = {
    "shell_execution",
    "process_count_limit",
    "network_deny",
    "unix_socket_deny",
    "handle_isolation",
}
FILES = {"filesystem_read_deny", "filesystem_write_deny"}
ALL_WALLS = Walls(frozenset(Wall), {}, 7)


def _by_level(walls: Walls) -> dict[Level, set[str]]:
    levels: dict[Level, set[str]] = {}
    for control, claim in contract("0" * 64, walls).items():
        levels.setdefault(claim.level, set()).add(control.value)
        assert claim.evidence is Evidence.declared
        if claim.level in (Level.enforced, Level.partial):
            assert (claim.mechanism != "", claim.boundary != "none") == (True, True), control
    return levels


def test_the_contract_claims_this_and_nothing_more_without_walls_of_the_kernel() -> None:
    levels = _by_level(Walls(missing=dict.fromkeys(Wall, "there is no kernel")))
    assert levels[Level.not_applicable] == INEXPRESSIBLE
    assert levels[Level.partial] == {"orphan_cleanup", "process_isolation"}
    assert levels[Level.not_enforced] == {
        "network_filter",
        "privilege_drop",
        "syscall_filter",
        "separate_kernel",
    }
    bare = contract(None, Walls(missing=dict.fromkeys(Wall, "there is no kernel")))
    assert {claim.boundary for _, claim in bare.items() if claim.level is not Level.partial} == {
        "none",
        "language",
        "supervisor",
    }
    assert bare.isolation == "language"
    assert bare.syscall_filter.gaps == ("no wall of the kernel: there is no kernel",)
    assert bare[Control.memory_limit].gaps


def test_the_contract_claims_this_and_nothing_more_behind_all_walls() -> None:
    levels = _by_level(ALL_WALLS)
    assert Level.not_applicable not in levels
    assert Level.partial not in levels
    assert levels[Level.not_enforced] == {"network_filter", "separate_kernel"}
    walled = contract("0" * 64, ALL_WALLS)
    held = {control.value for control, claim in walled.items() if claim.boundary == "kernel"}
    others = {"orphan_cleanup", "process_isolation", "privilege_drop", "syscall_filter"}
    assert held == INEXPRESSIBLE | FILES | others
    assert walled.isolation == "kernel"
    assert "no system call is filtered" not in str(walled.as_json())


@pytest.mark.parametrize(
    ("wall", "held"),
    [
        (Wall.apart, {"handle_isolation", "orphan_cleanup"}),
        (Wall.privileges, {"privilege_drop"}),
        (Wall.calls, {"process_count_limit", "network_deny", "unix_socket_deny", "syscall_filter"}),
        (Wall.files, set()),
    ],
)
def test_each_wall_is_claimed_for_by_itself(wall: Wall, held: set[str]) -> None:
    bare, one = contract(None, Walls()), contract(None, Walls(frozenset({wall}), {}, 7))
    raised = {
        control.value
        for control, claim in one.items()
        if claim.boundary == "kernel" and claim.level is Level.enforced
    }
    assert raised == held
    assert {control for control, claim in one.items() if claim == bare[control]} == {
        control for control in Control if control.value not in held
    }


def test_the_contract_names_the_binary() -> None:
    one, other = (contract(digest * 64, ALL_WALLS) for digest in "01")
    assert f"the binary is sha256:{'0' * 64}" in one.process_isolation.mechanism
    assert one.digest != other.digest


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


def test_another_version_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binary, "TESTED", "9.9.9")
    assert MontyBackend().describe().unavailable == "expected pydantic-monty 9.9.9, found 1.4.0"


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_what_was_observed_on_the_run(run: Any) -> None:
    observed = run("1").observed
    assert observed["environment_allowlist"] == "the worker's own environment holds 0 variables"
    assert observed["process_isolation"].startswith("worker ")
    assert set(observed) == {
        "environment_allowlist",
        "handle_isolation",
        "process_isolation",
        "privilege_drop",
        "syscall_filter",
    }
    if look().standing == set(Wall):
        assert observed["handle_isolation"] == "the worker holds 3 descriptors"
        assert observed["privilege_drop"] == f"effective capabilities {'0' * 16}, no new privileges: 1"
        assert observed["syscall_filter"] == "seccomp mode 2"
