"""Makes the helpers of this folder importable under pytest's importlib mode; and a plugin that lies."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def boaster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plugin `boaster`, installed and enabled for the command line, whose backend claims what it lacks."""
    known = tmp_path / "site" / "boaster-1.dist-info"
    known.mkdir(parents=True)
    (known / "METADATA").write_text("Metadata-Version: 2.1\nName: boaster\nVersion: 1\n")
    (known / "entry_points.txt").write_text("[licet]\nboaster = liars_for_doctor\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(tmp_path / "site"), str(Path(__file__).parent))))
    monkeypatch.setenv("LICET_ENABLED", "audit,policies,boaster")
