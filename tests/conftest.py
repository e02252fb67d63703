"""Fixtures of the whole-repo tests: every test has a state directory and a working directory of its own."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep licet's state out of the developer's home, and relative paths inside the test's directory."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg-state"))
    monkeypatch.delenv("LICET_HOME", raising=False)
    monkeypatch.delenv("LICET_ENABLED", raising=False)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return work
