"""The value of a run crosses truthfully, and nothing it is made of can hang or crash the host."""

from __future__ import annotations

import ast
import math
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from licet.request import Limits
from licet.values import Omitted, Opaque
from licet_monty.trailing import keep_value, small

SAME = [
    None, True, False, 0, -1, 2**53, 2**53 + 1, -(2**200), 10**6000, 1.5, -0.0, 1e300, 1e-7, "", "text",
    "é\n'\"\\\0", "x" * 10_000, b"", b"\x00\xff", 1j, complex(-0.0, 2.5), [],
    [1, [2, [3]]], (), (1,), {}, {"a": {"b": []}},
    {1: 2}, {"$type": 1}, {(1, 2): 3, None: 4}, set(), {1, 2}, frozenset({1}), [set(), {}, ()],
    date(2020, 1, 2),
    datetime(2020, 1, 2, 3, 4, 5, 6), datetime(2020, 1, 2, tzinfo=UTC), time(1, 2, 3),
    timedelta(days=-1, microseconds=5), Decimal("1.50"), Decimal("-0"), "None", "True", "1", "nan",
]  # fmt: skip


@pytest.mark.parametrize("value", SAME, ids=lambda value: repr(value)[:30] if value != 10**6000 else "huge")
def test_values_cross_as_they_are(value: Any, run: Any) -> None:
    outcome = run("x", inputs={"x": value})
    assert outcome.error is None
    assert (type(outcome.value), outcome.value) == (type(value), value)
    if value is None:
        assert outcome.value_repr is None
    elif value != 10**6000:
        assert outcome.value_repr == (repr(value) if len(repr(value)) <= 10_000 else repr(value)[:9999] + "…")


def test_floats_that_are_no_numbers_cross(run: Any) -> None:
    found = run("[float('nan'), float('inf'), -float('inf')]").value
    assert math.isnan(found[0])
    assert found[1:] == [math.inf, -math.inf]
    assert run("float('inf')").value_repr == "inf"


@pytest.mark.parametrize(
    ("code", "value", "shown"),
    [
        ("range(3)", Opaque("range", "range(0, 3)"), "range(0, 3)"),
        ("len", Opaque("builtin_function_or_method", "<built-in function len>"), "<built-in function len>"),
        ("int", Opaque("type", "<class 'int'>"), "<class 'int'>"),
        ("...", Opaque("ellipsis", "Ellipsis"), "Ellipsis"),
        ("ValueError('x')", Opaque("ValueError", "ValueError('x')"), "ValueError('x')"),
        ("class A:\n    def __repr__(self): return 'mine'\nA()", Opaque("A", "mine"), "mine"),
        ("class A:\n    def __repr__(self): return 1/0\nA()", Opaque("", "<no repr>"), "<no repr>"),
        (
            "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\nP(1)",
            Opaque("P", "P(x=1)"),
            "P(x=1)",
        ),
        ("from pathlib import Path\nPath('/a')", Opaque("PosixPath", "PosixPath('/a')"), "PosixPath('/a')"),
        ("from collections import deque\ndeque([1])", [1], "[1]"),
        ("from collections import Counter\nCounter('aab')", {"a": 2, "b": 1}, "{'a': 2, 'b': 1}"),
        ("from collections import namedtuple\nnamedtuple('P', 'a b')(1, 2)", (1, 2), "(1, 2)"),
        ("x = []\nx.append(x)\nx", [Omitted("cycle")], None),
    ],
)
def test_what_is_no_data_is_marked(code: str, value: Any, shown: str | None, run: Any) -> None:
    outcome = run(code)
    assert outcome.value == value
    assert shown is None or outcome.value_repr == shown


BOMBS = {
    "list": "x = 1\nfor i in range(60): x = [x, x]\nx",
    "dict": "x = 1\nfor i in range(60): x = {1: x, 2: x}\nx",
    "tuple in a set": "x = 1\nfor i in range(60): x = (x, x)\n{x}",
    "tuple as a key": "x = 1\nfor i in range(60): x = (x, x)\n{x: 1}",
    "deep list": "x = []\nfor i in range(100_000): x = [x]\nx",
    "deep tuple": "x = ()\nfor i in range(100_000): x = (x,)\nx",
    "wide list": "[0] * 1_000_000",
    "long text": "'a' * 30_000_000",
    "instance": "class A: pass\na = A()\nx = 1\nfor i in range(60): x = (x, x)\na.x = {x}\na",
    "named tuple": """
from collections import namedtuple
P = namedtuple('P', 'a')
x = 1
for i in range(60): x = P((x, x))
x""",
    "huge integer": "1 << 10_000_000",
}


@pytest.mark.parametrize("name", BOMBS)
def test_no_value_hangs_the_host(name: str, run: Any) -> None:
    outcome = run(BOMBS[name], limits=Limits(wall_time=20.0))
    assert outcome.termination == "exited"
    assert len(outcome.value_repr) <= 10_000


