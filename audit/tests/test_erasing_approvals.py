"""Erasing a run takes what is stored of its approvals with it, by the store's own hand, and says so."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest
from approving import ASKED, answers, asking, waiting
from kept import Trail
from licet.approvals import store, telling
from licet.errors import ApprovalsUnavailable
from licet.record import Record
from licet.state import StateDirectory
from licet_audit import contents
from licet_audit.reader import LogReader

Append = Callable[..., list[Record]]
WHY = ("--reason", "request 17 of Ada", "--yes")


class Stored:
    """Stands for the store: what it holds of a run is a file, by the run's name."""

    fails = False

    def __init__(self, state: StateDirectory) -> None:
        if self.fails:
            raise ApprovalsUnavailable("the store is damaged", advice="repair it")
        self._folder = state.path / "stored"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return

    def forget(self, run_id: str) -> int:
        (self._folder / run_id).unlink(missing_ok=True)
        return 1


@pytest.fixture
def trail(
    state: StateDirectory, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Trail:
    monkeypatch.setattr(store, "ApprovalStore", Stored)
    (state.path / store.NAME).touch()
    (state.path / "stored").mkdir()
    for run in ("R", "R2"):
        (state.path / "stored" / run).write_text("frozen")
    return Trail(state, capsys)


def _stored(trail: Trail) -> list[str]:
    return sorted(path.name for path in (trail.state.path / "stored").iterdir())


def test_what_is_stored_of_approvals_goes_with_the_run(trail: Trail, append: Append) -> None:
    append([*asking(), waiting(), *answers()])
    assert trail("erase", "R", *WHY).code == 0
    assert _stored(trail) == ["R2"]
    (record,) = trail.records("erased")
    assert (record.entry.body["approvals"], record.entry.body["commitments"]) == (["R"], [])
    assert json.loads(trail("erase", "R", *WHY, "--json").out)["approvals"] == []
    assert len(list(trail.records("erased"))) == 1
    assert LogReader(trail.state).verify().status == "proven"


def test_what_was_shown_and_kept_goes_as_well(trail: Trail, append: Append) -> None:
    kept = telling.shown(replace(ASKED, document={"code": "cAnArY-4711"}))
    told = asking()
    told[-1] = replace(told[-1], kept=(kept,))
    append([*told, waiting()])
    assert contents.state_of(trail.state, kept.commitment) == "intact"
    assert trail("erase", "R", *WHY).code == 0
    assert contents.state_of(trail.state, kept.commitment) == "missing"
    left = [path for path in trail.state.path.rglob("*") if path.is_file()]
    assert not any(b"cAnArY-4711" in path.read_bytes() for path in left)


def test_a_run_that_asks_again_is_erased_again(trail: Trail, append: Append) -> None:
    append([*asking(), waiting()])
    trail("erase", "R", *WHY)
    (trail.state.path / "stored" / "R").write_text("frozen")
    append([asking()[-1]])
    trail("erase", "R", *WHY)
    assert _stored(trail) == ["R2"]


def test_what_a_failing_store_left_is_finished_later(
    trail: Trail, append: Append, monkeypatch: pytest.MonkeyPatch
) -> None:
    append([*asking(), waiting()])
    monkeypatch.setattr(Stored, "fails", True)
    ran = trail("erase", "R", *WHY)
    assert ran.code == 7
    assert "the removal is recorded" in ran.err and "the store is damaged" in ran.err
    assert _stored(trail) == ["R", "R2"]
    append([])  # nobody is kept from writing
    monkeypatch.setattr(Stored, "fails", False)
    append([])
    assert _stored(trail) == ["R2"]


def test_no_store_is_made_to_erase_nothing(trail: Trail, append: Append) -> None:
    (trail.state.path / store.NAME).unlink()
    append([*asking(), waiting()])
    assert trail("erase", "R", *WHY).code == 0
    assert not Path(trail.state.path / store.NAME).exists()
