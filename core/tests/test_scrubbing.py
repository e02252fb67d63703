"""Scrubbing: what is found goes from every channel, whole; what could not be looked through is withheld."""

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from licet import values
from licet.backend import GuestError, Outcome, Termination
from licet.output import MARGIN, BoundedSink
from licet.scrubbing import Channel, Clean, Finding, Leavings, Secret, clean, plain, scrub, secrets_of
from licet.scrubbing.spans import united, withheld

KEY = re.compile(r"K3Y-[A-Z]{6,40}-END")
SECRET = "K3Y-ABCDEFGHIJ-END"
MARK = "[redacted: key]"


def find(text: str, channel: Channel) -> Sequence[Secret]:
    return [Secret("key", match.start(), match.end()) for match in KEY.finditer(text)]


def left(stdout: bytes = b"", stderr: bytes = b"", *, limit: int = 1000, **outcome: Any) -> Leavings:
    out, err = BoundedSink(limit), BoundedSink(limit)
    out.write(stdout)
    err.write(stderr)
    return Leavings(Outcome(Termination.exited, 0, **outcome), out.pieces(), err.pieces())


def said(cleaned: Clean) -> str:
    """All that a caller, a record or a reader of kept content may come to see of it."""
    outcome, output = cleaned.outcome, cleaned.output
    kept = b"".join((*output.stdout_kept, *output.stderr_kept)).decode("utf-8", "replace")
    texts = (output.stdout, output.stderr, outcome.value_repr, outcome.detail, values.to_json(outcome.value))
    return "\n".join((kept, repr(outcome), *map(str, texts)))


def test_a_text_loses_its_secrets_and_says_how_many() -> None:
    done = scrub(f"a {SECRET} b {SECRET}", "stdout", find)
    assert (done.text, done.findings) == (f"a {MARK} b {MARK}", (Finding("stdout", "key", 2),))
    assert scrub("harmless", "stdout", find).findings == ()


def test_secrets_that_overlap_are_one() -> None:
    apart = [Secret("b", 5, 9), Secret("a", 0, 4), Secret("c", 9, 9)]
    assert united(apart) == (Secret("a", 0, 4), Secret("b", 5, 9))
    assert united([Secret("b", 2, 9), Secret("a", 0, 4)]) == (Secret("a", 0, 9),)
    assert united([Secret("b", 0, 4), Secret("a", 0, 9)]) == (Secret("a", 0, 9),)


def test_every_channel_is_cleaned() -> None:
    leavings = left(
        f"out {SECRET}\n".encode(),
        f"err {SECRET}\n".encode(),
        value=[SECRET],
        value_repr=f"['{SECRET}']",
        error=GuestError("K3Y-CLASSNAME-END", f"no {SECRET}", 3),
        detail=f"see {SECRET}",
    )
    cleaned = clean(leavings, find)
    assert cleaned.output.stdout == f"out {MARK}\n"
    assert cleaned.output.stderr == f"err {MARK}\n"
    assert cleaned.output.stdout_kept == (f"out {MARK}\n".encode(), b"")
    assert (cleaned.outcome.value, cleaned.outcome.value_repr) == ([MARK], f"['{MARK}']")
    assert cleaned.outcome.error == GuestError(MARK, f"no {MARK}", 3)
    assert cleaned.outcome.detail == f"see {MARK}"
    assert {*cleaned.findings} == {
        Finding("stdout", "key", 1),
        Finding("stderr", "key", 1),
        Finding("value", "key", 1),
        Finding("error", "key", 2),
        Finding("detail", "key", 1),
    }


