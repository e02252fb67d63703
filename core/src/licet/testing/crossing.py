"""Tests of values that cross the wall: inputs go in as they are, values come out as they are, or marked."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings

from licet import values
from licet.testing.bench import Bench
from licet.testing.strategies import data

_SETTINGS = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None
)

_EDGES: tuple[object, ...] = (
    *(None, True, 0, 1, 1.0, -(2**63), 10**40, float("-inf"), "", "ünï\0\n", b"\x00\xff", [], (), {}, set()),
    [(1, [True]), {"a": {1: (None,)}, None: b""}, {"x", 1}],
)
"""Values that a careless translation takes for others."""


class Crossing:
    """Inputs, values, standard input and environment."""

    def test_data_comes_back_as_it_went_in(self, bench: Bench) -> None:
        @_SETTINGS
        @given(data())
        def comes_back(value: Any) -> None:
            outcome = asyncio.run(bench.execute("given", inputs={"given": value})).outcome
            assert (outcome.termination.value, outcome.exit_code, outcome.error) == ("exited", 0, None)
            assert _same(outcome.value, value), f"{value!r} came back as {outcome.value!r}"

        for value in _EDGES:
            comes_back = example(value)(comes_back)
        comes_back()

    def test_inputs_are_names_of_the_code(self, bench: Bench) -> None:
        inputs = {"orders": [{"n": 1}, {"n": 2}], "ünï": "ok", "_x": None}
        ran = bench.run("[orders[1]['n'], ünï, _x]", inputs=inputs)
        assert ran.outcome.value == [2, "ok", None]

    def test_a_changed_input_changes_nothing_here(self, bench: Bench) -> None:
        given_list = [1]
        assert bench.run("given.append(2)\ngiven", inputs={"given": given_list}).outcome.value == [1, 2]
        assert given_list == [1]

    @pytest.mark.parametrize("code", ["lambda: 0", "print", "x = []\nx.append(x)\nx", "[print]", "type(1)"])
    def test_what_is_no_data_comes_out_marked(self, code: str, bench: Bench) -> None:
        outcome = bench.run(code).outcome
        assert (outcome.termination.value, outcome.exit_code, outcome.error) == ("exited", 0, None)
        assert isinstance(outcome.value_repr, str)
        assert values.from_json(values.to_json(outcome.value)) == outcome.value

    @pytest.mark.parametrize("code", ["'x' * 5000000", "[0] * 500000", "7 ** 20000", "b'x' * 3000000"])
    def test_a_large_value_does_no_harm(self, code: str, bench: Bench) -> None:
        outcome = bench.run(code).outcome
        assert (outcome.termination.value, outcome.exit_code) == ("exited", 0)
        assert len(outcome.value_repr or "") < 1_000_000
        bench.works()

    def test_standard_input_is_empty_by_default(self, bench: Bench) -> None:
        bench.needs("import sys", stdin=True)
        assert bench.run("import sys\nsys.stdin.read()").outcome.value == ""

    @pytest.mark.parametrize("stdin", [b"two\nlines", bytes(range(256)), b"x" * (1 << 20)])
    def test_standard_input_is_what_is_given(self, stdin: bytes, bench: Bench) -> None:
        code = "import hashlib, sys\nhashlib.sha256(sys.stdin.buffer.read()).hexdigest()"
        bench.needs(code, stdin=True)
        assert bench.run(code, stdin=stdin).outcome.value == hashlib.sha256(stdin).hexdigest()

    def test_a_variable_is_what_is_given(self, bench: Bench) -> None:
        ran = bench.run("import os\nos.environ['GIVEN']", environment={"GIVEN": "ünï = \n ok"})
        assert ran.outcome.value == "ünï = \n ok"


def _same(left: Any, right: Any) -> bool:
    """Whether two values are equal, and of one type all the way down: 1, 1.0 and True are three."""
    if type(left) is not type(right) or left != right:
        return False
    if isinstance(left, dict):
        left, right = [*left.items()], [*right.items()]
    if isinstance(left, (list, tuple)):
        return all(map(_same, left, right))
    return True
