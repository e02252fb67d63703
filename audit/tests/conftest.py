"""A state directory of its own for each test, and short names for what every test needs."""

import asyncio
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from licet.record import Entry, Record
from licet.state import StateDirectory, open_state
from licet_audit.log import DurableLog

sys.path.insert(0, str(Path(__file__).parent))  # helpers of several tests are modules

Append = Callable[..., list[Record]]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "home" / "licet"


@pytest.fixture
def state(tmp_path: Path, home: Path) -> StateDirectory:
    return open_state(tmp_path / ".licet")


@pytest.fixture
def entry() -> Callable[..., Entry]:
    def make(kind: str = "request", run_id: str = "r", phase: str | None = None, **body: object) -> Entry:
        return Entry(kind, run_id, body, "2026-11-29T17:00:00.000000000Z", 1, phase=phase)  # type: ignore[arg-type]

    return make


@pytest.fixture
def append(state: StateDirectory) -> Append:
    """Append batches with a log of its own, and close it."""

    def write(*batches: Sequence[Entry], segment_bytes: int = 2**26) -> list[Record]:
        async def run() -> list[Record]:
            log = DurableLog(state, segment_bytes=segment_bytes)
            try:
                return [record for batch in batches for record in await log.append(batch)]
            finally:
                await log.close()

        return asyncio.run(run())

    return write


@pytest.fixture
def segment(state: StateDirectory, append: Append, entry: Callable[..., Entry]) -> Path:
    """A log of ten records in one file, its head pinned."""
    append([entry(n=n, text="ä") for n in range(1, 10)])
    return state.path / "log" / "seg-00000000000000000000.jsonl"
