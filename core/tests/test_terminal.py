"""Cards: folded below their label on a terminal, a line a row for programs, on the stream that was meant."""

from __future__ import annotations

import os
import sys

import pytest
from licet.cli.terminal import Card, show_card

ROW = "run `licet audit verify --state DIRECTORY` where it was seen before, 0123456789abcdef0123456789abcdef"
CARD = Card("good", "proven", rows=[("you can", ROW), ("", "x")])


@pytest.mark.parametrize("err", [True, False])
def test_a_terminal_gets_lines_that_fit_and_whole_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, err: bool
) -> None:
    stream = sys.stderr if err else sys.stdout
    monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setattr(stream, "fileno", lambda: 5)
    monkeypatch.setattr(os, "get_terminal_size", {5: os.terminal_size((48, 20))}.__getitem__)
    monkeypatch.setenv("NO_COLOR", "1")
    show_card(CARD, err=err)
    out, other = capsys.readouterr()
    assert ((other if err else out).splitlines(), out if err else other) == (
        [
            "✓ proven",
            "  you can     run `licet audit verify --state",
            "              DIRECTORY` where it was seen",
            "              before,",
            "              0123456789abcdef0123456789abcdef",
            " " * 14 + "x",
        ],
        "",
    )


def test_a_pipe_gets_one_line_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    show_card(CARD)
    assert capsys.readouterr().err.splitlines()[1] == f"  you can     {ROW}"
