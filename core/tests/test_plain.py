"""What a stage knows, as a record holds it."""

import copy
import json
import pickle
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from licet.plain import Plain, canonical, plain_body


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
def test_what_a_stage_knows_becomes_what_a_record_can_hold(body: dict[str, Any]) -> None:
    held = plain_body(body)
    assert canonical(json.loads(canonical({"body": held}))) == canonical({"body": held})


@pytest.mark.parametrize(
    ("value", "held"),
    [
        (60.0, "60.0"),
        (-1.5e300, "-1.5e+300"),
        (5e-324, "5e-324"),
        ([0.25], ["0.25"]),
        ([[1, -0.0]], [[1, "-0.0"]]),
        (float("nan"), "nan"),
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
    assert plain_body({"it": value}) == {"it": held}


def test_what_is_shared_is_spelled_once_and_the_same_as_every_time() -> None:
    body = plain_body({"b": 0.5, "a": {"z": "é", "y": [1, None]}})
    assert canonical({"x": 1, "body": dict(body)}) == canonical(Plain(x=1, body=body.spelled()))
    assert body.spelled() is body.spelled()


def test_a_copy_is_spelled_anew() -> None:
    body = plain_body({"a": {"b": 1}})
    body.spelled()
    for other in (copy.copy(body), copy.deepcopy(body), pickle.loads(pickle.dumps(body))):
        assert (type(other), other) == (Plain, body)
        other["a"] = 2
        assert canonical(Plain(body=other.spelled())) == b'{"body":{"a":2}}'
