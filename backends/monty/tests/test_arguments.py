"""What tools are given: data as it is, within bounds, or a refusal in the code."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pytest
from licet.backend import Reply, ToolCall
from licet.request import Limits


async def _echo(call: ToolCall) -> Reply:
    return Reply(value=call.args[0])


async def _given(call: ToolCall) -> Reply:
    return Reply(value=[list(call.args), dict(call.kwargs)])


CROSSING = [
    None, True, 0, -1, 2**53, 2**53 + 1, -(2**200), 10**6000, 1.5, -0.0, 1e300, 1e-7, "", "é\n'\"\\\0",
    "x" * 200_000, "😀" * 1000, b"", b"\x00\xff", 1j, [], [1, [2, [3]]], (), (1, (2,)), {}, {"a": {"b": []}},
    {1: 2}, {"$type": 1},
    {(1, 2): 3, None: 4}, set(), {1, 2}, frozenset({1}), date(2020, 1, 2), datetime(2020, 1, 2, 3, 4, 5, 6),
    datetime(2020, 1, 2, tzinfo=UTC), time(1, 2, 3), timedelta(days=-1, microseconds=5), Decimal("1.50"),
]  # fmt: skip


@pytest.mark.parametrize(
    "value", CROSSING, ids=lambda value: repr(value)[:30] if value != 10**6000 else "huge"
)
def test_data_reaches_a_tool_and_comes_back_as_it_is(value: Any, run: Any, make_host: Any) -> None:
    host = make_host(tool=_echo)
    outcome = run("echo(x, k=[x])", host, tools=("echo",), inputs={"x": value})
    assert (outcome.error, outcome.value) == (None, value)
    (call,) = host.calls
    assert [(type(one), one) for one in (*call.args, *call.kwargs["k"])] == [(type(value), value)] * 2


def test_floats_that_are_no_numbers_reach_a_tool(run: Any, make_host: Any) -> None:
    host = make_host(tool=_echo)
    assert math.isnan(run("echo(float('nan'))", host, tools=("echo",)).value)
    assert run("[echo(float('inf')), echo([-float('inf')])]", host, tools=("echo",)).value == [
        math.inf,
        [-math.inf],
    ]


def test_keywords_of_any_name_reach_a_tool(run: Any, make_host: Any) -> None:
    code = "f(**{'name': 1, 'args': 2, 'line': 3, 'self': 4, '$type': 5})"
    outcome = run(code, make_host(tool=_given), tools=("f",))
    assert outcome.value == [[], {"name": 1, "args": 2, "line": 3, "self": 4, "$type": 5}]


BOMB = "x = 1\nfor i in range(60): x = ({0})\n"
REFUSED = {
    "shared tuples": (BOMB.format("x, x") + "f(x)", "are too much: at most 100000 values"),
    "shared tuples in a set": (BOMB.format("x, x") + "f({x})", "are too much: at most 100000 values"),
    "shared lists": (BOMB.format("[x, x]") + "f(a=x)", "are too much: at most 100000 values"),
    "a deep list": ("x = []\nfor i in range(100_000): x = [x]\nf(x)", "are nested deeper than 100 levels"),
    "a wide list": ("f([0] * 1_000_000)", "are too much"),
    "many arguments": ("f(*[0] * 200_000)", "are too much"),
    "a long text": ("f('a' * 5_000_000)", "are too much"),
    "a huge integer": ("f(1 << 40_000_000)", "are too much"),
    "a cycle": ("x = []\nx.append(x)\nf(x)", "contain themselves"),
    "a function": ("f(lambda: 1)", "hold a `function`, which is no plain data"),
    "a tool": ("f(f)", "which is no plain data"),
    "a class": ("class A: pass\nf(A)", "which is no plain data"),
    "a pattern": ("import re\nf(re.compile('a'))", "hold a `re.Pattern`, which is no plain data"),
    "a module": ("import math\nf([math])", "which is no plain data"),
    "a dataclass": (
        "from dataclasses import dataclass\n@dataclass\nclass A:\n    x: int\nf(A(1))",
        "hold a `A`, which is no plain data",
    ),
    "integers of one hash": ("f({(2 ** 61 - 1) * i for i in range(5000)})", "can't be read"),
    "an instance whose repr lies": (
        "class A:\n    def __repr__(self): return '\"' * 10 ** 6\nf(A())",
        "hold a `A`, which is no plain data",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("how", ["{}", "await {}"])
def test_what_is_no_plain_data_is_refused_in_the_code(name: str, how: str, run: Any, host: Any) -> None:
    code, why = REFUSED[name]
    *before, call = code.split("\n")
    code = "\n".join(
        [
            *before,
            "try:",
            f"    {how.format(call)}",
            "except TypeError as problem:",
            "    told = str(problem)",
        ]
    )
    outcome = run(f"{code}\ntold", host, tools=("f",), limits=Limits(wall_time=30.0))
    assert outcome.error is None
    assert outcome.value.startswith("the arguments of f() ")
    assert why in outcome.value
    assert outcome.value.endswith("; pass numbers, texts, lists, dicts")
    assert (host.calls, [call.name for call in host.refused]) == ([], ["f"])


TAMPERING = [
    "def __licet_arguments__(*a): return 'x'\nf(1)",
    "def __licet_arguments__(*a): return '[' * 100_000\nf(1)",
    'def __licet_arguments__(*a): return \'[[{"$type": "opaque", "type": "int", "repr": "1"}], {}]\'\nf(1)',
    "def __licet_arguments__(*a): return '[[], {}, 1]'\nf(1)",
    "def __licet_arguments__(*a): return '[[' + '[],' * 5_000_000 + '1], {}]'\nf(1)",
    "def __licet_arguments__(*a): return '[[' + '\"\",' * 5_000_000 + '1], {}]'\nf(1)",
    "def __licet_arguments__(*a): return [[1]]\nf(1)",
    "__licet_line__ = 'x' * 10_000_000\nf(1, 2)",
    "__licet_call__('f', '1', '[[], {}]')",
    "__licet_call__(['f'], {'f'})",
    "exec(\"__licet_call__('f', '1', '[[], {}]')\")",
    "h = __licet_call__\nh('f', '1', '[[], {}]')",
    "__licet_now__('open', 1)",
    "__licet_now__('x' * 1_000_000)",
    "await __licet_later__(1, __licet_place__=('open', 1))",
    "__licet_partial__ = __licet_dumps__ = None\nf(1, 2)",
    "__licet_call__ = open\nf('/etc/passwd')",
    "__licet_call__ = eval\nf(1)",
]


@pytest.mark.parametrize("code", TAMPERING)
def test_code_that_tampers_reaches_no_tool_but_by_texts(code: str, run: Any, make_host: Any) -> None:
    host = make_host(tool=_given)
    outcome = run(code, host, tools=("f",), limits=Limits(wall_time=30.0))
    assert outcome.termination == "exited"
    assert all(call.name == "f" and type(call.args) is tuple for call in host.calls)
    assert outcome.error is not None or host.calls


def test_code_may_call_its_variables_as_it_likes(run: Any, make_host: Any) -> None:
    names = "str = int = float = bool = list = dict = tuple = set = type = exec = isinstance = repr"
    code = f"{names} = 5\nf([1, {{2}}], 'x')"
    assert run(code, make_host(tool=_given), tools=("f",)).value == [[[1, {2}], "x"], {}]
