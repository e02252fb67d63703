"""Fixtures of the whole-repo tests: every test has a state directory and a working directory of its own."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from licet.contract import Control
from licet.evidence import Attestor
from licet.probe import ReceiptStore
from licet.runtime import Runtime


@pytest.fixture(scope="session")
def receipts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the backends prove on this machine, once for all tests: in a folder that each gets a copy of."""
    folder = tmp_path_factory.mktemp("receipts")
    attestor = Attestor(ReceiptStore(folder))

    async def prove() -> None:
        async with Runtime() as runtime:
            for backend in runtime.backends:
                await attestor.ensure(backend, tuple(Control))

    asyncio.run(prove())
    return folder


@pytest.fixture(scope="session")
def compiled_rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the detector of secrets keeps its compiled rules: they are compiled once for all tests."""
    return tmp_path_factory.mktemp("rules")


@pytest.fixture(autouse=True)
def own_directories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, receipts: Path, compiled_rules: Path
) -> Path:
    """Keep licet's state out of the developer's home, and relative paths inside the test's directory."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg-state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg-cache"))
    probes = tmp_path / "xdg-state" / "licet" / "probes"
    probes.parent.mkdir(mode=0o700, parents=True)
    probes.mkdir(mode=0o700)
    for receipt in receipts.iterdir():  # by hand: Wine lacks what `shutil` copies with
        (probes / receipt.name).write_bytes(receipt.read_bytes())
    monkeypatch.setenv("KF_RULE_CACHE_DIR", str(compiled_rules))
    monkeypatch.delenv("LICET_HOME", raising=False)
    monkeypatch.delenv("LICET_ENABLED", raising=False)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return work
