"""How a line is spelled before its place is known, next to the plain way; and how a writer follows others."""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from licet.plain import plain_body
from licet.record import Entry, Kept, leaf_hash, seat
from licet.state import StateDirectory
from licet_audit.chain import MAX_LINE, NOTHING, Head, Spelling
from licet_audit.segments import Segment, find_tail, grown_head

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20).filter(lambda text: text != "log")
hostile = st.sampled_from(['"prev":""', '","seq":7,"', "\\", '"', '{"body":{}}\n', '"kind":"log"', "\u2028"])
keys = st.text(st.characters(codec="ascii"), max_size=8) | st.sampled_from(["prev", "seq", "kind", "writer"])
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | texts | hostile,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)
bodies = st.dictionaries(keys, values, max_size=5)
kept = st.lists(st.builds(Kept, keys, st.binary(max_size=9)), max_size=2).map(tuple)
entries = st.builds(
    Entry,
    kind=st.sampled_from(["request", "execution", "tool_call", "result"]),
    run_id=texts | hostile,
    body=bodies | bodies.map(plain_body),
    time=texts,
    mono_ns=st.integers(0, 2**63),
    phase=st.sampled_from([None, "before", "after"]),
    trace_id=st.none() | texts,
    span_id=st.none() | texts,
    kept=kept,
)
leaves = st.binary(min_size=32, max_size=32).map(bytes.hex)
LOG = "0" * 32
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # on a busy machine


@unhurried
@given(entries, st.integers(0, 2**40), leaves, bodies)
def test_a_draft_becomes_the_line_that_seating_spells_at_once(
    entry: Entry, seq: int, prev: str, writer: dict[str, Any]
) -> None:
    record, line = seat(entry, log=LOG, seq=seq, prev=prev, writer=writer)
    spelling = Spelling(LOG, writer)
    draft = spelling.draft(entry)
    assert draft.seat(seq, prev) == (line + b"\n", record.leaf)
    assert spelling.record(draft, seq, prev, record.leaf) == record
    assert draft.seat(seq, prev) == (line + b"\n", record.leaf)  # a draft can be seated again


@pytest.mark.parametrize(
    "body",
    [{"x": 1.5}, {"x": 2**53}, {"ä": 1}, {1: 1}, {"x": "\ud800"}, {"x": object()}, {"x": "y" * MAX_LINE}],
)
def test_what_no_record_can_hold_has_no_draft(body: dict[Any, Any]) -> None:
    with pytest.raises(ValueError):
        Spelling(LOG, {}).draft(Entry("request", "r", body, "", 1))


@unhurried
@given(st.lists(entries, min_size=1, max_size=6), st.integers(0, 6), st.data())
def test_following_other_writers_ends_where_the_closer_look_ends(
    tmp_path_factory: pytest.TempPathFactory, written: list[Entry], known: int, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("log") / "seg-00000000000000000000.jsonl"
    spelling, head, lines, heads = Spelling(LOG, {}), NOTHING, list[bytes](), [NOTHING]
    for seq, entry in enumerate(written):
        line, leaf = spelling.draft(entry).seat(seq, head.leaf)
        head = Head(seq, leaf)
        lines.append(line)
        heads.append(head)
    known = min(known, len(lines) - 1)
    path.write_bytes(b"".join(lines))
    before = Segment(path, 0, sum(map(len, lines[:known])))
    descriptor = os.open(path, os.O_RDONLY)
    try:
        whole = path.stat().st_size
        assert grown_head(descriptor, before, whole, heads[known]) == head
        assert find_tail([Segment(path, 0, whole)], LOG).head == head
        cut = data.draw(st.integers(before.size + 1, whole))
        found = grown_head(descriptor, before, cut, heads[known])
        ends = [before.size + sum(map(len, lines[known:n])) for n in range(known, len(lines) + 1)]
        assert found == (heads[known + ends.index(cut)] if cut in ends else None)
        assert grown_head(descriptor, before, whole, Head(heads[known].seq + 1, heads[known].leaf)) is None
        assert grown_head(descriptor, before, whole, Head(heads[known].seq, "f" * 64)) is None
    finally:
        os.close(descriptor)


def test_what_needs_the_closer_look_is_not_followed(state: StateDirectory, tmp_path: Path) -> None:
    spelling = Spelling(LOG, {})
    first, leaf = spelling.draft(Entry("request", "r", {}, "", 1)).seat(0, "")
    follows = spelling.draft(Entry("log", "", {"event": "sealed"}, "", 1)).seat(1, leaf)[0]
    ordinary = spelling.draft(Entry("request", "r", {"n": 1}, "", 1)).seat(1, leaf)[0]
    large = spelling.draft(Entry("request", "r", {"x": "y" * 2**20}, "", 1)).seat(1, leaf)[0]
    path = tmp_path / "seg-00000000000000000000.jsonl"
    cases = [(ordinary, True), (follows, False), (large, False), (b"{}\n", False), (b"\n", False)]
    for added, followed in cases:
        path.write_bytes(first + added)
        with path.open("rb") as file:
            before, size = Segment(path, 0, len(first)), len(first) + len(added)
            head = grown_head(file.fileno(), before, size, Head(0, leaf_hash(first[:-1])))
            assert (head is not None) == followed
