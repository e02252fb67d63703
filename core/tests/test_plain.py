"""What a stage knows, as a record holds it: one spelling, whichever way it was found."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from licet import plain
from licet.plain import Plain, canonical, part, plain_body, written


class Colour(StrEnum):
    red = "red"


@dataclass(frozen=True, slots=True)
class Place:
    row: int
    column: object


anything = st.text(st.characters(), max_size=12)
leaves = st.none() | st.booleans() | st.integers() | st.floats() | anything | st.just(Colour.red)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(anything | st.just(Colour.red), inner, max_size=4)
        | st.builds(Place, st.integers(0, 9), inner)
    ),
    max_leaves=20,
)


@given(st.dictionaries(anything, values, max_size=4))
def test_the_short_way_and_the_long_one_lead_to_the_same(body: dict[str, Any]) -> None:
    assert plain_body(body).spelled == plain._translated(body).spelled


@given(st.dictionaries(anything, values, max_size=4))
def test_what_a_stage_knows_gets_its_canonical_form(body: dict[str, Any]) -> None:
    spelled = plain_body(body).spelled
    assert canonical(json.loads(spelled)) == spelled


@pytest.mark.parametrize(
    ("value", "held"),
    [
        (60.0, "60.0"),
        (-1.5e300, "-1.5e+300"),
        (5e-324, "5e-324"),
        ([0.25], ["0.25"]),
        ([[1, -0.0]], [[1, "-0.0"]]),
        (float("nan"), None),
        (2**53 - 1, 2**53 - 1),
        (2**53, "0x20000000000000"),
        (-(2**64), "-0x10000000000000000"),
        ("\ud800", "\\ud800"),
        ("é", "é"),
        ({"é": 1}, {"\\xe9": 1}),
        ({1: 2}, {"1": 2}),
        ({Colour.red: Colour.red}, {"red": "red"}),
        (Place(1, (2, 0.5)), {"row": 1, "column": [2, "0.5"]}),
        ({"b", "a"}, ["a", "b"]),
        (MappingProxyType({"a": 1}), {"a": 1}),
        (b"x", "b'x'"),
        ('":1.5', '":1.5'),
        (plain_body({"b": 1, "a": 2}), {"a": 2, "b": 1}),
    ],
)
def test_what_has_no_place_in_a_record_becomes_text(value: object, held: object) -> None:
    body = plain_body({"it": value})
    assert body == {"it": held}
    assert body.spelled == canonical({"it": held})


def test_a_body_is_a_mapping_that_shows_its_content() -> None:
    body = plain_body({"b": {"c": 1}, "a": "x"})
    assert isinstance(body, Mapping)
    assert (list(body), len(body), body["b"]) == (["a", "b"], 2, {"c": 1})
    assert repr(body) == "{'a': 'x', 'b': {'c': 1}}"
    assert body != {"a": "x"}


def test_what_is_spelled_already_is_joined_as_it_is() -> None:
    parts = {"body": part(Plain(b'{"a":1}')), "writer": part({"pid": 2})}
    assert written({"v": 1, "log": "x", **parts}) == b'{"body":{"a":1},"log":"x","v":1,"writer":{"pid":2}}'


def test_what_is_not_spelled_yet_is_checked() -> None:
    with pytest.raises(ValueError) as caught:
        part({"a": 0.5})
    assert str(caught.value) == "a record can't hold a `float`"
