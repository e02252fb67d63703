"""Records that a forger appended to a log in good form: each is judged, and shown without harm."""

from collections.abc import Callable

import pytest
from forging import failed, verify
from licet.cli.app import execute
from licet.record import Entry, Record
from licet.state import StateDirectory

Append = Callable[..., list[Record]]
Make = Callable[..., Entry]


@pytest.mark.parametrize("name", ["a\0b", "", ".", "..", "x" * 300, "../log.lock"])
def test_a_tail_that_no_file_can_be_is_missing(
    state: StateDirectory, append: Append, entry: Make, name: str
) -> None:
    append([entry("log", "", event="torn_tail_quarantined", file=name, sha256="0")])
    result = verify(state)
    assert (result.status, set(failed(result))) == ("incomplete", {"quarantine"})
    assert failed(result)["quarantine"].endswith("is gone")


@pytest.mark.parametrize("missing", [-1, 0, True, "1", None])
def test_a_gap_of_no_number_explains_nothing(
    state: StateDirectory, append: Append, entry: Make, missing: object
) -> None:
    append([entry("log", "", event="gap", missing=missing), entry("execution", "a", "before")])
    result = verify(state)
    assert (result.status, set(failed(result))) == ("tampered", {"gaps", "contradictions"})
    assert failed(result)["gaps"].startswith("0 records")


def test_headings_that_come_from_records_are_shown_without_harm(
    state: StateDirectory, append: Append, entry: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = "\0\x1b]0;x\x07\u202e[bold]"
    append([entry("request", "a"), entry("decision", "a", effect=hostile), entry("result", "a", "after")])
    assert execute(["audit", "query", "--by", "backend", "--state", str(state.path)]) == 0
    shown = capsys.readouterr().out
    assert "\\x00\\x1b]0;x\\x07\\u202e[bold]" in shown
    assert not set(shown) & set(hostile) - set("]0;x[bold")
