"""`licet policy` as the authors of policies type it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli import licet
from jsonschema import Draft202012Validator


def test_a_policy_that_init_wrote_is_sound_and_its_schema_lies_beside_it(own_directories: Path) -> None:
    ran = licet("policy", "init")
    assert (ran.code, ran.out) == (0, "")
    first = Path("licet.yaml").read_text("utf-8").splitlines()[0]
    assert first == "# yaml-language-server: $schema=./licet.schema.json"
    Draft202012Validator.check_schema(json.loads(Path("licet.schema.json").read_text("utf-8")))
    checked = licet("policy", "check", "--fail-on-warn", "--json")
    assert checked.code == 0, checked.out
    assert (checked.json["valid"], checked.json["findings"]) == (True, [])
    again = licet("policy", "init")
    assert again.code == 2
    assert "`licet.yaml` can't be written: it exists already" in again.err


def test_init_starts_from_a_pack_and_can_leave_the_schema_out(own_directories: Path) -> None:
    ran = licet("policy", "init", "nothing", "--file", "stop.yaml", "--no-schema", "--json")
    assert (ran.code, ran.json["extends"], ran.json["schema"]) == (0, "licet:nothing", None)
    assert "yaml-language-server" not in Path("stop.yaml").read_text("utf-8")
    assert not Path("licet.schema.json").exists()
    assert licet("run", "--policy", "stop.yaml", "-c", "1").code == 3


def test_check_tells_who_enforces_each_setting(own_directories: Path) -> None:
    Path("p.yaml").write_text("licet: 1\nextends: licet:compute\nscreen: {modules: {deny: [random]}}\n")
    ran = licet("policy", "check", "p.yaml", "--json")
    assert ran.code == 0
    by_setting = {one["setting"]: one for one in ran.json["enforced"]}
    assert ran.json["backend"] == "monty"
    assert by_setting["limits.memory"]["control"] == "memory_limit"
    assert by_setting["limits.memory"]["who"] == "the language"
    assert by_setting["screen.modules.deny"]["who"] == "the screen alone"


@pytest.mark.parametrize(
    ("text", "options", "code", "message"),
    [
        ("sandbox: {only: [monty]}\nallow: [shell]", (), 0, "no enabled backend can open `allow: shell`"),
        (
            "sandbox: {only: [monty]}\nallow: [shell]",
            ("--fail-on-warn",),
            1,
            "p.yaml is valid, with 1 warning",
        ),
        ("rules: [{id: a, deny: shell}]", (), 2, "the rule `a` can never change anything"),
        ("allow: [shell]\ndeny: [shell]", (), 2, "`allow: shell` can never matter"),
        ("alow: [shell]", (), 2, "unknown key `alow`"),
    ],
)
def test_check_says_what_is_wrong_and_exits_accordingly(
    own_directories: Path, text: str, options: tuple[str, ...], code: int, message: str
) -> None:
    Path("p.yaml").write_text(f"licet: 1\n{text}\n")
    ran = licet("policy", "check", "p.yaml", *options)
    assert ran.code == code
    assert message in ran.err
    as_json = licet("policy", "check", "p.yaml", *options, "--json")
    assert as_json.code == code
    assert as_json.json["valid"] is (code != 2)
    assert all(one["where"]["file"].endswith("p.yaml") for one in as_json.json["findings"])


def test_show_proves_what_is_in_force(own_directories: Path) -> None:
    Path("p.yaml").write_text("licet: 1\nwithin: [./org.yaml]\nlimits: {memory: 1GiB}\n")
    Path("org.yaml").write_text("licet: 1\nname: org\nlimits:\n  memory: 64MiB\n")
    ran = licet("policy", "show", "p.yaml", "--effective")
    rows = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert "limits.memory 64 MiB org.yaml:4:3" in rows
    assert "not 1 GiB p.yaml:3:10" in rows
    assert "limits.wall_time 1 min default" in rows
    shown = licet("policy", "show", "p.yaml", "--json").json
    assert [(one["role"], one["name"]) for one in shown["documents"]] == [("root", None), ("bound", "org")]
    pinned = f"licet: 1\nwithin: [{{file: org.yaml, sha256: {shown['documents'][1]['sha256']}}}]\n"
    Path("pinned.yaml").write_text(pinned)
    assert licet("policy", "check", "pinned.yaml").code == 0


def test_diff_tells_changes_in_words(own_directories: Path) -> None:
    Path("a.yaml").write_text("licet: 1\nlimits: {memory: 2GiB}\nask: [tool refund]\n")
    Path("b.yaml").write_text("licet: 1\nlimits: {memory: 128MiB}\nallow: [tool refund, read ./data]\n")
    ran = licet("policy", "diff", "a.yaml", "b.yaml")
    assert (ran.code, [" ".join(line.split()) for line in ran.out.splitlines()]) == (
        1,
        [
            "change where",
            "looser may now read ./data b.yaml:3",
            "looser no longer asks before calling refund b.yaml:3",
            "tighter memory 2 GiB → 128 MiB b.yaml:2:10",
        ],
    )
    assert "2 looser, 1 tighter" in ran.err
    same = licet("policy", "diff", "a.yaml", "a.yaml", "--json")
    assert (same.code, same.json["changes"]) == (0, [])


def test_the_schema_is_written_to_stdout() -> None:
    ran = licet("policy", "schema")
    assert ran.code == 0
    assert ran.json["required"] == ["licet"]