def test_a_repr_that_cannot_be_written_ends_the_run_as_any_code_would(run: Any) -> None:
    code = """
from dataclasses import dataclass
@dataclass
class P:
    x: int
x = 1
for i in range(60): x = [x, x]
P(x)"""
    assert run(code, limits=Limits(wall_time=20.0, memory=16 << 20)).termination == "memory_limit"


@pytest.mark.parametrize(
    "code",
    [
        "list = type = str = dict = set = len = repr = dumps = b64encode = 5\n[1, (2,), {'a': {3}}]",
        "int = float = None\n[1, (2,), {'a': {3}}]",
        "match = case = 1\n[match, (2,), {'a': {3}}]",
    ],
)
def test_code_may_call_its_variables_as_it_likes(code: str, run: Any) -> None:
    assert run(code).value == [1, (2,), {"a": {3}}]


@pytest.mark.parametrize("value", [7, -1.5, True, None, "it's", 10**30, [1, "a"]])
@pytest.mark.parametrize(
    "before",
    [
        "",
        "type = int = float = bool = str = 5\n",
        "def type(value): return 5\n",
        "int = float = bool = str = list\n",
        "class int: pass\n",
    ],
)
def test_a_value_is_the_same_whatever_code_calls_by_the_names_of_types(
    before: str, value: Any, run: Any
) -> None:
    found = run(f"{before}{value!r}").value
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "code",
    [
        "__licet_text__ = int = str = __licet_types__ = 5\n{1}",
        "def __licet_encode__(*a): return 5\n{1}",
        "__licet_text__ = [1]\n{1}",
        "class A:\n    def __eq__(self, o): return True\n    def __repr__(self): return '[' * 99999\nA()",
        "class A:\n    def __repr__(self): return \"' + open('/etc/passwd').read() + '\"\nA()",
    ],
)
def test_code_that_tampers_forges_its_own_value_at_most(code: str, run: Any) -> None:
    assert run(code).termination == "exited"


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("1", 1),
        ("1;", 1),
        ("1 # one", 1),
        ("x = 5; x", 5),
        ("(y := 5)", 5),
        ("(1,\n 2\n)", (1, 2)),
        ("1, 2", (1, 2)),
        ("'doc'", "doc"),
        ("x = 1", None),
        ("", None),
        ("# only", None),
        ("if True:\n    5", None),
        ("f'{1}' 'b'", "1b"),
        ("'\\'é\\N{BULLET}'; 'é' 'x'", "éx"),
        ("lambda: 1", Opaque("function", "<function '<lambda>' at 0xc>")),
        ("def f(): return 2\nf()", 2),
        ("x = '''\n'''\nx", "\n"),
        ("\\\n7", 7),
        ("1 if 0 else 2", 2),
        ("not 1", False),
        ("[i for i in [1]]", [1]),
        ("r'\\d'", "\\d"),
        ("b'\\xff'", b"\xff"),
        ("async def f(): return 3\nawait f()", 3),
    ],
)
def test_the_value_is_that_of_the_last_expression(code: str, value: Any, run: Any) -> None:
    outcome = run(code)
    assert (outcome.error, outcome.value) == (None, value)


def test_parsing_warns_nobody() -> None:
    assert keep_value("'\\d \\N{BULLET}'\nx") is not None
    assert keep_value("'\\d'") is not None


@given(st.text())
def test_what_crosses_at_once_is_read_without_fail(text: str) -> None:
    kept = small(text)
    assert kept is None or (kept.shown is None) == (kept.value is None)


def _compiles(code: str) -> bool:
    try:
        compile(code, "<test>", "exec", flags=ast.PyCF_ONLY_AST)
    except SyntaxError:
        return False
    return True


@pytest.mark.filterwarnings("ignore")
@settings(deadline=None)
@given(st.text(alphabet="ab'\"\\\n() =1#{}[]fr:;é", max_size=40))
def test_rewriting_never_fails_and_moves_no_line(code: str) -> None:
    rewritten = keep_value(code)
    if rewritten is not None and _compiles(code):
        compile(rewritten, "<test>", "exec", flags=ast.PyCF_ONLY_AST)
        normalised = code.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        for before, after in zip(normalised, rewritten.split("\n"), strict=False):
            assert after.replace("__licet_value__ = (", "").replace(")", "") == before.replace(")", "")


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("x = r'''\\N{'''; y = '''}'''\ny", "}"),
        ("x = '\\d'\nx", "\\d"),
        ("'\\N{BULLET}'", "•"),
        ("b'\\q'", b"\\q"),
    ],
)
def test_escapes_of_every_kind_move_nothing(code: str, value: Any, run: Any) -> None:
    outcome = run(code)
    assert (outcome.error, outcome.value) == (None, value)
