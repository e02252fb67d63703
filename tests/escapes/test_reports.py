"""The ledger of field reports: each row of the corpus has its test in `reports/`, or waits for an issue."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

HERE = Path(__file__).parent
COPY = HERE / "data" / "reports.jsonl"
CORPUS = HERE.parents[2] / "shared" / "corpus" / "reports.dev.jsonl"

_APPROVALS = "issue 7: there is no approval service, so that every ask is denied"
_WINDOWS = "issue 3: no backend runs on Windows yet"

NOT_YET = {
    **dict.fromkeys([f"report-approval-{n:02}" for n in (2, 4, 5, 6, 7)], _APPROVALS),
    "report-audit-log-04": "issue 5: there is no hook that scrubs; digests alone are kept, and no preview",
    "report-backend-selection-03": "issue 6: there is no system call filter",
    "report-environment-05": _WINDOWS,
    "report-environment-06": _WINDOWS,
    "report-libraries-in-guest-01": "issue 6: no packages reach the code, and so no matplotlib",
    "report-network-policy-04": "issue 6: no backend opens single hosts, and no broker connects for code",
    "report-output-capture-07": "issue 10: two streams without times; `stream` will give pieces as they come",
    "report-output-capture-09": "issue 10: output is not yet handed to a model, labelled and bounded",
    "report-resources-01": "issue 6: no backend caps the processes of a run while it lets it start any",
    "report-workdir-paths-09": "issue 6: runs have no directory of their own that would be removed",
}
"""Rows without a test, each with the issue that brings it and what is missing until then."""


def rows() -> list[str]:
    return re.findall(r'^\{"id": "([^"]+)"', COPY.read_text("utf-8"), re.MULTILINE)


def with_a_test() -> set[str]:
    """The rows that a test is named after."""
    text = "".join(path.read_text("utf-8") for path in sorted((HERE / "reports").glob("test_*.py")))
    names = re.findall(r"^(?:async )?def test_report_([a-z_]+)_(\d\d)", text, re.MULTILINE)
    return {f"report-{kind.replace('_', '-')}-{number}" for kind, number in names}


def test_every_report_is_tested_or_waits_for_an_issue_and_never_both() -> None:
    assert Counter([*with_a_test(), *NOT_YET]) == Counter(rows())


@pytest.mark.parametrize("reason", set(NOT_YET.values()))
def test_what_waits_names_its_issue(reason: str) -> None:
    assert re.match(r"issue ([3-9]|10): ", reason)


@pytest.mark.skipif(not CORPUS.exists(), reason="needs the corpus in ../shared beside the checkout")
def test_the_copy_is_the_corpus() -> None:
    assert COPY.read_bytes() == CORPUS.read_bytes()
