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
    tiers = [set(re.findall(r"\w+", tier)) for tier in core if tier != "__main__"]
    (shown,) = re.findall(r"```\n(cli .*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    named = [set(tier.split()) for tier in shown.split("→")]
    assert len(named) == len(tiers)
    assert [names - tier for names, tier in zip(named, tiers, strict=True)] == [set()] * len(tiers)