def test_what_holds_no_secret_is_the_very_object() -> None:
    leavings = left(b"\xff out\n", value={"a": [1, "b"]}, value_repr="{'a': [1, 'b']}", detail="fine")
    cleaned = clean(leavings, find)
    assert cleaned.outcome is leavings.outcome
    assert (cleaned.output.stdout, cleaned.output.stdout_kept) == ("\ufffd out\n", (b"\xff out\n", b""))
    assert cleaned.findings == ()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (SECRET, MARK),
        (SECRET.encode(), MARK.encode()),
        (bytearray(b"\xff" + SECRET.encode()), bytearray(b"\xff" + MARK.encode())),
        ({SECRET: 1, "K3Y-OTHEROTHER-END": 2}, {MARK: 1, f"{MARK} 2": 2}),
        ([({SECRET},), frozenset({SECRET.encode()})], [({MARK},), frozenset({MARK.encode()})]),
        ({"a": {"b": [None, 1.5, SECRET]}}, {"a": {"b": [None, 1.5, MARK]}}),
        (values.Opaque(SECRET, f"<{SECRET}>"), values.Opaque(MARK, f"<{MARK}>")),
    ],
)
def test_every_text_in_a_value_is_looked_at(value: Any, expected: Any) -> None:
    cleaned = clean(left(value=value, value_repr="…"), find).outcome.value
    assert (type(cleaned), cleaned) == (type(expected), expected)


def test_a_member_is_read_beside_its_key() -> None:
    def by_name(text: str, channel: Channel) -> Sequence[Secret]:
        return [Secret("password", m.start(1), m.end(1)) for m in re.finditer(r'password = "(.*?)"', text)]

    cleaned = clean(left(value={"password": "tr0ub4dor", "name": "bob"}), by_name)
    assert cleaned.outcome.value == {"password": "[redacted: password]", "name": "bob"}
    assert cleaned.findings == (Finding("value", "password", 1),)


def test_what_lies_beyond_the_budget_was_not_read_and_goes() -> None:
    deep: Any = SECRET
    for _ in range(values.DEFAULT.depth + 1):
        deep = [deep]
    assert SECRET not in repr(clean(left(value=deep), find).outcome.value)
    endless: list[Any] = ["a"]
    endless.append(endless)
    assert "Omitted(reason='budget'" in repr(clean(left(value=endless), find).outcome.value)
    wide = clean(left(value=[0] * values.DEFAULT.nodes + [SECRET]), find).outcome.value
    assert wide[-2:] == [values.Omitted("budget")] * 2


def test_what_is_found_in_one_channel_goes_from_all() -> None:
    def only_errors(text: str, channel: Channel) -> Sequence[Secret]:
        return find(text, channel) if channel == "error" else ()

    cleaned = clean(
        left(SECRET.encode(), value=[SECRET], value_repr=f"['{SECRET}']", error=GuestError("E", SECRET)),
        only_errors,
    )
    assert SECRET not in said(cleaned)
    assert Finding("stdout", "key", 1) in cleaned.findings


def test_the_environment_s_secrets_go_wherever_they_stand() -> None:
    environment = {"DB_PASSWORD": 'a"b\\c\nd-long', "LANG": "C.UTF-8-long", "API_KEY": "short"}
    value = environment["DB_PASSWORD"]
    text = f"{value} | {value!r} | {json.dumps(value)} | short | C.UTF-8-long"
    cleaned = clean(left(text.encode()), None, secrets_of(environment))
    mark = "[redacted: known_value]"
    assert cleaned.output.stdout == f"{mark} | '{mark}' | \"{mark}\" | short | C.UTF-8-long"
    assert cleaned.findings == (Finding("stdout", "known_value", 3),)


def test_a_text_that_could_not_be_looked_through_is_withheld() -> None:
    def fails(text: str, channel: Channel) -> Sequence[Secret]:
        return [withheld(text, "the scrubber `x` failed: KeyError")]

    cleaned = clean(left(b"some text", value={"a": "b"}, value_repr="{'a': 'b'}"), fails)
    mark = "[withheld: the scrubber `x` failed: KeyError]"
    assert cleaned.output.stdout == mark
    assert (cleaned.outcome.value, cleaned.outcome.value_repr) == ({mark: mark}, mark)
    reason = "the scrubber `x` failed: KeyError"
    assert cleaned.findings == (
        Finding("stdout", "withheld", 1, reason),
        Finding("value", "withheld", 1, reason),
    )


