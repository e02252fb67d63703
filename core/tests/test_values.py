"""The rules of `licet.values`."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import math
import sys
import time
import types
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from licet.values import (
    Budget,
    Omitted,
    Opaque,
    check_crossing,
    decode,
    encode,
    exactly,
    from_json,
    repr_bounded,
    to_json,
)

SURROGATES = st.text(st.characters(exclude_categories=()))
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**5000), 2**5000)
    | st.floats(allow_nan=False)
    | SURROGATES
    | st.binary()
    | st.complex_numbers(allow_nan=False)
    | st.datetimes(timezones=st.none() | st.just(dt.UTC))
    | st.dates()
    | st.times()
    | st.timedeltas()
    | st.decimals(allow_nan=False)
)
HASHABLE = st.recursive(
    SCALARS, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=4), max_leaves=6
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.lists(inner, max_size=5).map(tuple)
        | st.dictionaries(st.text() | st.just("$type"), inner, max_size=5)
        | st.dictionaries(HASHABLE, inner, max_size=4)
        | st.sets(HASHABLE, max_size=4)
    ),
    max_leaves=20,
)
TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["$type", "items", "value", "base64", "hex", "fold", "type", "repr", "reason"]),
            inner
            | st.sampled_from(
                ["dict", "set", "tuple", "int", "bytes", "date", "decimal", "opaque", "timedelta"]
            ),
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(VALUES)
def test_what_can_cross_arrives_unchanged(value: Any) -> None:
    text = to_json(value)
    back = from_json(text)
    assert text.isascii()
    assert back == value
    assert _types(back) == _types(value)


@given(VALUES)
def test_an_input_crosses_unless_it_holds_half_a_character(value: Any) -> None:
    if '"$type":"str"' in to_json(value).replace(" ", ""):
        with pytest.raises(ValueError, match="half of a surrogate pair"):
            check_crossing(value)
    else:
        check_crossing(value)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"a": ["\ud800"]}, r"`a\[0\]` holds half of a surrogate pair"),
        ([bytearray(b"x")], r"`\[0\]` is a `bytearray`"),
        ([Opaque("f", "<f>")], r"`\[0\]` is itself a mark of something lost"),
    ],
)
def test_an_input_that_not_every_sandbox_knows_is_refused(value: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        check_crossing(value)


@pytest.mark.parametrize("mark", [Opaque("P", "P(a=1)"), Omitted("cycle"), Omitted("budget", 3)])
def test_marks_survive_another_crossing(mark: Any) -> None:
    assert from_json(to_json([mark])) == [mark]


def _types(value: Any) -> Any:
    if isinstance(value, dict):
        return [(_types(k), _types(v)) for k, v in value.items()]
    if isinstance(value, list | tuple):
        return type(value), [_types(v) for v in value]
    return type(value)


@given(TREES)
def test_a_hostile_tree_is_a_value_or_a_value_error(tree: Any) -> None:
    with contextlib.suppress(ValueError):
        decode(tree)


@given(st.text(max_size=30) | st.binary(max_size=30))
def test_hostile_text_is_a_value_or_a_value_error(text: str | bytes) -> None:
    with contextlib.suppress(ValueError):
        from_json(text)


@given(VALUES, st.integers(0, 20), st.integers(0, 4), st.integers(0, 50))
def test_any_budget_yields_a_readable_tree(value: Any, nodes: int, depth: int, size: int) -> None:
    from_json(to_json(value, Budget(nodes, depth, size)))


@pytest.mark.parametrize(
    ("value", "tree"),
    [
        (1, 1),
        (2**53, 2**53),
        (2**53 + 1, {"$type": "int", "value": "9007199254740993"}),
        (1.0, 1.0),
        (math.inf, {"$type": "float", "value": "inf"}),
        (b"\x00\xff", {"$type": "bytes", "base64": "AP8="}),
        ((1, "a"), {"$type": "tuple", "items": [1, "a"]}),
        ({1: 2}, {"$type": "dict", "items": [[1, 2]]}),
        ({"$type": "x"}, {"$type": "dict", "items": [["$type", "x"]]}),
        ("\ud800", {"$type": "str", "base64": "7aCA"}),
        (Decimal("1.10"), {"$type": "decimal", "value": "1.10"}),
        (dt.date(2026, 1, 2), {"$type": "date", "value": "2026-01-02"}),
        (complex(1, -2), {"$type": "complex", "items": [1.0, -2.0]}),
    ],
)
def test_the_wire_form_is_fixed(value: Any, tree: Any) -> None:
    assert encode(value) == tree
    assert json.loads(to_json(value)) == tree


def test_nan_and_negative_zero_survive() -> None:
    assert math.isnan(from_json(to_json(math.nan)))
    assert math.copysign(1, from_json(to_json(-0.0))) == -1


def test_huge_integers_pass_the_digit_limit_of_any_process() -> None:
    value = 7**100_000
    assert encode(value)["hex"].startswith("0x")
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(640)
    try:
        assert from_json(to_json([value, -value, 2**2048 - 1])) == [value, -value, 2**2048 - 1]
    finally:
        sys.set_int_max_str_digits(before)


def test_other_types_are_opaque_with_type_and_bounded_repr() -> None:
    assert from_json(to_json(Counter("aab"))) == Opaque("collections.Counter", "Counter({'a': 2, 'b': 1})")
    shown = from_json(to_json(range(3)))
    assert shown == Opaque("range", "range(0, 3)")


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError("no")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no")

    __hash__ = object.__hash__


def test_a_repr_that_raises_is_told() -> None:
    shown = from_json(to_json([Hostile()]))[0]
    assert shown.repr == "<Hostile whose repr raised RuntimeError>"
    assert repr_bounded([Hostile(), 1]) == "[<Hostile whose repr raised RuntimeError>, 1]"


def _bomb() -> Any:
    value: Any = [1]
    for _ in range(40):
        value = [value, value]
    return value


def _deep() -> Any:
    value: Any = []
    for _ in range(1_000_000):
        value = [value]
    return value


def _cycle() -> Any:
    value: Any = {"a": [1]}
    value["a"].append(value)
    return value


@pytest.mark.parametrize(
    ("make", "refusal"),
    [
        (_bomb, "is too much: more values than the budget allows"),
        (_deep, "is nested deeper than 100 levels"),
        (_cycle, r"`a\[1\]` contains itself"),
        (lambda: list(range(200_000)), "`value` is too much: more values than the budget allows"),
        (lambda: {"big": "x" * (5 << 20)}, "`big` is too much: more bytes than the budget allows"),
        (lambda: {"n": 1 << (1 << 26)}, "`n` is too much: more bytes than the budget allows"),
        (lambda: {"f": len}, "`f` is a `builtin_function_or_method`, which can't cross into the sandbox"),
        (lambda: {"m": [json]}, r"`m\[0\]` is a `module`"),
        (lambda: {"orders": [1, 2, 3, {"x": object()}]}, r"`orders\[3\].x` is a `object`"),
        (lambda: {"a b": {1: Hostile()}}, r"`\['a b'\]\[1\]` is a `.*Hostile`"),
        (lambda: types.SimpleNamespace(a=1), "`value` is a `types.SimpleNamespace`"),
    ],
)
def test_an_input_that_cannot_cross_is_refused_with_its_place(make: Any, refusal: str) -> None:
    value = make()
    began = time.perf_counter()
    with pytest.raises(ValueError, match=refusal):
        check_crossing(value)
    from_json(to_json(value))
    repr_bounded(value)
    assert time.perf_counter() - began < 3
    _unlink(value)


def _unlink(value: Any) -> None:
    """Take a deep list apart, so that freeing it does not recurse."""
    while isinstance(value, list) and value:
        value = value.pop()


def test_what_was_left_out_of_a_result_is_marked() -> None:
    assert from_json(to_json(list(range(10)), Budget(nodes=4))) == [0, 1, 2, Omitted("budget", 7)]
    assert from_json(to_json({1: 2, 3: 4}, Budget(nodes=3))) == {
        1: 2,
        Omitted("budget", 1): Omitted("budget", 1),
    }
    assert from_json(to_json([[[1]]], Budget(depth=2))) == [[Omitted("depth", 1)]]
    cycle: list[Any] = [1]
    cycle.append(cycle)
    assert from_json(to_json(cycle)) == [1, Omitted("cycle")]
    shared = [1]
    assert from_json(to_json([shared, shared])) == [[1], [1]]


def test_text_that_is_nested_too_deep_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="nested too deep"):
        from_json("[" * 100_000 + "]" * 100_000)


@given(VALUES)
def test_repr_bounded_writes_what_repr_writes(value: Any) -> None:
    try:
        exact = repr(value)
    except ValueError:  # an integer with more digits than this process allows
        return
    assert repr_bounded(value, 10_000_000) == exact
    assert repr_bounded(value, 20) == (exact if len(exact) <= 20 else exact[:19] + "…") or "'" in exact


def test_repr_bounded_ends_at_the_limit() -> None:
    assert repr_bounded([1, 2, 3], 5) == "[1, …"
    assert len(repr_bounded("x" * 10_000_000, 50)) == 50
    assert len(repr_bounded(-(1 << (1 << 26)), 50)) == 50
    cycle: list[Any] = [1]
    cycle.append((cycle,))
    assert repr_bounded(cycle) == repr(cycle) == "[1, ([...],)]"


def test_members_chosen_to_have_one_hash_are_refused() -> None:
    """A table of 100,000 of them takes minutes inside one C call, which nothing ends."""
    few = {(2**61 - 1) * number for number in range(64)}
    assert from_json(to_json(few)) == few
    many = [(2**61 - 1) * number for number in range(65)]
    for container in (set(many), frozenset(many), dict.fromkeys(many)):
        with pytest.raises(ValueError, match="have one hash"):
            from_json(to_json(container))
    spread = set(range(2000))
    assert from_json(to_json(spread)) == spread


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats() | st.text(max_size=4),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(("$type", "a", "é")), inner)
        ),
        max_leaves=8,
    )
)
def test_what_is_simple_is_written_as_all_else(value: object) -> None:
    bounded = Budget()  # equal to the default, and not taken for it
    try:
        expected = exactly(value, bounded)
    except ValueError:
        with pytest.raises(ValueError, match=r"."):
            exactly(value)
    else:
        assert exactly(value) == expected
