"""`licet explain` from outside: request files, runs of the log, and what it advises."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli import licet

POLICY = """\
licet: 1
allow: [read ./data, shell]
within: [./next.yaml]
sandbox: {evidence: declared}
rules:
  - id: freeze
    deny: shell
    unless: {group: nobody-is-in-this-group}
  - id: acme
    limits: {wall_time: 5s}
    if: {tenant: acme}
  - id: slow
    deny: run
    if: request.limits.wall_time > 100
"""
NEXT = "licet: 1\nmode: dry_run\nallow: [read ./data/open]\n"


@pytest.fixture(autouse=True)
def policy() -> None:
    Path("p.yaml").write_text(POLICY)
    Path("next.yaml").write_text(NEXT)


def test_a_request_file_is_explained_and_what_it_advises_passes() -> None:
    request = 'code: |\n  import os\n  os.system("id")\n  6 * 7\nlimits: {wall_time: 3s}\n'
    Path("r.yaml").write_text(request)
    denied = licet("explain", "r.yaml", "--policy", "p.yaml", "--json")
    assert denied.code == 3
    [first, *others] = denied.json["repair"]
    assert (first["kind"], first["text"], first["line"]) == ("remove_line", "remove line 2", 2)
    assert first["leads_to"] == "allow"
    assert first["edits"] == [{"kind": "remove_line", "what": "2", "said": "remove line 2", "to": []}]
    assert [one["kind"] for one in others] == ["other_person", "change_policy"]
    rules = {one["rule"]: one for one in denied.json["rules"]}
    assert {name: one["outcome"] for name, one in rules.items()} == {
        "freeze": "hit",
        "acme": "unknown",
        "slow": "missed",
    }
    assert rules["acme"]["leaves"] == [
        {"clause": "if", "text": "tenant: acme", "truth": "unknown", "why": "nobody said the tenant"}
    ]
    assert [(Path(one["file"]).name, one["role"]) for one in denied.json["documents"]] == [
        ("p.yaml", "root"),
        ("next.yaml", "dry_run"),
    ]
    Path("r.yaml").write_text(request.replace('os.system("id")', "pass"))
    assert licet("explain", "r.yaml", "--policy", "p.yaml").code == 0
    ran = licet("run", "r.yaml", "--policy", "p.yaml")
    assert (ran.code, ran.out) == (0, "42\n")


def test_a_request_file_says_everything_itself_and_never_for_whom() -> None:
    Path("r.json").write_text('{"code": "1"}')
    refused = licet("run", "r.json", "--policy", "p.yaml", "--timeout", "1s")
    assert refused.code == 2
    assert "`--timeout` can't be added" in refused.err
    Path("r.json").write_text('{"code": "1", "subject": {"id": "root", "groups": ["oncall"]}}')
    refused = licet("explain", "r.json", "--policy", "p.yaml", "--json")
    assert refused.code == 2
    assert refused.json["error"]["slug"] == "invalid-request"
    assert "can't say for whom it is" in refused.err


def test_a_card_says_which_rules_count_and_what_a_rehearsed_bound_would_deny() -> None:
    card = licet("explain", "-c", 'import os; os.system("id")', "--read", "data", "--policy", "p.yaml").err
    assert "`freeze` (" in card
    assert "counts as a hit: nobody said the tenant" in card
    assert "1 did not apply" in card
    assert "  dry run     `read " in card
    whole = licet("explain", "-c", "1", "--all", "--policy", "p.yaml").err
    assert "if request.limits.wall_time > 100: false" in whole
    assert "  dry run     next.yaml" in whole


def test_a_run_is_explained_from_its_record() -> None:
    refused = licet("run", "-c", 'import os; os.system("id")', "--policy", "p.yaml", "--json")
    run = refused.json["run_id"]
    told = licet("explain", run, "--json")
    assert told.code == refused.code == 3
    assert told.json["effect"] == "deny"
    assert told.json["policy_digest"] == refused.json["decision"]["policy_digest"]
    assert told.json["policy_now"]["changed"] is False
    assert told.json["termination"] == "policy_denied"
    card = licet("explain", run[:20].lower(), "--policy", "p.yaml")
    assert card.code == 3
    assert "✗ was denied" in card.err
    assert "unchanged since" in card.err
    Path("p.yaml").write_text(POLICY.replace("> 100", "> 99"))
    assert "has changed since" in licet("explain", run).err
    Path("p.yaml").unlink()
    gone = licet("explain", run, "--json")
    assert (gone.code, gone.json["policy_now"]["changed"]) == (3, None)


def test_a_refused_run_names_the_command_that_tells_more() -> None:
    refused = licet("run", "-c", 'import os; os.system("id")', "--policy", "p.yaml")
    [command] = [line.split()[1:] for line in refused.err.splitlines() if line.strip().startswith("more")]
    assert command[:2] == ["licet", "explain"]
    assert licet(*command[1:]).code == 3


def test_an_unknown_run_and_a_state_without_a_run_are_usage() -> None:
    licet("run", "-c", "1", "--policy", "p.yaml")
    unknown = licet("explain", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "--policy", "p.yaml")
    assert unknown.code == 2
    assert "no run in this log" in unknown.err
    assert licet("explain", "-c", "1", "--state", ".licet").code == 2


def test_who_keeps_each_setting_is_said_on_the_card_and_in_json() -> None:
    Path("kept.yaml").write_text("licet: 1\nextends: licet:compute\nscreen: {modules: {deny: [ctypes]}}\n")
    told = licet("explain", "--policy", "kept.yaml", "--json", "-c", "1").json["enforced"]
    kept = {one["setting"]: one["who"] for one in told}
    assert kept["screen.modules.deny"] == "the screen alone"
    assert kept["limits.wall_time"] == "the supervisor"
    assert kept["limits.tool_calls"] == "licet"
    card = licet("explain", "--policy", "kept.yaml", "-c", "1").err
    assert "the screen alone: screen.mode, screen.modules.deny" in card
