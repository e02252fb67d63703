"""The schema marks what licet refuses, and nothing that licet loads."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator
from licet.errors import InvalidPolicy
from licet.policy.document import RESERVED
from licet.policy.yaml import load
from licet.testing import strategies
from licet.testing.strategies import document_of
from licet.workbench.schema import EDITOR_LINE, FILE_NAME, schema, schema_of_tests

ROOT = Path(__file__).parents[2]
VALIDATOR = Draft202012Validator(schema())

WHOLE = """\
licet: 1
name: acme/agents
extends: licet:compute
within: [./org.yaml, licet:nothing]
allow: [read ./data, write workdir/out, "network *.example.com:443 except a.example.com:443",
  "network [::1]:80", network any, network private, "network 10.0.0.0/8:443", tool find_*, shell, run]
ask: ["tool refund* except refund_all"]
deny: [network example.com, "network [fc00::/7]", network any, "network *.example.com"]
limits: {wall_time: 1.5m, cpu_time: 30, memory: 2GiB, processes: 1, code: 1MiB, stdin: 64kB, stdout: 1000,
  stderr: 1MiB, output: 16MiB, files: 1GiB, recursion: 500, tool_calls: 20}
env: {LANG: C.UTF-8, TZ: pass}
screen: {mode: report, modules: {deny: [ctypes]}}
sandbox: {require: {network_deny: enforced}, evidence: probed, only: [monty], prefer: [monty]}
approval: {count: 2, from: [finance], reviewer: human, expires: 1d, unattended: queue}
audit: {mode: required, content: digest}
tools: {refund: {order: string, amount: decimal?, lines: list of int}, now: {}}
learn: true
mode: enforce
rules:
  - id: one
    deny: run
    ask: [tool refund]
    during: [{days: sat, zone: Europe/Berlin}, {days: [mon-fri], hours: ["22:00-06:00"], zone: UTC}]
    unless: {group: [oncall, ops], property.level: 3, before: 2026-03-01}
    limits: {memory: 1MiB}
    sandbox: {require: {timeout: partial}}
    approval: {count: 3}
    audit: {mode: required}
    tests: [{run: true, expect: deny}]
  - {id: two, deny: [shell], if: [{tenant: a}, {after: "2026-03-01T12:00:00+01:00"}]}
"""


def problems(text: str) -> list[str]:
    return [error.message for error in VALIDATOR.iter_errors(load(text.encode(), "f"))]


def policies() -> list[Path]:
    found = [*ROOT.glob("policies/**/*.yaml"), *ROOT.glob("docs/**/*.yaml")]
    return [path for path in found if ".venv" not in path.parts and not path.name.endswith(".test.yaml")]


def test_the_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(schema())


def test_a_policy_that_uses_the_whole_language_is_valid() -> None:
    assert document_of(WHOLE)
    assert problems(WHOLE) == []


@pytest.mark.parametrize("path", policies(), ids=lambda path: path.stem)
def test_every_policy_of_this_repository_is_valid(path: Path) -> None:
    text = path.read_text("utf-8")
    if text.lstrip().startswith(("licet:", "#")) and "\nlicet: 1\n" in f"\n{text}":
        assert problems(text) == []


TESTS = [path for path in ROOT.glob("**/*.test.yaml") if ".venv" not in path.parts]


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.name)
def test_every_file_of_tests_is_valid(path: Path) -> None:
    found = Draft202012Validator(schema_of_tests()).iter_errors(load(path.read_bytes(), path.name))
    assert [error.message for error in found] == []


@pytest.mark.parametrize(
    "text",
    [
        "tests: [{run: true, expect: allow}]",
        "policy: p.yaml\ntests: []",
        "policy: p.yaml\ntests: [{run: true}]",
        "policy: p.yaml\ntests: [{expect: allow}]",
        "policy: p.yaml\ntests: [{run: true, expect: alow}]",
        "policy: p.yaml\ntests: [{run: true, expect: allow, subjekt: {}}]",
        "policy: p.yaml\ngiven: {expect: allow}\ntests: [{run: true, expect: allow}]",
    ],
)
def test_a_broken_file_of_tests_is_marked(text: str) -> None:
    assert list(Draft202012Validator(schema_of_tests()).iter_errors(load(text.encode(), "f")))


def test_every_policy_in_the_docs_is_valid() -> None:
    page = (ROOT / "docs/reference/policy.md").read_text("utf-8")
    blocks = [one for one in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if one.startswith("licet: 1")]
    assert blocks
    assert [problems(block) for block in blocks] == [[]] * len(blocks)


@settings(deadline=None)
@given(strategies.policies())
def test_whatever_loads_is_valid(policy: strategies.Policy) -> None:
    assert problems(policy.text) == []


@pytest.mark.parametrize(
    "text",
    [
        "name: no-version",
        "licet: 2",
        "licet: 1\nalow: [shell]",
        "licet: 1\nallow: shell",
        "licet: 1\nallow: [raed ./data]",
        "licet: 1\nallow: [network example.com]",
        "licet: 1\nallow: [read]",
        "licet: 1\nallow: [shell ./x]",
        "licet: 1\nallow: [tool 1st]",
        "licet: 1\nlimits: {memroy: 1MiB}",
        "licet: 1\nlimits: {memory: lots}",
        "licet: 1\nlimits: {memory: 0}",
        "licet: 1\nlimits: {processes: 1.5}",
        "licet: 1\nsandbox: {require: {netwrok_deny: enforced}}",
        "licet: 1\nsandbox: {require: {network_deny: planned}}",
        "licet: 1\nsandbox: {evidence: proven}",
        "licet: 1\nscreen: {mode: ignore}",
        "licet: 1\napproval: {count: 0}",
        "licet: 1\nenv: {A: 1}",
        "licet: 1\ntools: {f: {a: integer}}",
        "licet: 1\nrules: [{deny: run}]",
        "licet: 1\nrules: [{id: a b, deny: run}]",
        "licet: 1\nrules: [{id: a, allow: shell}]",
        "licet: 1\nrules: [{id: a, deny: run, if: {tennant: a}}]",
        "licet: 1\nrules: [{id: a, deny: run, if: {}}]",
        "licet: 1\nrules: [{id: a, deny: run, if: []}]",
        "licet: 1\nrules: [{id: a, deny: run, during: {days: [caturday], zone: UTC}}]",
        "licet: 1\nrules: [{id: a, deny: run, during: {hours: 9-17, zone: UTC}}]",
        "licet: 1\nmode: shadow",
        "licet: 1\nrules: [{id: a, deny: run, tests: [{run: true, expct: deny}]}]",
        "licet: 1\nrules: [{id: a, deny: run, tests: [{rule: a, run: true, expect: deny}]}]",
        *(f"licet: 1\n{key}: x" for key in RESERVED),
        "licet: 1\nfile: x",
        "licet: 1\nplaces: {}",
    ],
)
def test_what_licet_refuses_is_marked(text: str) -> None:
    with pytest.raises(InvalidPolicy):
        document_of(text)
    assert problems(text)


def test_nothing_in_the_schema_is_open_by_omission() -> None:
    def objects(part: Any) -> list[dict[str, Any]]:
        inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else []
        found = [one for each in inner for one in objects(each)]
        return [*found, part] if isinstance(part, dict) and part.get("type") == "object" else found

    open_ones = [one for one in objects(schema()) if "additionalProperties" not in one]
    assert open_ones == []


def test_the_line_for_editors_names_no_place_of_this_machine() -> None:
    assert (EDITOR_LINE, FILE_NAME) == (
        "# yaml-language-server: $schema=./licet.schema.json",
        "licet.schema.json",
    )
