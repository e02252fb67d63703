"""The rules of `licet.output`."""

from __future__ import annotations

import json
import threading
import tracemalloc
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from licet.output import BoundedSink, bounded, escape

ANY_TEXT = st.text(st.characters(exclude_categories=()))


def _harmful(character: str) -> bool:
    return (
        unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")
        or 0xFE00 <= ord(character) <= 0xFE0F
        or 0xE0000 <= ord(character) <= 0xE0FFF
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J\x1b]0;pwn\x07", r"\x1b[2J\x1b]0;pwn\x07"),
        ("a\rb\x00c\x7f\x9bd", r"a\rb\x00c\x7f\x9bd"),
        ("\u202etxt\u2066x\u2069", r"\u202etxt\u2066x\u2069"),
        ("zero\u200bwidth\ufeff", r"zero\u200bwidth\ufeff"),
        ("\u2028\u2029\u0085", r"\u2028\u2029\x85"),
        ("\ud800", r"\ud800"),
        ("\U000e0041\U000e0100", r"\U000e0041\U000e0100"),
        ("plain ascii, naïve 日本 \N{GRINNING FACE}", "plain ascii, naïve 日本 \N{GRINNING FACE}"),
        ("two\n\tlines", "two\n\tlines"),
    ],
)
def test_escape_shows_what_could_do_harm(text: str, shown: str) -> None:
    assert escape(text) == shown


def test_escape_makes_one_line_of_it() -> None:
    assert escape("a\n\tb", newlines=False) == r"a\n\tb"


@given(ANY_TEXT)
def test_nothing_harmful_survives_escape(text: str) -> None:
    assert not [c for c in escape(text) if _harmful(c) and c not in "\n\t"]
    assert not [c for c in escape(text, newlines=False) if _harmful(c)]
    assert escape(escape(text)) == escape(text)


def test_every_harmful_character_of_unicode_is_escaped() -> None:
    every = (chr(code) for code in range(0x110000))
    assert [c for c in every if _harmful(c) and c not in "\n\t" and escape(c) == c] == []


@given(ANY_TEXT, st.integers(1, 50))
def test_bounded_is_a_prefix_within_the_limit(text: str, limit: int) -> None:
    short = bounded(text, limit)
    assert len(short) <= max(limit, 1)
    assert short == text if len(text) <= limit else short == text[: limit - 1] + "…"


@given(st.lists(st.binary(max_size=40)), st.integers(0, 30))
def test_sink_keeps_head_and_tail_and_counts_all(pieces: list[bytes], limit: int) -> None:
    sink = BoundedSink(limit)
    for piece in pieces:
        sink.write(piece)
    whole = b"".join(pieces)
    head, tail = sink.kept()
    assert (sink.total, sink.truncated) == (len(whole), len(whole) > limit)
    assert len(head) + len(tail) == min(limit, len(whole))
    assert whole.startswith(head)
    assert whole.endswith(tail)
    assert (
        sink.text() == whole.decode("utf-8", "replace")
        if not sink.truncated
        else "bytes left out" in sink.text()
    )


@given(st.text(st.sampled_from("a日é\N{GRINNING FACE}\n"), max_size=60), st.integers(1, 40))
def test_a_cut_character_never_garbles_its_neighbours(text: str, limit: int) -> None:
    sink = BoundedSink(limit)
    sink.write(text.encode())
    assert "\ufffd" not in sink.text()


def test_the_seam_is_one_line_that_says_how_much_is_missing() -> None:
    sink = BoundedSink(10)
    sink.write(("日" * 50).encode())
    assert sink.text() == "日\n… 144 bytes left out …\n日"


def test_invalid_bytes_become_replacement_characters() -> None:
    sink = BoundedSink(100)
    sink.write(b"ok \xff\xfe\x80 end\n")
    assert sink.text() == "ok \ufffd\ufffd\ufffd end\n"


def test_memory_stays_within_the_limit() -> None:
    sink = BoundedSink(1 << 20)
    block = bytes(1 << 16)
    tracemalloc.start()
    for _ in range(1600):
        sink.write(block)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sink.total == 100 << 20
    assert peak < 2 << 20


def test_writers_of_several_threads_lose_nothing() -> None:
    sink = BoundedSink(100)
    threads = [threading.Thread(target=lambda: [sink.write(b"ab") for _ in range(2000)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sink.total == 16_000
    assert sink.kept() == (b"ab" * 25, b"ab" * 25)


def test_a_negative_limit_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a limit of 0 bytes or more, found `-1`"):
        BoundedSink(-1)


@given(st.lists(st.binary(max_size=9000), max_size=8), st.integers(0, 9), st.integers(0, 30))
def test_a_sink_goes_on_as_another_one(pieces: list[bytes], cut: int, limit: int) -> None:
    whole, first = BoundedSink(limit), BoundedSink(limit)
    for piece in pieces:
        whole.write(piece)
    for piece in pieces[:cut]:
        first.write(piece)
    second = BoundedSink(limit, json.loads(json.dumps(first.state())))
    for piece in pieces[cut:]:
        second.write(piece)
    assert second.pieces() == whole.pieces()
