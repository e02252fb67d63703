"""Looking runs up from the command line, as people and programs see it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from licet.cli.app import execute
from licet.errors import UsageError
from licet.record import Entry
from licet.state import StateDirectory
from licet_audit.cli import csvtext, filters

NOW = datetime(2026, 11, 30, 17, 0, tzinfo=UTC)
Make = Callable[..., Entry]


@given(st.text())
def test_a_cell_is_never_a_formula_and_one_line_of_plain_characters(text: str) -> None:
    cell = csvtext.cell(text)
    assert not cell.lstrip(" ").startswith(("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"))
    assert not any(character in cell for character in "\n\r\t\x00\x1b\u202e\u2066\u200b")
    [row] = csv.reader(io.StringIO(csvtext.line([text, "next"]), newline=""))
    assert row == [cell, "next"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("=HYPERLINK(1)", "'=HYPERLINK(1)"),
        ("  @SUM(1)", "'  @SUM(1)"),
        (("-1", "b"), "'-1; b"),
        ((), ""),
        (None, ""),
        (True, "true"),
        (-1, "'-1"),
        ('a"b', 'a"b'),
        ("\tx", "\\tx"),
    ],
)
def test_cells(value: object, expected: str) -> None:
    assert csvtext.cell(value) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-30", "2026-11-30T00:00:00.000000000Z"),
        ("2026-11-30T17:00+02:00", "2026-11-30T15:00:00.000000000Z"),
        ("2h", "2026-11-30T15:00:00.000000000Z"),
        ("7d", "2026-11-23T17:00:00.000000000Z"),
        ("1.5s", "2026-11-30T16:59:58.500000000Z"),
    ],
)
def test_times(text: str, expected: str) -> None:
    assert filters.moment(text, NOW, "since") == expected


@pytest.mark.parametrize("text", ["", "yesterday", "2h30", "99999999d", "-2h", "2026-13-01", "5", "\ud800"])
def test_what_is_no_time_is_an_error(text: str) -> None:
    with pytest.raises(UsageError, match="is no time"):
        filters.moment(text, NOW, "since")


@pytest.fixture
def log(state: StateDirectory, append: Callable[..., Any], entry: Make) -> str:
    """Two runs: one that ran, one that was refused and is hostile."""
    hostile = "=cmd|'/C calc'!A0\x1b[31m\u202e"
    verdict = {"intent": f"network {hostile}:443", "effect": "deny", "source": "declared"}
    append(
        [
            entry("request", "01A", subject={"id": "alice", "type": "user", "tenant": "t1"}),
            entry("decision", "01A", effect="allow", policy="p", rules=[{"rule": "r1", "truth": "true"}]),
            entry("execution", "01A", "before", backend="monty", isolation="language"),
            entry("result", "01A", "after", termination="exited", success=True, usage={"wall_time": "0.5"}),
            entry("request", "01B", subject={"id": hostile, "type": "user"}),
            entry("decision", "01B", effect="deny", policy="p", verdicts=[verdict]),
            entry("result", "01B", "after", termination="policy_denied", success=False, executed=False),
        ]
    )
    return str(state.path)


def ask(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = execute(["audit", *arguments])
    out, err = capsys.readouterr()
    return code, out, err


def test_filters_and_forms(capsys: pytest.CaptureFixture[str], log: str) -> None:
    at = ("query", "--state", log)
    code, out, err = ask(capsys, *at, "--subject", "alice", "--json")
    [run] = json.loads(out)
    assert (code, err) == (0, "")
    assert run == {
        "run_id": "01A",
        "first_seq": 1,
        "last_seq": 4,
        "time": "2026-11-29T17:00:00.000000000Z",
        "subject": "alice",
        "subject_type": "user",
        "tenant": "t1",
        "on_behalf_of": None,
        "effect": "allow",
        "backend": "monty",
        "isolation": "language",
        "termination": "exited",
        "executed": True,
        "duration": 0.5,
        "policy": "p",
        "rules": ["r1"],
        "hosts": [],
        "tools": [],
        "denied": [],
        "approvals": [],
        "approvers": [],
        "approval_state": None,
    }
    assert json.loads(ask(capsys, *at, "--count", "--json")[1]) == {"count": 2}
    assert ask(capsys, *at, "--count", "--decision", "deny")[1] == "1\n"
    assert json.loads(ask(capsys, *at, "--by", "effect", "--json")[1]) == [
        {"effect": "allow", "count": 1, "effects": {"allow": 1}},
        {"effect": "deny", "count": 1, "effects": {"deny": 1}},
    ]
    records = json.loads(ask(capsys, *at, "--records", "--run", "01a", "--json")[1])
    assert [one["seq"] for one in records] == [1, 2, 3, 4]
    assert all(one["leaf"] for one in records)
    assert json.loads(ask(capsys, *at, "--until", "2000-01-01", "--json")[1]) == []
    code, out, err = ask(capsys, *at, "--limit", "1")
    assert "01B" in out and "01A" not in out and err == "the newest 1 of 2 runs: `--limit` takes more\n"


def test_a_spreadsheet_gets_no_formula_and_a_terminal_no_escape(
    capsys: pytest.CaptureFixture[str], log: str
) -> None:
    _, out, _ = ask(capsys, "query", "--state", log, "--csv")
    good, hostile = csv.DictReader(io.StringIO(out, newline=""))
    assert (good["run_id"], good["duration"], good["rules"]) == ("01A", "0.5", "r1")
    assert hostile["subject"] == "'=cmd|'/C calc'!A0\\x1b[31m\\u202e"
    for command in (("query",), ("list",), ("show", "01B"), ("show", "01B", "--all"), ("query", "--records")):
        code, out, _ = ask(capsys, *command, "--state", log)
        assert code == 0 and "\x1b" not in out and "\u202e" not in out, command


@pytest.mark.parametrize(
    ("arguments", "message", "advice"),
    [
        (("--decision", "dny"), "`--decision dny` is unknown", "did you mean `deny`?"),
        (("--termination", "exitd"), "`--termination exitd` is unknown", "did you mean `exited`?"),
        (("--since", "soon"), "`--since soon` is no time", "give a date"),
        (("--since", "1h", "--until", "2h"), "`--until` is not later than `--since`", ""),
        (("--records", "--count"), "`--records` and `--count` ask for different things", ""),
        (("--json", "--csv"), "`--json` and `--csv` ask for different things", ""),
        (("--by", "moon"), "moon", ""),
        (("--limit", "0"), "0", ""),
    ],
)
def test_bad_filters(
    capsys: pytest.CaptureFixture[str], log: str, arguments: tuple[str, ...], message: str, advice: str
) -> None:
    code, _, err = ask(capsys, "query", "--state", log, *arguments)
    assert code == 2
    assert message in err
    assert advice in err


def test_a_name_that_no_run_has_finds_nothing_and_the_nearest_is_told(
    capsys: pytest.CaptureFixture[str], log: str
) -> None:
    code, out, err = ask(capsys, "query", "--state", log, "--backend", "montie", "--json")
    assert (code, json.loads(out)) == (0, [])
    assert err == "! no run in this log has the backend `montie`; did you mean `monty`?\n"
    assert ask(capsys, "query", "--state", log, "--tool", "x")[1:] == (
        "",
        "! no run in this log has the tool `x`; no run has any tool\nno run answers that\n",
    )


def test_one_record_and_none(capsys: pytest.CaptureFixture[str], log: str) -> None:
    code, out, _ = ask(capsys, "show", "#2", "--state", log, "--json")
    assert (code, [one["seq"] for one in json.loads(out)]) == (0, [2])
    for none in ("#99", "#-1", "#x", "#" + "9" * 30, "#٣"):
        code, _, err = ask(capsys, "show", "--state", log, "--", none)
        assert code == 2 and "there is no record" in err
