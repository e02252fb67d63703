"""Disks that are full, files that can't be written, damage, and somebody who holds the lock."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from asked import T0, Watch, answer, request
from licet.approvals import database
from licet.approvals.store import NAME, ApprovalStore
from licet.errors import ApprovalsUnavailable
from licet.locks import lock_file
from licet.state import StateDirectory, open_state

root_only = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="needs root on Linux, to mount a tmpfs"
)


@pytest.fixture
def mounted(tmp_path: Path, state: StateDirectory) -> Iterator[Callable[[str], Path]]:
    place = tmp_path / "mount"
    place.mkdir()

    def mount(options: str) -> Path:
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", place], check=True)
        return place

    yield mount
    while place.is_mount():
        subprocess.run(["umount", place], check=True)


@root_only
def test_on_a_full_disk_nothing_is_granted_and_nothing_lost(
    mounted: Callable[[str], Path], watch: Watch
) -> None:
    state = open_state(mounted("size=2m,mode=700") / ".licet")
    with ApprovalStore(state) as store:
        to = request()
        store.ask(to, frozen=b"frozen")
        filler = state.path.parent / "filler"
        with pytest.raises(OSError, match="No space left"), filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        with pytest.raises(ApprovalsUnavailable, match="is full") as refused:
            for n in range(2, 999):  # what SQLite has set aside lasts for some
                store.ask(request(f"A{n}"), frozen=bytes(100_000))
        assert refused.value.advice == "free some space on it, then run again"
        with pytest.raises(ApprovalsUnavailable, match="is full"):
            store.ask(request("B1"), frozen=bytes(2_000_000))
        assert store.get("A1").frozen == b"frozen"
        filler.unlink()
        store.answer("A1", answer(to), T0)
        assert store.consume("A1", 1, T0).state == "consumed"


@root_only
def test_a_full_disk_at_the_first_use_is_told(mounted: Callable[[str], Path]) -> None:
    state = open_state(mounted("size=64k,mode=700") / ".licet")
    with pytest.raises(OSError, match="No space left"), (state.path.parent / "filler").open("wb") as file:
        while True:
            file.write(bytes(4096))
    with pytest.raises(ApprovalsUnavailable, match="is full"):
        ApprovalStore(state)


@root_only
def test_what_can_only_be_read_is_not_used(mounted: Callable[[str], Path]) -> None:
    place = mounted("size=2m,mode=700")
    state = open_state(place / ".licet")
    ApprovalStore(state).close()
    with ApprovalStore(state) as store:
        store.ask(request())
    subprocess.run(["mount", "-o", "remount,ro", place], check=True)
    with pytest.raises(ApprovalsUnavailable, match="is on a read-only file system") as refused:
        ApprovalStore(state)
    assert "LICET_HOME" in (refused.value.advice or "")


def test_a_store_under_others_lock_is_waited_for_a_while(
    store: ApprovalStore, state: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "PATIENCE", 0.05)
    with lock_file(state.path / database.LOCK, 1) as held:
        assert held
        with pytest.raises(ApprovalsUnavailable, match=r"another process has held `.*` for 0\.05 s"):
            store.ask(request())
        assert store.listed() == ()  # who only reads needs no lock
    store.ask(request())


@pytest.mark.parametrize("place", [0, 18, 100, 4096, 8200])
def test_a_damaged_file_is_told(store: ApprovalStore, state: StateDirectory, place: int) -> None:
    for n in range(20):
        store.ask(request(f"A{n}"), frozen=bytes(9000))
    store.close()
    with (state.path / NAME).open("r+b") as file:
        file.seek(place)
        file.write(b"\xff" * 600)
    with pytest.raises(ApprovalsUnavailable) as refused, ApprovalStore(state) as again:
        again.listed()
        for n in range(20):
            again.get(f"A{n}")
    assert "move it aside" in (refused.value.advice or "")
    (state.path / NAME).rename(state.path / "aside")
    with ApprovalStore(state) as anew:
        assert anew.listed() == ()


@pytest.mark.parametrize("size", [1, 50, 5000])
def test_a_truncated_file_is_told(store: ApprovalStore, state: StateDirectory, size: int) -> None:
    for n in range(20):
        store.ask(request(f"A{n}"), frozen=bytes(9000))
    store.close()
    os.truncate(state.path / NAME, size)
    with pytest.raises(ApprovalsUnavailable), ApprovalStore(state) as again:
        again.listed()


def test_what_a_killed_process_left_in_the_journal_is_there(
    store: ApprovalStore, state: StateDirectory, tmp_path: Path
) -> None:
    to = request()
    store.ask(to)
    store.answer("A1", answer(to), T0)
    for name in (NAME, f"{NAME}-wal"):  # as they lie while the store is open
        shutil.copy(state.path / name, tmp_path / name)
    store.close()
    for name in (NAME, f"{NAME}-wal"):
        shutil.copy(tmp_path / name, state.path / name)
    with ApprovalStore(state) as again:
        assert again.get("A1").state == "granted"
