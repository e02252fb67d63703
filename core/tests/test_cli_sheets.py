"""Text for somebody who decides by it: exact, whole, and nothing in it looks like a line of licet's own."""

from __future__ import annotations

import io
import os
import re

import click
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from licet.cli.sheets import Sheet, split
from licet.output import escape, reveal
from rich.cells import cell_len

HOSTILE = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from("‹›\u202e\u2066\u200b\x1b\x07\r\n\t\u00a0\u3000漢 │↪"),
    )
)


@given(HOSTILE)
@example("‹U+202E›")
@example("a\u202eb‹c")
def test_what_is_revealed_can_be_read_back_and_harms_nothing(text: str) -> None:
    shown = reveal(text)
    assert re.sub("‹U\\+([0-9A-F]+)›", lambda match: chr(int(match[1], 16)), shown) == text
    assert escape(shown, newlines=False) == shown
    assert shown.isprintable()


def test_plain_text_stays_as_it_is() -> None:
    assert reveal("refund('o1', 5)  # größer → 漢") == "refund('o1', 5)  # größer → 漢"


class _Screen(io.StringIO):
    """A terminal of 60 columns."""

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return 5


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> _Screen:
    monkeypatch.setattr(os, "get_terminal_size", {5: os.terminal_size((60, 20))}.__getitem__)
    return _Screen()


def lines_of(sheet: Sheet) -> list[str]:
    return click.unstyle(sheet.text()).splitlines()


@given(st.lists(HOSTILE, min_size=1, max_size=4))
def test_no_line_is_wider_than_the_terminal_and_nothing_is_lost(texts: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "get_terminal_size", {5: os.terminal_size((60, 20))}.__getitem__)
        sheet = Sheet(_Screen())
        sheet.numbered(texts)
        sheet.rows([("label", text) for text in texts])
    numbers = [f"  {number} │ " for number in range(1, len(texts) + 1)]
    found: list[str] = []
    for line in click.unstyle(sheet.text()).split("\n")[:-1]:
        assert cell_len(line) <= 60
        if (margin := next((one for one in numbers if line.startswith(one.rstrip())), None)) is not None:
            found.append(line[len(margin) :])
        elif line.startswith("  label"):
            found.append(line[len("  label         ") :])
        else:
            before, sign, rest = line.partition("↪ ")
            assert sign and not before.strip()
            found[-1] += rest
    wanted = [reveal(text.expandtabs(8)) for text in texts] + [reveal(text) for text in texts]
    assert [one.rstrip() for one in found] == [one.rstrip() for one in wanted]


def test_padding_can_not_push_text_into_the_margin(screen: _Screen) -> None:
    sheet = Sheet(screen)
    sheet.numbered(["x = 1  # fine" + " " * 47 + "  2 │ harmless()", "evil()"])
    assert lines_of(sheet)[-1] == "  2 │ evil()"
    assert [line[:6] for line in lines_of(sheet)] == ["  1 │ ", "    ↪ ", "  2 │ "]


def test_ends_of_lines_are_those_of_python() -> None:
    assert split("# safe\revil()\r\nx\n") == ["# safe\r", "evil()", "x"]
    assert split("") == [""]
    assert split("a\x0cb\u2028c\n\n") == ["a\x0cb\u2028c", ""]


def test_a_pipe_gets_one_line_a_row() -> None:
    sheet = Sheet(io.StringIO())
    sheet.rows([("label", "x" * 1000)])
    assert lines_of(sheet) == ["  label         " + "x" * 1000]
