"""Scrubbing from end to end: by what licet ships, by a stranger, and where an administrator demands it."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cli import licet
from licet import ExecutionResult, Runtime, Settings, Termination, runtime
from licet.record import MemoryLog
from licet.scrubbing import Finding
from licet.settings import under_administrator

KEY = "glpat-" + "x7Qz9LmP3kW8vN2rT5yB"
CODE = f"print('key', {KEY!r})\n{KEY!r}"
STRANGER = """
from licet.hookspecs import hookimpl
from licet.scrubbing import Secret
@hookimpl
def licet_scrub(text):
    at = text.find("42")
    return [Secret("answer", at, at + 2)] if at >= 0 else []
"""
BROKEN = "import no_such_module_at_all\n" + STRANGER


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a plugin `stranger` of this name is listed; a test writes its module."""
    site = tmp_path / "site"
    known = site / "stranger-1.dist-info"
    known.mkdir(parents=True)
    (known / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1\n")
    (known / "entry_points.txt").write_text(f"[licet]\nstranger = stranger_{tmp_path.name}\n")
    monkeypatch.syspath_prepend(site)
    monkeypatch.setenv("PYTHONPATH", str(site))
    monkeypatch.chdir(tmp_path)
    return site


def write(site: Path, text: str) -> None:
    (site / f"stranger_{site.parent.name}.py").write_text(text)


def run(code: str, *enabled: str) -> tuple[ExecutionResult, dict[str, Any]]:
    """Run code, and the body of the record of its result."""
    log = MemoryLog()
    with Runtime(log=log, settings=Settings(enabled=("monty", "policies", *enabled))) as licet:
        result = licet.run_sync(code)
    [body] = [one.entry.body for one in log.records() if one.entry.kind == "result"]
    return result, json.loads(json.dumps(body, default=dict))


def test_what_code_leaves_is_scrubbed_by_default(site: Path) -> None:
    result, body = run(CODE, "secrets")
    assert (result.stdout, result.value) == ("key [redacted: gitlab_pat]\n", "[redacted: gitlab_pat]")
    assert result.scrubbed == (Finding("stdout", "gitlab_pat", 1), Finding("value", "gitlab_pat", 1))
    assert body["scrubbers"] == ["secrets"]
    assert KEY not in json.dumps(body)
    untouched, body = run(CODE)  # the twin
    assert (untouched.value, body["scrubbers"]) == (KEY, [])


def test_a_stranger_sees_every_text_however_plain(site: Path) -> None:
    write(site, STRANGER)
    result, body = run("42", "secrets", "stranger")
    assert (result.value, result.value_repr) == (42, "[redacted: answer]")
    assert body["scrubbers"] == ["secrets", "stranger"]


@pytest.mark.parametrize("text", [BROKEN, None])
def test_one_that_an_administrator_demands_and_that_is_broken_lets_nothing_run(
    site: Path, monkeypatch: pytest.MonkeyPatch, text: str | None
) -> None:
    managed = site / "config.toml"
    managed.write_text('enabled = ["stranger"]\n')
    monkeypatch.setattr(runtime, "under_administrator", partial(under_administrator, managed=managed))
    if text is not None:
        write(site, text)
    result, _ = run("42")
    assert result.termination is Termination.policy_denied
    denied = (
        "`stranger` denies it: the administrator enables the plugin `stranger`, and it can't be used here"
    )
    assert result.detail == denied


def test_one_that_an_administrator_demands_runs_whatever_a_program_enables(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    managed = site / "config.toml"
    managed.write_text('enabled = ["stranger"]\n')
    monkeypatch.setattr(runtime, "under_administrator", partial(under_administrator, managed=managed))
    write(site, STRANGER)
    result, body = run("42")
    assert (result.value_repr, body["scrubbers"]) == ("[redacted: answer]", ["stranger"])


def test_the_command_line_shows_nothing_of_it(site: Path) -> None:
    ran = licet("run", "--json", "-c", CODE)
    assert (ran.code, KEY in ran.out + ran.err) == (0, False)
    assert ran.json["scrubbed"] == [
        {"channel": "stdout", "kind": "gitlab_pat", "count": 1, "reason": None},
        {"channel": "value", "kind": "gitlab_pat", "count": 1, "reason": None},
    ]


def test_where_the_detector_is_missing_run_doctor_and_record_say_so(site: Path) -> None:
    (site / "sitecustomize.py").write_text("import sys\nsys.modules['kingfisher_sdk'] = None\n")
    told = "plugin `secrets` works without its detector: `pip install 'licet[secrets]'`"
    ran = licet("run", "--json", "-c", "'ghp_' + 'aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5'")
    assert (ran.json["value"], told in ran.err) == ("[redacted: github_token]", True)
    shown = licet("audit", "show", ran.json["run_id"], "--json")
    assert "secrets (no detector)" in shown.out
    assert told in " ".join(licet("doctor", timeout=120).out.split())
