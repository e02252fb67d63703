"""`licet policy test` as authors and build servers meet it."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from .cli import licet

POLICY = """\
licet: 1
allow: [tool refund]
tools: {refund: {order: string, amount: decimal}}
rules:
  - id: big-refund
    ask: tool refund
    if: args.amount > 100
    tests:
      - {tool: refund, args: {order: A1, amount: 250}, expect: ask}
      - {tool: refund, args: {order: A1, amount: 100}, expect: allow}
"""
TESTS = """\
policy: ./licet.yaml
tests:
  - {name: small refunds, tool: refund, args: {order: A1, amount: 5}, expect: allow}
"""


@pytest.fixture(autouse=True)
def policy(own_directories: Path) -> Path:
    (own_directories / "licet.yaml").write_text(POLICY)
    return own_directories


def test_tests_that_pass(policy: Path) -> None:
    (policy / "more.test.yaml").write_text(TESTS)
    ran = licet("policy", "test")
    assert (ran.code, ran.out) == (0, "")
    assert re.search(r"✓ licet.yaml: 3 tests passed +licet.yaml@[0-9a-f]{4}\n", ran.err)
    assert "coverage    100 %, 6 of 6 outcomes\n" in ran.err


def test_a_test_that_fails_says_what_was_found_and_why(policy: Path) -> None:
    (policy / "more.test.yaml").write_text(TESTS.replace("amount: 5", "amount: 500"))
    ran = licet("policy", "test")
    here = policy.resolve()
    assert (ran.code, ran.out) == (
        1,
        "✗ small refunds\n"
        "    effect: expected allow, found ask\n"
        f"    `tool refund`: ask, the rule `big-refund` ({here}/licet.yaml:5) asks about it\n"
        "    in more.test.yaml:3:5\n",
    )
    assert "✗ licet.yaml: 1 of 3 tests failed" in ran.err


def test_a_test_of_a_rule_that_does_not_exist_is_an_error(policy: Path) -> None:
    (policy / "more.test.yaml").write_text(TESTS.replace("name: small", "rule: big-refnd, name: small"))
    ran = licet("policy", "test")
    assert (ran.code, ran.out) == (2, "")
    assert "this tests the rule `big-refnd`, and there is none of that name" in ran.err
    assert "more.test.yaml:3:6" in ran.err
    assert "did you mean `big-refund`?" in ran.err


def test_what_is_not_covered_is_told_with_the_reason_and_can_fail(policy: Path) -> None:
    (policy / "licet.yaml").write_text(POLICY[: POLICY.rindex("      - {tool")])
    assert licet("policy", "test").code == 0
    ran = licet("policy", "test", "--min-coverage", "80")
    assert ran.code == 1
    told = "`args.amount > 100` of `big-refund` was never false"
    line = next(line for line in ran.out.splitlines() if line.startswith(told))
    assert re.fullmatch(re.escape(told) + r" +it is true in the only case +licet.yaml:7:9", line)
    assert "4 of 6 outcomes, 80 % are asked for" in ran.err
    assert licet("policy", "test", "--min-coverage", "66").code == 0


def test_nothing_tested_is_no_pass(policy: Path) -> None:
    (policy / "licet.yaml").write_text("licet: 1\n")
    ran = licet("policy", "test")
    assert (ran.code, "there is no test in `licet.yaml`" in ran.err) == (2, True)
    assert licet("policy", "test", "-k", "nobody").code == 2


def test_a_warning_fails_only_on_request(policy: Path) -> None:
    (policy / "org.yaml").write_text("licet: 1\ndeny: [tool refund]\n")
    (policy / "licet.yaml").write_text(POLICY.replace("licet: 1\n", "licet: 1\nwithin: [./org.yaml]\n"))
    ran = licet("policy", "test")
    assert ran.code == 0  # the rule itself behaves as its tests say
    assert "`allow: tool refund` opens nothing: the bound `" in ran.err
    assert licet("policy", "test", "--fail-on-warn").code == 1


def test_some_tests_say_nothing_of_coverage() -> None:
    ran = licet("policy", "test", "-k", "BIG-REFUND", "--json")
    assert (ran.code, ran.json["passed"]) == (0, True)
    [one] = ran.json["policies"]
    assert (one["failed"], one["coverage"], len(one["tests"])) == (0, None, 2)
    assert licet("policy", "test", "-k", "big", "--min-coverage", "1").code == 2


def test_programs_read_all_of_it() -> None:
    ran = licet("policy", "test", "licet.yaml", "--json")
    [one] = ran.json["policies"]
    assert one["tests"][1] == {
        "name": "tool refund, args {order: A1, amount: 100}",
        "rule": "big-refund",
        "where": f"{Path.cwd().resolve()}/licet.yaml:10:9",
        "passed": True,
        "effect": "allow",
        "own": "allow",
        "state": "miss",
        "shortfalls": [],
        "notes": ["`if` `args.amount > 100` is false"],
        "managed": [],
    }
    assert one["coverage"] == {"percent": 100.0, "covered": 6, "possible": 6, "missing": []}


def test_a_hostile_name_harms_neither_a_terminal_nor_a_build_server(policy: Path) -> None:
    (policy / "more.test.yaml").write_text(
        TESTS.replace("small refunds", r'"\e[31m</testcase>\x07\uFFFE"').replace(
            "expect: allow", "expect: ask"
        )
    )
    ran = licet("policy", "test", "--junit", "out.xml")
    assert ran.code == 1
    assert r"✗ \x1b[31m</testcase>\x07\ufffe" in ran.out
    [suite] = ElementTree.parse(policy / "out.xml").getroot()
    assert (suite.get("name"), suite.get("tests"), suite.get("failures")) == ("licet.yaml", "3", "1")
    assert suite[2].get("name") == r"\x1b[31m</testcase>\x07\ufffe"
    assert licet("policy", "test", "--junit", "no/such/out.xml").code == 2


def test_changes_that_no_test_notices_are_told(policy: Path) -> None:
    (policy / "licet.yaml").write_text(POLICY[: POLICY.rindex("      - {tool")])
    ran = licet("policy", "test", "--mutate", "--json")
    [one] = ran.json["policies"]
    assert (ran.code, [(found["rule"], found["change"]) for found in one["unnoticed"]]) == (
        0,
        [("big-refund", "that always applies")],
    )
    ran = licet("policy", "test", "--mutate", "--fail-on-warn")
    assert (ran.code, "`big-refund` that always applies" in ran.out) == (1, True)
