"""Lines suggested from recorded runs: what they name, what they leave out, who is against the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from licet import Intent
from licet.backend import Access, Termination, ToolCall
from licet.workbench.history.recorded import runs
from licet.workbench.history.suggest import Suggester, Suggestion
from puppet import HEAD, Puppetry


class Past(Puppetry):
    """Runs under one policy, `policy.yaml`, and what is suggested from them."""

    def run(self, policy: str, *wishes: Access | ToolCall, **fields: Any) -> Termination:
        return self.run_under("policy.yaml", policy, *wishes, **fields).termination

    def suggest(self, **options: Any) -> Suggestion:
        return self.suggested((self.folder / "policy.yaml").read_text(), **options)

    def suggested(self, text: str | None, **options: Any) -> Suggestion:
        with self.runtime("policy.yaml") as runtime:
            suggester = Suggester(runtime.stack, runtime.offers(), text, **options)
        for run in runs("log", self.log.records()):
            suggester.add(run)
        return suggester.finish()


@pytest.fixture
def past(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Past:
    return Past(tmp_path, monkeypatch)


def entries(found: Suggestion) -> list[str]:
    return [line.entry for line in found.lines]


def test_lines_name_what_the_code_shows_and_let_it_through(past: Past) -> None:
    code = "open('data.csv')\nopen('/srv/b', 'w')\nimport os\nos.system('id')"
    policy = "allow:\n  - tool find # mine\n"
    assert past.run(policy, code=code) is Termination.policy_denied
    found = past.suggest()
    assert entries(found) == ["read ./data.csv", "shell", "write /srv/b"]
    assert found.text == HEAD + policy + "  - read ./data.csv\n  - shell\n  - write /srv/b\n"
    assert found.diff("policy.yaml") == (
        "--- policy.yaml\n+++ policy.yaml\n@@ -2,3 +2,6 @@\n sandbox: {evidence: declared}\n"
        " allow:\n   - tool find # mine\n+  - read ./data.csv\n+  - shell\n+  - write /srv/b\n"
    )
    assert [(line.reasons[0].how, line.reasons[0].line) for line in found.lines] == [
        ("seen in the code", 1),
        ("seen in the code", 4),
        ("seen in the code", 2),
    ]
    assert [line.opens for line in found.lines] == [
        f"reading `{past.folder}/data.csv`",
        "starting any program",
        "writing `/srv/b`",
    ]
    assert (found.passing, found.forbidden.total, found.hidden.total, found.problem) == (1, 0, 0, None)
    assert past.run(found.text.removeprefix(HEAD), code=code) is Termination.exited


def test_nothing_is_suggested_to_runs_that_have_what_they_want(past: Past) -> None:
    past.run("allow: [read /srv]", Access("read", "/srv/a"), code="open('/srv/a')")
    found = past.suggest()
    assert (found.lines, found.text, found.diff("x"), found.passing) == ((), None, "", 0)


def test_accesses_and_calls_that_were_refused_while_it_ran(past: Past) -> None:
    wishes = (Access("read", "/srv/a"), Access("write", "/srv/b"), ToolCall("find", ()))
    past.run("", *wishes, tools={"find": print})
    found = past.suggest()
    assert entries(found) == ["read /srv/a", "tool find", "write /srv/b"]
    assert {line.reasons[0].how for line in found.lines} == {
        "refused while it ran",
        "refused when it was called",
    }


@pytest.mark.parametrize(
    ("policy", "code", "forbidden"),
    [
        ("deny: [read /srv]", "open('/srv/a')", "`read /srv/a` (line 1): {root}:3 (deny: read /srv)"),
        ("rules: [{id: r, deny: 'read /srv'}]", "open('/srv/a')", "`read /srv/a` (line 1): {root}:3 (r)"),
        ("within: [org.yaml]", "open('/srv/a')", "`read /srv/a` (line 1): {folder}/org.yaml (no `read`)"),
        (
            "",
            "open('policy.yaml')",
            "`read {root}` (line 1): `{root}` belongs to licet itself and is never opened",
        ),
        (
            "screen: {modules: {deny: [json]}}",
            "import json",
            "`json`: the policy denies the module: `screen.modules.deny` of the policy",
        ),
        (
            "",
            "eval('1')",
            "text or an object is turned into code at run time (line 1): the screen",
        ),
    ],
)
def test_what_somebody_forbids_is_told_and_not_suggested(
    past: Past, policy: str, code: str, forbidden: str
) -> None:
    (past.folder / "org.yaml").write_text("licet: 1\nallow: [read /usr]\n")
    past.run(policy, code=f"{code}\nimport os\nos.system('id')")
    found = past.suggest()
    assert entries(found) == []
    names = {"root": past.folder / "policy.yaml", "folder": past.folder}
    assert found.forbidden.as_json() == {forbidden.format(**names): 1}


def test_a_request_that_lists_its_intents_is_told_to_list_them(past: Past) -> None:
    past.run("allow: [read /srv]", code="open('/srv/a')", intents=(Intent("read", "/srv/b"),))
    found = past.suggest()
    assert entries(found) == []
    [what] = found.forbidden.as_json()
    assert what.endswith("not declared: the request lists its intents, and this is none of them")


def test_a_target_that_nobody_knows_is_hidden_until_a_run_learns_it(past: Past) -> None:
    code = "name = input()\nopen(name)"
    past.run("learn: true", code=code)
    found = past.suggest()
    assert (entries(found), found.hidden.as_json()) == ([], {"`read (unknown)`": 1})
    assert past.run("learn: true", Access("read", "/srv/a"), code=code, learn=True) is Termination.exited
    assert entries(past.suggest()) == ["read /srv/a"]


def test_a_directory_takes_the_place_of_enough_files(past: Past) -> None:
    files = [Access("read", f"/srv/d/{n}") for n in range(4)]
    past.run("", *files)
    assert entries(past.suggest()) == [f"read /srv/d/{n}" for n in range(4)]
    found = past.suggest(directory_after=4)
    assert entries(found) == ["read /srv/d"]
    [line] = found.lines
    assert line.opens == "reading `/srv/d` and everything in it, of which 4 files were seen"
    assert (line.count, line.files, len(line.reasons)) == (4, 4, 3)


@pytest.mark.parametrize("policy", ["deny: [read /srv/d/secret]", "ask: [read /srv/d/secret]"])
def test_no_directory_around_what_somebody_spoke_of(past: Past, policy: str) -> None:
    past.run(policy, *[Access("read", f"/srv/d/{n}") for n in range(4)])
    assert entries(past.suggest(directory_after=2)) == [f"read /srv/d/{n}" for n in range(4)]


def test_no_directory_around_what_is_sealed(past: Past) -> None:
    past.run("", *[Access("read", str(past.folder / f"f{n}")) for n in range(4)])
    assert entries(past.suggest(directory_after=2)) == [f"read ./f{n}" for n in range(4)]


def test_a_wider_line_makes_narrower_ones_needless(past: Past) -> None:
    past.run("", Access("read", "/srv/d"), Access("read", "/srv/d/x"), Access("read", "/srv/dx"))
    assert entries(past.suggest()) == ["read /srv/d", "read /srv/dx"]


def test_a_name_that_no_entry_can_spell_is_told(past: Past) -> None:
    past.run("", Access("read", "/srv/a except b"), Access("read", "/srv/ok"))
    found = past.suggest()
    assert found.forbidden.as_json() == {"`read /srv/a except b`: no entry can spell it": 1}


def test_a_pack_is_nobodys_to_change(past: Past) -> None:
    past.run("", code="open('/srv/a')")
    found = past.suggested(None)
    assert (entries(found), found.text) == (["read /srv/a"], None)
    assert found.problem == (
        f"`{past.folder}/policy.yaml` is no file of yours: extend it in one, and add the lines there"
    )


def test_learning_is_for_policies_that_say_so(past: Past) -> None:
    (past.folder / "org.yaml").write_text("licet: 1\nlearn: false\n")
    code = "open('/srv/a')"
    assert past.run("", code="1", learn=True) is Termination.policy_denied
    assert past.run("learn: true\nwithin: [org.yaml]", code="1", learn=True) is Termination.policy_denied
    assert past.run("learn: true", code=code) is Termination.policy_denied
    assert past.run("learn: true", code=code, learn=True) is Termination.exited
    assert past.run("learn: true\ndeny: [read /srv]", code=code, learn=True) is Termination.policy_denied
    kept = [(r.entry.kind, r.entry.body["learn"]) for r in past.log.records() if "learn" in r.entry.body]
    assert kept[::2] == [
        ("request", True),
        ("request", True),
        ("request", False),
        ("request", True),
        ("request", True),
    ]
    assert kept[1::2] == [
        ("decision", False), ("decision", False), ("decision", False), ("decision", True), ("decision", True)
    ]  # fmt: skip


def test_a_line_that_a_bound_would_ask_about_helps_no_access(past: Past) -> None:
    (past.folder / "org.yaml").write_text("licet: 1\nask: [read /srv]\n")
    past.run("within: [org.yaml]", Access("read", "/srv/a"))
    found = past.suggest()
    assert (entries(found), found.passing) == ([], 0)
    assert found.forbidden.as_json() == {
        f"`read /srv/a`: {past.folder}/org.yaml:2 asks about it, and the request does not name it": 1
    }
