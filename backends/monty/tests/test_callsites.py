"""How calls of tools are written: no line moves, and what is not understood stays as it was."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from licet.screen import syntax_tree
from licet_monty.callsites import call_through
from licet_monty.prelude import FEED, HEAD, PLACES

AT, LATER, SETTLE = "**__licet_at__", "__licet_later__", "__licet_settle__"


def _later(args: str, line: int = 1) -> str:
    return f'{LATER}({args}__licet_place__=("f", {line}))'


@pytest.mark.parametrize(
    ("code", "written"),
    [
        ("f(1)", f"f(1, {AT}(1))"),
        ("f()", f"f({AT}(1))"),
        ("f(1,)", f"f(1,{AT}(1))"),
        ("f(1 # a, b\n)", f"f(1 # a, b\n, {AT}(1))"),
        ("f((1))", f"f((1), {AT}(1))"),
        ("f(x for x in y)", f"f((x for x in y), {AT}(1))"),
        ("f((x for x in y))", f"f((x for x in y), {AT}(1))"),
        ("f(*a, b=2, **c)", f"f(*a, b=2, **c, {AT}(1))"),
        ("é = 'ü'; f('ß')", f"é = 'ü'; f('ß', {AT}(1))"),
        ("x = 1\r\nf(2)\r\n", f"x = 1\nf(2, {AT}(2))\n"),
        ("f(f(1))", f"f(f(1, {AT}(1)), {AT}(1))"),
        ("await f(1)", f"await {_later('1, ')}"),
        ("await f()", f"await {_later('')}"),
        ("f(await x)", f"f(await {SETTLE}(x), {AT}(1))"),
        ("await (f(1) if a else g)", f"await ({SETTLE}({_later('1, ')} if a else g))"),
        ("t = f(1)\nu = f(2)\nawait t", f"t = {_later('1, ')}\nu = f(2, {AT}(2))\nawait {SETTLE}(t)"),
        ("x = [f(1)]\nx[0]", f"x = [f(1, {AT}(1))]\nx[0]"),
        ("print(f'{f(1)}')", f"print((f'{{f(1, {AT}(1))}}'))"),
        ("print(f'''a\n{await f(1)}\n''')", None),
        ("f = g\nf(1)", "f = g\nf(1)"),
        ("def f(): pass\nawait f()", f"def f(): pass\nawait {SETTLE}(f())"),
        ("def g(f): return f(1)", "def g(f): return f(1)"),
        ("import f\nf(1)", "import f\nf(1)"),
        ("x.f(1)", "x.f(1)"),
        ("g(1)", "g(1)"),
        ("f(1", "f(1"),
        ("\ufefff(1)", "\ufefff(1)"),
        ("f('\ud800')", "f('\ud800')"),
    ],
)
def test_calls_are_written_anew(code: str, written: str | None) -> None:
    found = call_through(code, ("f",))
    assert written is None or found == written
    assert found.count("\n") == code.replace("\r\n", "\n").count("\n")


def test_the_same_name_in_two_functions_is_two_names() -> None:
    code = "def one():\n    r = f(1)\n    return r\nasync def two():\n    r = f(2)\n    return await r"
    found = call_through(code, ("f",))
    assert (f"f(1, {AT}(2))" in found, _later("2, ", 5) in found) == (True, True)


def test_a_name_of_the_module_is_seen_in_its_functions() -> None:
    assert _later("1, ") in call_through("r = f(1)\nasync def two():\n    return await r", ("f",))


@pytest.mark.parametrize(
    "code",
    [
        "f(" * 90 + ")" * 90,
        "x = " + "+".join(["f(1)"] * 3000),
        "await " * 900 + "f(1)",
        "f(" * 5000,
        "t = f(1)\n" + "t = [t]\n" * 3000 + "await t",
    ],
)
def test_code_that_is_nested_deeply_or_long_is_rewritten_or_left_alone(code: str) -> None:
    found = call_through(code, ("f",))
    assert found == code or syntax_tree(found) is not None


PIECES = [
    "f(",
    ")",
    "await ",
    "x",
    "=",
    "\n",
    "1",
    ",",
    " for x in ",
    "[",
    "]",
    "g",
    "f'{",
    "}'",
    "(",
    "*",
    "#",
]


@pytest.mark.filterwarnings("ignore")
@settings(deadline=None, max_examples=300)
@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_what_could_be_parsed_still_can_be_and_differs_in_nothing_else(code: str) -> None:
    found = call_through(code, ("f",))
    if found != code:
        assert _unparsed(found) == _unparsed(code)


class _Undo(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        node.keywords = [word for word in node.keywords if "__licet_" not in ast.unparse(word)]
        name = ast.unparse(node.func)
        if name == LATER:
            node.func = ast.Name("f", ast.Load())
        return node.args[0] if name == SETTLE else node


def _unparsed(code: str) -> str:
    return ast.unparse(_Undo().visit(ast.parse(code)))


def test_the_two_calls_of_the_prelude_hand_on_texts_alone() -> None:
    starts = [0]
    for line in HEAD.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    calls = {
        starts[node.lineno - 1] + node.col_offset: node
        for node in ast.walk(ast.parse(HEAD))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert HEAD.isascii()
    assert sorted(PLACES.values()) == ["__licet_begin__", "__licet_call__"]
    for place, name in PLACES.items():
        assert ast.unparse(calls[place].func) == name
        assert [type(arg) for arg in calls[place].args] == [ast.JoinedStr] * 3
        assert calls[place].keywords == []
    others = [node for place, node in calls.items() if place not in PLACES]
    assert all(ast.unparse(node.func) not in PLACES.values() for node in others)


@pytest.mark.parametrize(
    ("how", "called"),
    [("{}", 0), ("exec(text)", 0), ("exec(text, {{'types': 1}})", 2), ("eval('exec(text)')", 0)],
)
def test_code_that_copies_the_prelude_does_not_stand_where_it_stands(
    how: str, called: int, run: Any, host: Any
) -> None:
    """The name of the first feed is Monty's to give; a copy that hands on objects is no call of a tool."""
    copy = HEAD.replace('f"{name:.200}"', "[name]")
    assert copy != HEAD
    code = f"{how.format(copy)}\n__licet_now__('f', 1)\nf(1)"
    outcome = run(code, host, tools=("f",), inputs={"text": copy})
    assert (FEED, outcome.termination) == ("<python-input-0>", "exited")
    assert [call.args for call in host.calls] == [(1,)] * called
    assert (outcome.error is None) == bool(called)
