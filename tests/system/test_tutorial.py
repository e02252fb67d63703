"""The tutorial, typed from its first line to its last."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from cli import licet

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "tutorial" / "first-run.md").read_text("utf-8")
BLOCK = re.compile(r"```(sh|yaml|python)\n(.*?)```", re.DOTALL)
DENIED = ("os.system", "/etc/passwd")


def commands(block: str) -> Iterator[tuple[list[str], str]]:
    """Each command of a block as a shell would split it, and the comment behind it."""
    pending = ""
    for line in block.splitlines(keepends=True):
        pending += line
        try:
            words = shlex.split(pending, comments=True)
        except ValueError:  # a quotation goes on in the next line
            continue
        yield words, pending.rpartition(" # ")[2].strip()
        pending = ""
    assert not pending


def expected(words: list[str], comment: str) -> int:
    if (said := re.match(r"(\d+):", comment)) is not None:
        return int(said[1])
    return 3 if any(sign in word for word in words for sign in DENIED) else 0


def test_every_command_of_the_tutorial_does_what_it_says(own_directories: Path) -> None:
    (own_directories / "docs").symlink_to(ROOT / "docs")
    typed, names = 0, dict[str, object]()
    for kind, block in BLOCK.findall(TEXT):
        if kind == "yaml":
            (own_directories / "licet.yaml").write_text(block, "utf-8")
        if kind == "python":
            exec(compile(block, "first-run.md", "exec", dont_inherit=True), names)
        for words, comment in commands(block) if kind == "sh" else ():
            if words[0] == "mkdir":
                for name in words[1:]:
                    (own_directories / name).mkdir()
            if words[:3] != ["uv", "run", "licet"]:
                continue
            runs = licet("audit", "list", "--json").json if "01M8" in block else []
            arguments = [runs[0]["run_id"] if word.startswith("01M8") else word for word in words[3:]]
            ran = licet(*arguments)
            assert ran.code == expected(words, comment), (words, ran)
            typed += 1
    assert typed == 18
    assert (own_directories / "out" / "note.txt").read_text() == "written when the run ended well"
