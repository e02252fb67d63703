"""Records: one spelling, the spelling that RFC 8785 gives, and a hash over all of it."""

import asyncio
import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from licet.plain import canonical, plain_body
from licet.record import Entry, MemoryLog, Record, from_json, leaf_hash

ENTRY = Entry(
    kind="decision",
    run_id="01JD7K",
    body={"effect": "deny", "by": ["acme:org:12"], "line": 1},
    time="2026-11-29T17:00:00.000000001Z",
    mono_ns=12,
    phase="before",
    trace_id="0" * 32,
    span_id="1" * 16,
)
RECORD = Record(log="a" * 32, seq=7, prev="b" * 64, writer={"pid": 1, "instance": "c"}, entry=ENTRY)

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
keys = st.text(st.characters(max_codepoint=127), max_size=8)
whole = st.integers(-(2**53) + 1, 2**53 - 1)
values = st.recursive(
    st.none() | st.booleans() | whole | text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=20,
)


def jcs(value: Any) -> str:
    """RFC 8785 written from its text alone (sections 3.2.2 and 3.2.3), for values without fractions."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return '"' + "".join(map(jcs_character, value)) + '"'
    if isinstance(value, list):
        return "[" + ",".join(map(jcs, value)) + "]"
    names = sorted(value, key=lambda name: name.encode("utf-16-be"))
    return "{" + ",".join(f"{jcs(name)}:{jcs(value[name])}" for name in names) + "}"


def jcs_character(character: str) -> str:
    short = {"\b": r"\b", "\t": r"\t", "\n": r"\n", "\f": r"\f", "\r": r"\r", '"': r"\"", "\\": r"\\"}
    if character in short:
        return short[character]
    return f"\\u{ord(character):04x}" if ord(character) < 0x20 else character


@pytest.mark.parametrize(
    ("given", "recorded"),
    [
        ("é日\n\x1b", "é日\n\x1b"),
        ("\x85\x9b\u2028\u2029", r"\x85\x9b\u2028\u2029"),
        ("\ud800", r"\ud800"),
        (["\u2028"], [r"\u2028"]),
        ({"\u2028": 1}, {r"\u2028": 1}),
    ],
)
def test_what_could_end_a_line_is_escaped(given: Any, recorded: Any) -> None:
    body = plain_body({"text": given})
    assert body == {"text": recorded}
    assert len(canonical(body).decode().splitlines()) == 1


@given(values)
def test_the_canonical_form_is_jcs(value: Any) -> None:
    assert canonical(value) == jcs(value).encode("utf-8")


def test_the_canonical_form_of_the_rfc() -> None:
    value = {"string": '€$\u000f\nA\'B"\\\\"/', "literals": [None, True, False], "1": {"f": {"f": "hi"}}}
    assert canonical(value).decode("utf-8") == (
        '{"1":{"f":{"f":"hi"}},"literals":[null,true,false],"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )


@given(values)
def test_what_is_read_back_is_spelled_the_same(value: Any) -> None:
    assert canonical(json.loads(canonical(value))) == canonical(value)


@given(values, values)
def test_different_values_are_spelled_differently(first: Any, second: Any) -> None:
    # `repr` tells True from 1, which `==` does not; sorted, because a mapping has no order.
    same = jcs(first) == jcs(second)
    assert (canonical(first) == canonical(second)) == same


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1.0, "a record can't hold a `float`"),
        ({"a": [float("nan")]}, "a record can't hold a `float`"),
        (2**53, f"integer `{2**53}` is too large for a record; write it as text"),
        (-(2**53), f"integer `-{2**53}` is too large for a record; write it as text"),
        ({"ä": 1}, "key `'ä'` of a record is not ASCII text"),
        ({1: 1}, "key `1` of a record is not ASCII text"),
        (b"bytes", "a record can't hold a `bytes`"),
        ({1}, "a record can't hold a `set`"),
    ],
)
def test_what_has_no_single_spelling_is_refused(value: Any, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        canonical(value)
    assert str(caught.value) == message


def test_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(ValueError, match="surrogates not allowed"):
        canonical("\ud800")


def test_a_leaf_is_that_of_rfc_6962() -> None:
    assert leaf_hash(b"") == "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"
    assert leaf_hash(b"L123456") == "395aa064aa4c29f7010acfe3f25db9485bbd4b91897b6ad7ad547639252b4d56"
    assert leaf_hash(b"x") == hashlib.sha256(b"\x00x").hexdigest()


def test_a_record_is_read_back_as_it_was() -> None:
    line = canonical(RECORD.as_json())
    again = from_json(json.loads(line), leaf_hash(line))
    assert again == RECORD
    assert again.leaf == leaf_hash(line)


def test_what_is_none_is_left_out() -> None:
    bare = replace(RECORD, entry=replace(ENTRY, phase=None, trace_id=None, span_id=None))
    assert set(bare.as_json()) == {
        "v", "log", "seq", "prev", "writer", "kind", "run_id", "time", "mono_ns", "body"
    }  # fmt: skip
    assert from_json(bare.as_json()) == bare


CHANGES: list[tuple[str, Any]] = [
    ("log", "x"), ("seq", 8), ("prev", ""), ("writer", {}), ("kind", "result"), ("phase", "after"),
    ("run_id", ""), ("time", ""), ("mono_ns", 13), ("trace_id", ""), ("span_id", ""),
    ("body", {"effect": "allow"}), ("v", 2),
]  # fmt: skip


def test_every_field_is_in_the_leaf() -> None:
    content = RECORD.as_json()
    assert {name for name, _ in CHANGES} == set(content)
    leaves = {leaf_hash(canonical({**content, name: value})) for name, value in CHANGES}
    assert len(leaves | {leaf_hash(canonical(content))}) == len(CHANGES) + 1


@pytest.mark.parametrize(
    "name", ["kind", "run_id", "body", "time", "mono_ns", "log", "seq", "prev", "writer"]
)
def test_a_record_without_a_field_is_none(name: str) -> None:
    content = RECORD.as_json()
    del content[name]
    with pytest.raises(ValueError, match="of a record is no"):
        from_json(content)


def test_an_unknown_version_is_told() -> None:
    with pytest.raises(ValueError) as caught:
        from_json({**RECORD.as_json(), "v": 2})
    assert str(caught.value) == "record version `2` is not known here, `1` is"


def test_the_log_in_memory_is_a_chain() -> None:
    log = MemoryLog()
    asyncio.run(log.append([ENTRY, ENTRY]))
    (third,) = asyncio.run(log.append([ENTRY]))
    first, second, last = log.records()
    assert (first.prev, second.prev, last.prev) == ("", first.leaf, second.leaf)
    assert [record.seq for record in log.records()] == [0, 1, 2]
    assert third == last


def test_a_host_that_is_up_for_a_year_can_write_records() -> None:
    year_ns = 366 * 86400 * 10**9
    record = replace(RECORD, entry=replace(ENTRY, mono_ns=year_ns))
    assert from_json(json.loads(canonical(record.as_json()))).entry.mono_ns == year_ns
