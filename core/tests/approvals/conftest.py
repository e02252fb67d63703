"""A store of its own for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from asked import Watch
from licet.approvals import clocks
from licet.approvals.store import ApprovalStore
from licet.state import StateDirectory, open_state


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StateDirectory:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "user"))
    return open_state(tmp_path / ".licet")


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    """The clocks, which go only when they are told to."""
    watch = Watch()
    monkeypatch.setattr(clocks, "now", lambda: watch.at)
    return watch


@pytest.fixture
def store(state: StateDirectory, watch: Watch) -> Iterator[ApprovalStore]:
    with ApprovalStore(state) as store:
        yield store
