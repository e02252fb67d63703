"""The page on testing policies shows what really happens."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from .cli import licet

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "test-a-policy.md"
TEXT = PAGE.read_text("utf-8")
SESSIONS = re.findall(r"```console\n\$ licet ([^\n]*)\n(.*?)```", TEXT, re.DOTALL)


def undated(text: str) -> str:
    """Without digests: paths are part of them, and every test has a directory of its own."""
    return re.sub(r"@[0-9a-f]{4}", "@", text)


@pytest.mark.parametrize("number", range(len(SESSIONS)))
def test_the_page_shows_what_happens(own_directories: Path, number: int) -> None:
    for name, content in re.findall(r"```yaml\n# (\S+)\n(.*?)```", TEXT, re.DOTALL):
        (own_directories / name).write_text(content, "utf-8")
    command, shown = SESSIONS[number]
    if "> 1000" in shown:
        policy = own_directories / "licet.yaml"
        policy.write_text(policy.read_text("utf-8").replace("amount > 100", "amount > 1000"), "utf-8")
    ran = licet(*shlex.split(command))
    assert undated(ran.out + ran.err) == undated(shown)
    assert ran.code == (1 if "✗" in shown else 0)
