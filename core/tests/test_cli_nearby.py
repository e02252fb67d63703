"""Places of messages: short where they can be, and never another place than was meant."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from licet.cli.nearby import near, nearby
from licet.errors import Position


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    inside = tmp_path / "in side"
    inside.mkdir()
    monkeypatch.chdir(inside)
    return os.path.realpath(inside)


def test_what_lies_below_is_named_from_here(here: str) -> None:
    assert near(Position(f"{here}/org.yaml", 3, 5)) == "org.yaml:3:5"
    assert near(f"{here}/team/licet.yaml") == "team/licet.yaml"


def test_what_lies_elsewhere_keeps_its_whole_path(here: str) -> None:
    for elsewhere in (here, f"{here}2/org.yaml", "/etc/licet/policy.d/a.yaml", "licet:compute:5:3"):
        assert near(elsewhere) == elsewhere


def test_sentences_name_places_from_here(here: str) -> None:
    said = f"{here}/a.yaml:3 denies it; the rule `r` ({here}/b/c.yaml:9:2) asks"
    assert nearby(said) == "a.yaml:3 denies it; the rule `r` (b/c.yaml:9:2) asks"


def test_a_target_is_never_shortened_since_it_is_relative_to_another_file(here: str) -> None:
    for said in (
        f"add `allow: [read {here}/data]`",
        f"add `allow: [read {here}/data:5]`",
        f"write {here}/data:5",
        f"`{here}/a.yaml:5` belongs to licet itself",
        f"x{here}/a.yaml:5",
    ):
        assert nearby(said) == said


def test_a_current_directory_that_is_gone_changes_nothing(here: str) -> None:
    os.rmdir(here)
    assert near(f"{here}/a.yaml") == f"{here}/a.yaml"
    assert nearby(f"{here}/a.yaml:1 denies it") == f"{here}/a.yaml:1 denies it"


def test_at_the_root_of_all_files_nothing_is_shortened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    assert near("/etc/org.yaml") == "/etc/org.yaml"
    assert nearby("/etc/org.yaml:1 denies it") == "/etc/org.yaml:1 denies it"
