"""The inventory, as it is asked for after a log was wiped, cut, and begun anew."""

from __future__ import annotations

import shutil
from pathlib import Path

from cli import Ran, licet


def run(home: str) -> Ran:
    return licet("run", "--policy", f"{home}/licet.yaml", "-c", "1 + 1", "--json")


def found() -> dict[str, list[str]]:
    """What is said of the logs of each project."""
    listed = licet("audit", "list", "--logs", "--json")
    assert (listed.code, listed.err) == (0, "")
    said: dict[str, list[str]] = {}
    for row in listed.json:
        said.setdefault(Path(row["path"]).parent.name, []).append(row["found"])
    return {name: sorted(verdicts) for name, verdicts in said.items()}


def test_what_became_of_logs_is_listed_and_none_of_it_fails(own_directories: Path) -> None:
    for name in ("wiped", "cut", "anew"):
        Path(name).mkdir()
        Path(name, "licet.yaml").write_text("licet: 1\nextends: licet:compute\n")
        assert run(name).code == 0
    assert found() == {name: ["here"] for name in ("wiped", "cut", "anew")}

    for name in ("wiped", "anew"):
        shutil.rmtree(Path(name, ".licet"))
    (segment,) = Path("cut", ".licet", "log").iterdir()
    segment.write_bytes(b"".join(segment.read_bytes().splitlines(keepends=True)[:-1]))
    assert run("anew").code == 0
    assert found() == {"wiped": ["wiped"], "cut": ["shorter"], "anew": ["here", "replaced"]}

    refused = run("cut")
    assert (refused.code, "was there before" in refused.out) == (7, True)
    assert licet("audit", "verify", "--policy", "anew/licet.yaml", "--json").code == 0
    assert licet("audit", "verify", "--policy", "cut/licet.yaml", "--json").code == 3
