"""What the host sees of a guest from outside is what was set up, or the code does not begin."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from licet.supervise.jail import room, sight
from licet.supervise.jail.layout import Layout
from licet.supervise.readback import NotTaken

Run = Callable[..., Any]
NOTHING = Layout((), (), ())


def test_a_guest_is_seen_in_its_room(run: Run, tmp_path: Path) -> None:
    seen = run("1", {"read": (str(tmp_path),)}, environment={"A": "b"}).ended.seen
    assert seen["environment_allowlist"] == "1 variables, and no other"
    assert seen["network_deny"] == "a network of its own, with lo"
    assert {"cgroup", "ipc", "mnt", "net", "pid", "uts"} <= set(
        seen["process_isolation"].partition(": ")[2].split(", ")
    )
    assert str(tmp_path) not in seen["filesystem_write_deny"]


def test_who_is_in_no_room_is_found_out() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as plain:
        with pytest.raises(NotTaken) as told:
            sight.look(plain.pid, NOTHING, dict(os.environ), users=False)
        plain.communicate(b"\n")
    assert str(told.value) == "the system shows it in this process's namespace `cgroup`"


def test_no_code_begins_with_other_variables(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    look = sight.look

    def changed(pid: int, how: Layout, environment: Mapping[str, str], *, users: bool) -> dict[str, str]:
        return look(pid, how, {**environment, "A": "c"}, users=users)

    monkeypatch.setattr(room.sight, "look", changed)
    ran = run("print(1)", environment={"A": "b"})
    assert (ran.ended.reason.value, ran.stdout) == ("launch_failed", "")
    assert ran.ended.detail == "the system shows it with other variables than those of the policy"


@pytest.mark.parametrize("size", [7_990, 8_000, 8_190, 20_000])
def test_many_variables_are_no_other_ones(run: Run, size: int) -> None:
    ran = run("import os; print(len(os.environ['A']))", environment={"A": "x" * size, "B": ""})
    assert ran.stdout == f"{size}\n"
