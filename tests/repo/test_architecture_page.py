"""The page on how it is built names modules in the tiers that they have."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "architecture.md"


def test_the_tiers_are_those_that_are_checked() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (core,) = (one["layers"] for one in contracts if one.get("containers") == ["licet"])
    tier_of = {name: number for number, tier in enumerate(core) for name in re.findall(r"\w+", tier)}
    (shown,) = re.findall(r"```\n(cli .*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    found = [{tier_of[name] for name in tier.split()} for tier in shown.split("→")]
    assert [len(numbers) for numbers in found] == [1] * len(found)
    order = [min(numbers) for numbers in found]
    assert order == sorted(set(order))
