"""Rolling out a policy, as its authors do it: impact, suggestions, and a run that learns."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from cli import licet

OLD = "licet: 1\nextends: licet:compute\nlearn: true # for now\n"


@pytest.fixture(autouse=True)
def old_policy(own_directories: Path) -> Path:
    (own_directories / "licet.yaml").write_text(OLD)
    return own_directories


def run(code: str, *options: str, policy: str = "licet.yaml") -> int:
    return licet("run", "--policy", policy, "-c", code, *options).code


def impact(text: str, *options: str) -> tuple[int, Any]:
    Path("new.yaml").write_text(f"licet: 1\nextends: licet:compute\n{text}\n")
    done = licet("policy", "impact", "new.yaml", "--json", *options)
    return done.code, done.json


def counts(kinds: Any) -> dict[str, int]:
    return {name: kind["count"] for name, kind in kinds.items()}


def test_impact_of_real_runs() -> None:
    assert [run("1 + 1"), run("open('/srv/a')"), run("import json\njson.dumps(1)")] == [0, 3, 0]
    code, same = impact("learn: true")
    assert (code, same["runs"], same["replayed"], same["changed"]) == (0, 3, 3, False)
    code, asks = impact("learn: true\nask: [run]\napproval: {count: 2, from: [finance]}")
    assert (code, counts(asks["changes"])) == (1, {"allowed → asks": 2})
    assert asks["approvals"]["by_group"] == {"finance": {"newly": 4, "in_all": 4}}
    code, weak = impact("sandbox: {require: {separate_kernel: enforced}}")
    assert (code, counts(weak["changes"])) == (1, {"allowed → unrunnable": 2})
    assert list(weak["changes"]["allowed → unrunnable"]["reasons"]) == [
        "monty: separate_kernel: asked enforced, offered not_enforced"
    ]
    shown = licet("policy", "impact", "new.yaml")
    assert shown.code == 1
    assert shown.out.splitlines()[0].split() == ["what", "change", "runs", "why", "for", "example"]
    assert "runs  allowed → unrunnable  2     2 × monty: separate_kernel" in shown.out
    assert shown.err.startswith("! some answers change")


def test_impact_reads_many_logs_and_says_what_is_none(old_policy: Path) -> None:
    assert run("1") == 0
    (old_policy / "other").mkdir()
    (old_policy / "other" / "licet.yaml").write_text(OLD)
    assert run("2", policy="other/licet.yaml") == 0
    code, found = impact("ask: [run]", "--log", ".licet", "--log", "other/.licet")
    assert (code, counts(found["changes"])) == (1, {"allowed → asks": 2})
    assert [one["log"] for one in found["changes"]["allowed → asks"]["examples"]] == [
        ".licet",
        "other/.licet",
    ]
    assert impact("", "--log", "nowhere")[0] == 7
    assert licet("policy", "impact", "missing.yaml").code == 2


def test_a_suggestion_is_a_patch_that_lets_the_run_through(old_policy: Path) -> None:
    code = "open('data/a.csv')"
    assert run(code) == 3
    done = licet("policy", "suggest")
    assert done.code == 0
    assert done.out == (
        "--- licet.yaml\n+++ licet.yaml\n@@ -1,3 +1,5 @@\n licet: 1\n extends: licet:compute\n"
        " learn: true # for now\n+allow:\n+  - read ./data/a.csv\n"
    )
    assert (old_policy / "licet.yaml").read_text() == OLD, "nothing is applied by itself"
    (old_policy / "p.diff").write_text(done.out)
    subprocess.run(["git", "apply", "-p0", "p.diff"], check=True)
    assert (old_policy / "licet.yaml").read_text() == OLD + "allow:\n  - read ./data/a.csv\n"
    explained = licet("explain", "--policy", "licet.yaml", "-c", code, "--json").json
    assert explained["effect"] == "allow"
    assert licet("policy", "suggest").out == ""


def test_a_suggestion_for_one_run_and_what_no_line_can_allow(old_policy: Path) -> None:
    (old_policy / "licet.yaml").write_text(OLD + "deny: [read /srv]\n")
    assert run("open('/srv/a')") == 3
    assert run("open('/opt/a')") == 3
    first, second = (one["run_id"] for one in licet("audit", "list", "--json").json)
    denied = licet("policy", "suggest", first, "--json")
    assert (denied.code, denied.json["lines"], denied.json["diff"]) == (1, [], "")
    assert list(denied.json["forbidden"]) == [
        f"`read /srv/a` (line 1): {old_policy}/licet.yaml:4 (deny: read /srv)"
    ]
    helped = licet("policy", "suggest", second.lower(), "--json")
    assert (helped.code, [line["entry"] for line in helped.json["lines"]]) == (0, ["read /opt/a"])
    assert helped.json["lines"][0]["reasons"] == [
        {"log": f"{old_policy}/.licet", "run_id": second, "how": "seen in the code", "line": 1}
    ]
    assert licet("policy", "suggest", "ZZZ").code == 2


def test_a_run_that_learns_collects_all_and_opens_nothing(old_policy: Path) -> None:
    code = (
        "name = '/srv/' + str(2)\ntry:\n    open('/srv/1')\nexcept PermissionError:\n"
        "    print('closed')\nopen(name)"
    )
    done = licet("run", "--policy", "licet.yaml", "--learn", "-c", code)
    assert (done.code, done.out) == (1, "closed\n")
    assert "+  - read /srv/1\n+  - read /srv/2\n" in done.err
    seen = licet("run", "--policy", "licet.yaml", "--learn", "--json", "-c", code).json
    assert [line["entry"] for line in seen["suggestion"]["lines"]] == ["read /srv/1", "read /srv/2"]
    assert seen["decision"]["effect"] == "allow"


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        ("extends: licet:compute", "`{folder}/licet.yaml` does not say `learn: true`"),
        (
            "extends: licet:compute\nlearn: true\nwithin: [org.yaml]",
            "the bound `{folder}/org.yaml` says `learn: false`",
        ),
    ],
)
def test_a_run_may_not_learn_unless_policy_says_so(old_policy: Path, policy: str, reason: str) -> None:
    (old_policy / "org.yaml").write_text("licet: 1\nlearn: false\n")
    (old_policy / "licet.yaml").write_text(f"licet: 1\n{policy}\n")
    done = licet("run", "--policy", "licet.yaml", "--learn", "-c", "1", "--json")
    assert (done.code, done.json["termination"], done.json["suggestion"]) == (3, "policy_denied", None)
    assert done.json["detail"] == f"a run may not learn here: {reason.format(folder=old_policy)}"
