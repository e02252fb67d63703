"""The screen against the corpus of attacks and of harmless code, row by row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from licet.request import ScreenReport
from licet.screen import screen

DATA = Path(__file__).parent / "data"
EXTERNAL = Path(__file__).parents[3] / "shared" / "corpus" / "external"


def rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def named(file: str) -> list[Any]:
    return [pytest.param(row, id=row["id"]) for row in rows(DATA / file)]


def found(report: ScreenReport) -> list[str]:
    violations = [f"{item.code}@{item.line}" for item in report.violations]
    return violations + [f"{item}@{item.line}" for item in report.intents]


LET_THROUGH: dict[str, str] = {}
"""Attacks that the screen should refuse and doesn't, each with its reason; at most 3 % of all."""

REFUSED_ON_PURPOSE = {
    "benign-collections-misc-22": "starts threads, which can outlive the code",
}
"""Harmless rows that depend on policy and are refused, each with its reason."""


@pytest.mark.parametrize("row", named("screen_escapes.jsonl"))
def test_attack_is_seen_as_recorded(row: dict[str, Any]) -> None:
    report = screen(row["code"])
    assert found(report) == row["found"]
    assert report.syntax_error is None
    if row["expect_static"] == "reject":
        assert bool(row["found"]) == (row["id"] not in LET_THROUGH)


def test_at_most_three_percent_of_attacks_are_let_through() -> None:
    attacks = [row for row in rows(DATA / "screen_escapes.jsonl") if row["expect_static"] == "reject"]
    assert len(attacks) == 184
    assert len(LET_THROUGH) <= len(attacks) * 0.03


@pytest.mark.parametrize("row", named("screen_benign.jsonl"))
def test_harmless_code_passes(row: dict[str, Any]) -> None:
    report = screen(row["code"])
    assert report.syntax_error is None
    assert found(report) == row["found"]
    assert bool(row["found"]) == (row["id"] in REFUSED_ON_PURPOSE)
    if not row["policy_sensitive"]:
        assert row["found"] == []


@pytest.mark.parametrize("row", rows(DATA / "screen_evasions.jsonl"), ids=lambda row: row["code"][:40])
def test_evasion_is_seen_as_recorded(row: dict[str, Any]) -> None:
    assert row["found"]
    assert found(screen(row["code"])) == row["found"]


@pytest.mark.parametrize("row", rows(DATA / "screen_ordinary.jsonl"), ids=lambda row: row["code"][:40])
def test_ordinary_code_passes(row: dict[str, Any]) -> None:
    report = screen(row["code"])
    assert report.syntax_error is None
    assert found(report) == []


@pytest.mark.parametrize(
    ("file", "count", "refused"),
    [("humaneval.jsonl", 164, {"HumanEval/160": ["dynamic_code@30"]}), ("mbpp_sanitized.jsonl", 427, {})],
)
def test_published_problems_pass(file: str, count: int, refused: dict[str, list[str]]) -> None:
    if not (EXTERNAL / file).exists():
        pytest.skip(f"the corpus file {EXTERNAL / file} is not here")
    problems = rows(EXTERNAL / file)
    assert len(problems) == count
    reports = {str(row["id"]): screen(row["code"]) for row in problems}
    assert {name: found(report) for name, report in reports.items() if found(report)} == refused
    assert not [name for name, report in reports.items() if report.syntax_error]