def test_a_repr_that_was_cut_loses_its_last_word() -> None:
    text = "[" + "'word', " * 50 + "'K3Y-ABCDEF…"
    assert clean(left(value=[1], value_repr=text), find).outcome.value_repr == "[" + "'word', " * 50 + "'…"
    assert clean(left(value=[1], value_repr=text), None).outcome.value_repr == text  # the twin
    assert clean(left(value=1, value_repr="'K3Y…"), find).outcome.value_repr == "'K3Y…"  # nobody cut that


@settings(deadline=None)
@given(
    before=st.integers(0, 3000),
    after=st.integers(0, 3000),
    limit=st.integers(0, 400),
    chunk=st.integers(1, 500),
    filler=st.sampled_from([b"a", b"a b\n", "日".encode(), b"\xff"]),
)
@example(before=190, after=3000, limit=400, chunk=1, filler=b"a")
def test_no_part_of_a_secret_survives_at_a_cut(
    before: int, after: int, limit: int, chunk: int, filler: bytes
) -> None:
    """Wherever it stands, however it was written, and wherever the output was cut."""
    stream = filler * before + SECRET.encode() + filler * after
    sink = BoundedSink(limit)
    for start in range(0, len(stream), chunk):
        sink.write(stream[start : start + chunk])
    leavings = Leavings(Outcome(Termination.exited, 0), sink.pieces(), BoundedSink(0).pieces())
    cleaned = clean(leavings, find)
    assert not any(SECRET[i : i + 4] in said(cleaned) for i in range(len(SECRET) - 3))
    shown = cleaned.output.stdout.replace(MARK, "")
    assert len(re.sub(r"\n?… \d+ bytes left out …\n", "", shown)) <= limit


@settings(deadline=None)
@given(data=st.binary(max_size=4000), limit=st.integers(0, 300))
def test_a_cut_changes_nothing_where_there_is_no_secret(data: bytes, limit: int) -> None:
    sink = BoundedSink(limit)
    sink.write(data)
    leavings = Leavings(Outcome(Termination.exited, 0), sink.pieces(), BoundedSink(0).pieces())
    cleaned = clean(leavings, lambda text, channel: ())
    assert cleaned.output.stdout == sink.text()
    assert cleaned.output.stdout_kept == sink.kept()


def test_a_secret_as_long_as_the_margin_is_seen_whole() -> None:
    def long(text: str, channel: Channel) -> Sequence[Secret]:
        return [Secret("key", m.start(), m.end()) for m in re.finditer(r"<[a-z]{8000}>", text)]

    secret = b"<" + b"q" * 8000 + b">"
    assert len(secret) <= MARGIN
    leavings = left(b"x" * 490 + secret + b"y" * 30_000, limit=1000)
    assert b"q" in leavings.stdout.head
    shown = clean(leavings, long).output.stdout
    assert shown == f"{'x' * 490}{MARK}\n… 37492 bytes left out …\n{'y' * 500}"


@pytest.mark.parametrize(
    ("text", "is_plain"),
    [
        ("42\n", True),
        ("hello world " * 50, True),
        ("=" * 80, True),
        ("2026-10-01T12:00:00Z 3.14159265358979", True),
        ("see https://example.com/x", True),
        ("https://bob:pw@example.com", False),
        ("password: x", False),
        ("AKIAQYLPMNABCDEFXYZA", False),
        ("0123456789abcdef", False),
        ("aBcDeFgHiJkLmNoP", False),
    ],
)
def test_what_is_plain_needs_no_detector(text: str, is_plain: bool) -> None:
    assert plain(text) is is_plain
