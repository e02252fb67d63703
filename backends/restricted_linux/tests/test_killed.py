"""A host that is killed leaves nothing: no process, group, mount or file, at whatever moment it is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).with_name("killed.py")


def left(folder: Path, *arguments: object) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(folder), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    ("first", "last"), [(0, 20), pytest.param(20, 200, marks=pytest.mark.soak)], ids=["some", "many"]
)
def test_a_host_is_killed_at_random_moments(tmp_path: Path, first: int, last: int) -> None:
    assert left(tmp_path, first, last, 20) == {"killed": last - first, "left": {}}


def test_what_a_host_leaves_is_seen(tmp_path: Path) -> None:
    found = left(tmp_path, 0, 1, 2, "careless")
    assert found == {"killed": 1, "left": {"0": ["the process sleep", "temporary files"]}}
