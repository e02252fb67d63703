"""What in a text may deceive whoever reads it, and what of others' languages does not."""

from __future__ import annotations

import time

import pytest
from licet.approvals.deceptions import LONG_LINE, TALL_GAP, WIDE_GAP, suspicions


def kinds(text: str) -> list[tuple[int, str, str | None, int]]:
    found = suspicions("code", [text], code=True)
    return [(one["line"], one["kind"], one["character"], one["count"]) for one in found]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("\u202a", (1, "bidi", "U+202A", 1)),
        ("\u200f", (1, "bidi", "U+200F", 1)),
        ("\u061c", (1, "bidi", "U+061C", 1)),
        ("a\n\x08", (2, "control", "U+0008", 1)),
        ("\x9b", (1, "control", "U+009B", 1)),
        ("\u2028", (1, "control", "U+2028", 1)),
        ("\ud800", (1, "control", "U+D800", 1)),
        ("\ufeff", (1, "zero-width", "U+FEFF", 1)),
        ("\xad\xad", (1, "zero-width", "U+00AD", 2)),
        ("\U000e0041", (1, "zero-width", "U+E0041", 1)),
        ("ѕudo", (1, "homoglyph-mixed-script", "U+0455", 1)),
        ("Αdmin", (1, "homoglyph-mixed-script", "U+0391", 1)),
        ("ﬁle", (1, "normalized", "U+FB01", 1)),
        ("x" * (LONG_LINE + 1), (1, "long line", None, 1)),
        ("x" + " " * WIDE_GAP + "y", (1, "trailing padding", None, 1)),
        ("\t" * (WIDE_GAP // 8) + "y", (1, "trailing padding", None, 1)),
        ("x" + "\u3000" * WIDE_GAP + "y", (1, "trailing padding", None, 1)),
        ("x\n" + " \n" * TALL_GAP + "y", (TALL_GAP + 2, "trailing padding", None, 1)),
    ],
)
def test_each_kind(text: str, found: tuple[int, str, str | None, int]) -> None:
    assert kinds(text) == [found]


@pytest.mark.parametrize(
    "text",
    [
        "sudo file admin",
        "Привет мир",
        "тест_1",
        "x軸 = 'naïve é'",
        "x" * LONG_LINE,
        "x" + " " * (WIDE_GAP - 1) + "y",
        "x" + " " * 1000,
        "x\n" + "\n" * (TALL_GAP - 1) + "y",
        "x" + "\n" * 1000,
        "\tx\n",
    ],
)
def test_its_twin_is_no_matter(text: str) -> None:
    assert kinds(text) == []


def test_texts_that_are_no_code_have_no_lines() -> None:
    found = suspicions("metadata", ["a\u202e", "\u202e" + "x" * 9999])
    assert found == [{"where": "metadata", "line": None, "kind": "bidi", "character": "U+202E", "count": 2}]


def test_the_list_is_bounded_and_made_in_linear_time() -> None:
    began = time.process_time()
    assert kinds(("\u202e" * 99 + "\n") * 10_000) == [(1, "bidi", "U+202E", 990_000)]
    assert kinds("x" + " " * 1_000_000) == []
    assert time.process_time() - began < 20
